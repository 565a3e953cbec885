"""Choosing among candidates on held-out samples."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from diagatt import DiagAttRegressor, RaggedRows
from diagatt.selection import select, splits
from diagatt.solvers import Gradient

# Short fits need not find a row; what is tested here is something else.
pytestmark = pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")

quick = settings(max_examples=50)


@given(n=st.integers(2, 60), seed=st.integers(0, 1000))
@quick
def test_holdout_is_one_partition_with_an_eighth_held_out(n, seed):
    [(train, held_out)] = splits(n, "holdout", seed)
    assert len(held_out) == max(1, n // 8)
    assert sorted([*train, *held_out]) == list(range(n))


@given(n=st.integers(2, 40), folds=st.integers(2, 8), seed=st.integers(0, 1000))
@quick
def test_folds_hold_out_every_sample_once(n, folds, seed):
    folds = min(folds, n)
    parts = list(splits(n, folds, seed))
    assert len(parts) == folds
    assert sorted(i for _, held_out in parts for i in held_out) == list(range(n))
    sizes = [len(held_out) for _, held_out in parts]
    assert max(sizes) - min(sizes) <= 1
    for train, held_out in parts:
        assert sorted([*train, *held_out]) == list(range(n))


def test_splits_depend_on_the_seed_alone():
    first, again, other = (list(splits(40, 4, seed)) for seed in (0, 0, 1))
    for (a, b), (c, d) in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, c)
        np.testing.assert_array_equal(b, d)
    assert any((a[1] != b[1]).any() for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize("scheme", ["jackknife", 1, 0, 41, 2.5, None])
def test_unknown_schemes_are_refused(scheme):
    with pytest.raises(ValueError, match=r"'holdout' or a number of folds from 2 to n = 40"):
        list(splits(40, scheme, 0))


def test_one_sample_cannot_be_split():
    with pytest.raises(ValueError, match="needs at least 2 samples"):
        list(splits(1, "holdout", 0))


def test_select_returns_the_smallest_mean_loss():
    """Polynomials by cross-validation: the mean of the folds, as computed by hand."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 60)
    y = x**2 + 0.05 * rng.normal(size=60)

    def loss(degree, train, held_out):
        fit = np.polyfit(x[train], y[train], degree)
        return np.mean((np.polyval(fit, x[held_out]) - y[held_out]) ** 2)

    best, report = select([1, 2, 9], loss, 60, 5, 0)
    assert best == 2
    assert [line["candidate"] for line in report] == [1, 2, 9]
    for line in report:
        by_hand = [loss(line["candidate"], *part) for part in splits(60, 5, 0)]
        assert line["folds"] == by_hand
        assert line["loss"] == pytest.approx(np.mean(by_hand))


def test_candidates_that_diverge_are_not_chosen_and_ties_go_to_the_first():
    losses = {"a": np.nan, "b": 1.0, "c": np.inf, "d": 1.0}
    assert select(list(losses), lambda c, *_: losses[c], 10, "holdout", 0)[0] == "b"


# ---------------------------------------------------------------------- number of heads


def two_rows_matter(n=600, seed=0):
    """Samples with one row near +4 and one near −4; each has an effect of its own."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5, 3))
    places = rng.permuted(np.tile(np.arange(5), (n, 1)), axis=1)[:, :2]
    first, second = X[np.arange(n), places[:, 0]], X[np.arange(n), places[:, 1]]
    y = (first @ [2.0, 0, -1]) + (second @ [0, -2.0, 1]) + 0.1 * rng.normal(size=n)
    X[np.arange(n), places[:, 0], 0] += 4
    X[np.arange(n), places[:, 1], 0] -= 4
    return RaggedRows.from_dense(X), y + 2 * 4


@pytest.mark.slow
@pytest.mark.parametrize("selection", ["holdout", 2, "bic"])
def test_auto_takes_the_best_of_its_report(selection):
    X, y = two_rows_matter()
    model = DiagAttRegressor("auto", solver="likelihood", selection=selection, random_state=0)
    model.fit(X, y)
    report = model.criteria_ if selection == "bic" else model.selection_[:3]
    values = [line["bic" if selection == "bic" else "loss"] for line in report]
    assert [line["n_heads"] for line in report] == [1, 2, 3]
    assert model.n_heads_ == 1 + np.argmin(values)
    assert values[0] > values[1]


def test_likelihood_finds_both_rows_and_bic_no_third():
    X, y = two_rows_matter()
    model = DiagAttRegressor("auto", solver="likelihood", selection="bic", random_state=0).fit(X, y)
    assert model.n_heads_ == 2
    np.testing.assert_allclose(sorted(model.value_.tolist()), [[0, -2, 1], [2, 0, -1]], atol=0.1)


@pytest.mark.parametrize("selection", ["holdout", 3])
def test_auto_reports_the_losses_of_fits_by_hand_and_refits_on_all(selection):
    X, y = two_rows_matter(n=80)
    options = {"solver": Gradient(optimizer="adam", max_epochs=2), "random_state": 0}
    model = DiagAttRegressor("auto", selection=selection, **options).fit(X, y)
    seed = np.random.RandomState(0).randint(2**31 - 1)
    losses = []
    for heads in (1, 2, 3):
        folds = []
        for train, held_out in splits(80, selection, seed):
            fit = DiagAttRegressor(heads, **options).fit(X[train], y[train])
            folds.append(0.5 * np.mean((fit.predict(X[held_out]) - y[held_out]) ** 2))
        losses.append(np.mean(folds))
    np.testing.assert_allclose([line["loss"] for line in model.selection_], losses)
    assert model.n_heads_ == 1 + np.argmin(losses)
    refitted = DiagAttRegressor(model.n_heads_, **options).fit(X, y)
    np.testing.assert_array_equal(model.query_key_, refitted.query_key_)


def test_auto_tries_no_more_heads_than_rows_unless_rows_may_coincide():
    X, y = two_rows_matter(n=40)
    X = RaggedRows.from_samples([sample[:2] for sample in X])
    options = {"solver": Gradient(optimizer="adam", max_epochs=1), "random_state": 0}
    distinct = DiagAttRegressor("auto", **options).fit(X, y)
    assert [line["n_heads"] for line in distinct.selection_] == [1, 2]
    free = DiagAttRegressor("auto", coupling="independent", **options).fit(X, y)
    assert [line["n_heads"] for line in free.selection_] == [1, 2, 3]


def test_auto_ignores_samples_of_weight_zero():
    X, y = two_rows_matter(n=60)
    weights = np.ones(60)
    weights[::3] = 0
    options = {"solver": Gradient(optimizer="adam", max_epochs=1), "random_state": 0}
    model = DiagAttRegressor("auto", **options)
    weighted = model.fit(X, np.where(weights, y, 1e9), sample_weight=weights).selection_
    assert weighted == model.fit(X[weights > 0], y[weights > 0]).selection_


def test_global_random_states_are_left_alone():
    X, y = two_rows_matter(n=30)
    before = np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    solver = Gradient(optimizer="adam", max_epochs=1)
    DiagAttRegressor("auto", solver=solver, random_state=0).fit(X, y).predict(X)
    np.testing.assert_array_equal(np.random.get_state()[1], before[0])  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), before[1])
