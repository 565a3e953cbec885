"""Declared rules: every value is either allowed or refused with its name, itself and the rule."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, clone

from diagatt import parameters
from diagatt.parameters import (
    LARGEST_COUNT,
    LARGEST_SEED,
    ParameterError,
    at_least,
    boolean,
    check,
    count,
    device,
    either,
    instance,
    one_of,
    optional,
    path,
    positive,
    seed,
    several,
    share,
    values_to_try,
    whole,
)

quick = settings(max_examples=100)
RULES = {
    "names": one_of("auto", "fast", None),
    "components": one_of(0, 1),
    "rate": positive(),
    "ridge": at_least(0),
    "dropout": share(),
    "shrinkage": share(whole=True),
    "heads": count(1),
    "steps": whole(1),
    "folds": count(2, most=10),
    "verbose": boolean(),
    "file": path(),
    "random_state": seed(),
    "device": device(),
    "bound": optional(positive()),
    "selection": either(one_of("holdout"), count(2)),
    "alpha": several(at_least(0)),
    "sizes": several(count(1)),
    "solver": instance("a solver", BaseEstimator),
}
finite = st.floats(allow_nan=False, allow_infinity=False)
not_finite = st.sampled_from([math.nan, math.inf, -math.inf, np.float32("nan"), np.float64("inf")])
# What no rule of a number takes: other types, and numbers that are none.
no_numbers = st.one_of(
    not_finite,
    st.booleans(),
    st.text(max_size=5).filter(lambda text: text != "auto"),
    st.complex_numbers(),
    st.binary(max_size=3),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
    st.sampled_from(
        [
            np.array(1.0),
            np.ones((2, 2)),
            torch.ones(()),
            np.datetime64("2020-01-01"),
            np.timedelta64(3, "D"),
            np.bool_(True),
            np.complex128(1),
            object(),
            {1, 2},
            10**400,
            -(10**5000),
        ]
    ),
)
anything = st.one_of(no_numbers, finite, st.integers(), st.none(), st.lists(finite, max_size=3))


def owner(**given):
    """An object with one parameter for each rule that is asked for."""
    names = ", ".join(f"{name}=None" for name in given)
    lines = [f"def __init__(self, {names}):", *(f"    self.{n} = {n}" for n in given)]
    space = {}
    exec("\n".join(lines), space)
    kind = type("Owner", (BaseEstimator,), {**space, "rules": {n: RULES[n] for n in given}})
    return kind(**given)


def refusal(name, value):
    """What `check` says of the value, or nothing."""
    try:
        check(owner(**{name: value}))
    except ParameterError as error:
        return str(error)
    return ""


def is_refused(name, value):
    """Whether `check` refuses the value; if so, in words that name it all."""
    message = refusal(name, value)
    assert not message or message.startswith(f"{name} must be {RULES[name].allowed}, got ")
    assert len(message) < 400
    return bool(message)


@pytest.mark.parametrize("name", RULES)
@given(value=anything)
@quick
def test_every_value_is_taken_or_refused_in_one_sentence(name, value):
    assert is_refused(name, value) is not RULES[name].accepts(value)


@pytest.mark.parametrize(
    "name", ["rate", "ridge", "dropout", "shrinkage", "heads", "folds", "bound", "alpha", "sizes"]
)
@given(value=no_numbers)
@quick
def test_what_is_no_number_is_refused(name, value):
    assert is_refused(name, value)


@given(value=st.one_of(finite, st.integers(-5, 5), st.floats(width=32).map(np.float32)))
@quick
def test_numbers_are_taken_by_their_size(value):
    real = math.isfinite(value)
    assert is_refused("rate", value) is not (real and value > 0)
    assert is_refused("ridge", value) is not (real and value >= 0)
    assert is_refused("dropout", value) is not (real and 0 <= value < 1)
    assert is_refused("shrinkage", value) is not (real and 0 <= value <= 1)
    assert is_refused("bound", value) is not (real and value > 0)


@given(value=st.integers())
@quick
def test_counts_are_whole_and_bounded(value):
    assert is_refused("heads", value) is not (1 <= value <= LARGEST_COUNT)
    assert is_refused("folds", value) is not (2 <= value <= 10)
    assert is_refused("random_state", value) is not (0 <= value <= LARGEST_SEED)
    assert is_refused("heads", float(np.clip(value, -1e9, 1e9)))
    assert not is_refused("heads", np.int64(np.clip(value, 1, 9)))
    assert is_refused("steps", value) is not (value >= 1 and math.isfinite(value))


@given(values=st.lists(st.one_of(finite, not_finite), max_size=4))
@quick
def test_lists_to_try_hold_allowed_values(values):
    fine = len(values) > 0 and all(math.isfinite(v) and v >= 0 for v in values)
    for made in (values, tuple(values), np.array(values)):
        assert is_refused("alpha", made) is not fine
        if fine:
            assert values_to_try(made, ()) == tuple(values)


def test_auto_tries_the_grid_and_a_single_value_itself():
    assert not is_refused("alpha", "auto")
    assert is_refused("alpha", "all")
    assert values_to_try("auto", (1, 2)) == (1, 2)
    assert values_to_try(0.5, (1, 2)) == (0.5,)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("names", "slow", "names must be 'auto', 'fast' or None, got 'slow'."),
        ("components", True, "components must be 0 or 1, got True."),
        ("components", 2, "components must be 0 or 1, got 2."),
        ("rate", 0.0, "rate must be a positive number, got 0.0."),
        ("ridge", -1, "ridge must be a number of at least 0, got -1."),
        ("dropout", 1.0, "dropout must be a number in [0, 1), got 1.0."),
        ("heads", 1.5, "heads must be a whole number of at least 1, got 1.5."),
        ("folds", 11, "folds must be a whole number from 2 to 10, got 11."),
        ("verbose", 1, "verbose must be True or False, got 1."),
        ("file", 3, "file must be a path, got 3."),
        ("bound", 0.0, "bound must be a positive number or None, got 0.0."),
        ("selection", 1, "selection must be 'holdout' or a whole number of at least 2, got 1."),
        (
            "alpha",
            [],
            "alpha must be a number of at least 0, a list of such values to try or 'auto', got [].",
        ),
        ("solver", "em", "solver must be a solver, got 'em'."),
    ],
)
def test_messages_name_parameter_rule_and_value(name, value, message):
    assert refusal(name, value) == message


def test_an_error_is_a_value_error_and_a_type_error():
    for kind in (ValueError, TypeError):
        with pytest.raises(kind):
            check(owner(heads="many"))


@pytest.mark.parametrize(
    "value", ["cuda:7", "meta", "gpu", "", "cpu:x", 0, None, torch, "mps", "privateuseone"]
)
def test_devices_that_do_not_exist(value):
    if value == "mps" and torch.backends.mps.is_available():
        pytest.skip("this machine has the device")
    assert is_refused("device", value)


@pytest.mark.parametrize("value", ["cpu", torch.device("cpu")])
def test_devices_that_exist(value):
    assert not is_refused("device", value)


@pytest.mark.parametrize("value", [None, 0, np.int64(3), np.random.RandomState(0)])
def test_seeds(value):
    assert not is_refused("random_state", value)
    assert is_refused("random_state", np.random.default_rng(0))


class Inner(BaseEstimator):
    rules = {"rank": optional(count(1))}  # noqa: RUF012

    def __init__(self, rank=None):
        self.rank = rank


class Outer(BaseEstimator):
    rules = {"solver": either(one_of("auto"), instance("a solver", Inner))}  # noqa: RUF012

    def __init__(self, solver="auto"):
        self.solver = solver


class Further(Outer):
    rules = {"ridge": at_least(0)}  # noqa: RUF012

    def __init__(self, solver="auto", ridge=1.0, free=None):
        super().__init__(solver)
        self.ridge = ridge
        self.free = free


def test_rules_of_base_classes_count_and_may_be_replaced():
    check(Further(free=object()))
    for wrong in ({"solver": "em"}, {"ridge": -1.0}):
        with pytest.raises(ParameterError, match=next(iter(wrong))):
            check(Further(**wrong))

    class Replaced(Further):
        rules = {"ridge": one_of("free")}  # noqa: RUF012

    check(Replaced(ridge="free"))


def test_parameters_inside_a_parameter_are_checked_under_their_search_name():
    check(Further(Inner(rank=2)))
    with pytest.raises(ParameterError, match="solver__rank must be a whole number of at least 1"):
        check(clone(Further(Inner())).set_params(solver__rank=0))


def test_long_values_are_cut():
    with pytest.raises(ParameterError, match=r"got \[0, 1, 2, .*…\.$"):
        check(owner(rate=list(range(1000))))
    with pytest.raises(ParameterError, match="got a number of 16610 bits"):
        check(owner(rate=10**5000))


def test_every_public_rule_is_tried_here():
    made = {
        n
        for n, f in vars(parameters).items()
        if getattr(f, "__annotations__", {}).get("return") == "Rule"
    }
    assert made <= set(globals())
