"""What stands beside X and what is asked of a fit: orders, groups, labels, scores and levels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import signature
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import is_classifier

from benchmarks.battery.judge import Case, equal
from benchmarks.battery.models import (
    NAMES,
    D,
    N,
    X,
    Z,
    estimators,
    fitted,
    responses,
)
from benchmarks.battery.models import expected as known_answer
from diagatt import RaggedRows
from diagatt.estimators.times import ReadsTimes

IDS = [f"p{i:02d}" for i in range(N)][::-1]
HIDDEN = np.arange(N) == 5
BESIDE: dict[str, Any] = {
    "sample_weight": pd.Series(np.ones(N)),
    "covariates": pd.DataFrame(Z, columns=["sex", "dose"]),
    "groups": pd.Series(np.arange(N) // 2),
    "offset": pd.Series(np.zeros(N)),
}
NO_GROUPS: dict[str, Any] = {
    "masked": np.ma.masked_array(np.arange(N), mask=HIDDEN),
    "too few": np.arange(N - 1),
    "a missing one": [None, *range(N - 1)],
    "dates": pd.Series(pd.date_range("2020", periods=N)),
    "lists": [[1], [1, 2]] * (N // 2),
    "a word": "who",
    "two columns": np.zeros((N, 2)),
    "complex": np.arange(N) * 1j,
    "words and NaN": ["a", np.nan] * (N // 2),
    "words and numbers": [1, "1"] * (N // 2),
    "a dictionary": {"a": 1},
}
NO_ROW_LABELS: dict[str, Any] = {
    "masked": np.ma.masked_array(np.zeros(N, int), mask=HIDDEN),
    "fractions": np.full(N, 0.5),
    "too few": np.zeros(N - 1, int),
    "rows that are not there": np.full(N, 99),
    "negative": np.full(N, -2),
    "lists": [[0], [0, 1]] * (N // 2),
    "words": ["a"] * N,
    "truths": np.ones(N, bool),
    "None": [None] * N,
}
NO_LEVELS: dict[str, Any] = {
    "0": 0,
    "1": 1,
    "90": 90,
    "NaN": np.nan,
    "a word": "high",
    "None": None,
    "a list": [0.9],
    "True": True,
}
NO_COUNTS: dict[str, Any] = {"0": 0, "-1": -1, "a half": 0.5, "a word": "a", "huge": 10**30}
NO_TIMES: dict[str, Any] = {
    "NaN": [1.0, np.nan],
    "infinity": [1.0, np.inf],
    "negative": [-1.0, 1.0],
    "downwards": [2.0, 1.0],
    "nothing": [],
    "one number": 1.0,
    "two axes": [[1.0, 2.0]],
    "words": ["a"],
    "dates": np.array(["2020-01-01"], "M8[D]"),
    "masked": np.ma.masked_array([1.0, 2.0], mask=[False, True]),
}


def cases() -> Iterator[Case]:
    """Yield the cases of all estimators."""
    for name, make in estimators():
        taken = set(signature(make().fit).parameters)
        yield from _orders(name, make, taken)
        yield from _scores(name, make)
        yield from _columns(name, make)
        for argument, wrong in (("groups", NO_GROUPS), ("row_labels", NO_ROW_LABELS)):
            for what, given in wrong.items() if argument in taken else ():
                yield _refused(
                    argument.replace("_", " "),
                    f"{name} · {what}",
                    lambda make=make, own={argument: given}: make().fit(
                        X, responses(make()), **own
                    ),
                    argument,
                )
        yield from _certainty(name, make)
        if isinstance(make(), ReadsTimes):
            for what, times in NO_TIMES.items():
                yield _refused(
                    "certainty",
                    f"{name} · times · {what}",
                    lambda name=name, times=times: fitted(name).predict_survival_function(
                        X, times=times
                    ),
                    "times",
                )


def _refused(family: str, name: str, act: Callable[[], Any], words: str) -> Case:
    return Case(family, name, act, True, words=words)


def _samples() -> RaggedRows:
    rows = RaggedRows.from_samples(X)
    return RaggedRows(rows.values, rows.offsets, sample_ids=IDS)


def _orders(name: str, make: Callable[[], Any], taken: set[str]) -> Iterator[Case]:
    y = responses(make())
    table = pd.DataFrame(y) if y.dtype.names else pd.Series(y)
    beside = {"y": table} | {what: own for what, own in BESIDE.items() if what in taken}
    for what, own in beside.items():
        for sort in (True, False):
            values = own.set_axis(IDS).sort_index() if sort else own.set_axis(IDS)

            def act(what: str = what, values: Any = values) -> Any:
                model = make().fit(_samples(), **({"y": y} | {what: values}))
                return None if what != "y" or _is_shown(model) else model.predict(X)

            def right(answer: Any) -> bool:
                return answer is None or equal(answer, known_answer(name, "predict"))

            words = f"{name} · {what} {'sorted' if sort else 'in the order of X'}"
            yield Case("orders", words, act, sort, right, "labelled")


def _is_shown(model: Any) -> bool:
    return "y" in signature(model.predict).parameters


def _scores(name: str, make: Callable[[], Any]) -> Iterator[Case]:
    y = responses(make())
    wrong: dict[str, dict[str, Any]] = {"y · None": {"y": None}, "y · too few": {"y": y[1:]}}
    if y.dtype.names is None:
        wrong["y · masked"] = {"y": np.ma.masked_array(y, mask=HIDDEN)}
        other = np.linspace(0, 1, N) if is_classifier(make()) else ["a"] * N
        wrong["y · of another kind"] = {"y": other}
    if "sample_weight" in signature(make().score).parameters:
        wrong["weights · negative"] = {"sample_weight": -np.ones(N)}
        wrong["weights · NaN"] = {"sample_weight": np.full(N, np.nan)}
        wrong["weights · zeros"] = {"sample_weight": np.zeros(N)}
    for what, given in wrong.items():
        yield _refused(
            "scores",
            f"{name} · {what}",
            lambda given=given: fitted(name).score(X, **({"y": y} | given)),
            r"y\b|weight|samples|event|class",
        )


def _columns(name: str, make: Callable[[], Any]) -> Iterator[Case]:
    """Yield frames whose columns are named by numbers and levels, in another order."""
    for what, columns in (("numbers", [3, 5, 7]), ("levels", [("a", 1), ("a", 2), ("b", 1)])):
        frames = [pd.DataFrame(m, columns=pd.Index(columns)) for m in X]

        def act(frames: Any = frames) -> Any:
            model = make().fit(frames, responses(make()))
            given = (responses(model),) if _is_shown(model) else ()
            permuted = [frame.iloc[:, [2, 0, 1]] for frame in frames]
            return model.predict(permuted, *given), model.predict(frames, *given)

        yield Case("orders", f"{name} · {what} as columns", act, False, lambda pair: equal(*pair))


def _certainty(name: str, make: Callable[[], Any]) -> Iterator[Case]:
    kind, y = type(make()), responses(make())
    asked = {"predict_interval": "level", "predict_set": "level", "certainty": "level"}
    for method, argument in (asked | {"discoveries": "fdr"}).items():
        for what, value in NO_LEVELS.items() if hasattr(kind, method) else ():
            yield _refused(
                "certainty",
                f"{name} · {method} · {what}",
                lambda method=method, own={argument: value}: getattr(fitted(name), method)(
                    X, **own
                ),
                argument,
            )
    if not hasattr(kind, "existence_test"):
        return
    for what, value in NO_COUNTS.items():
        yield _refused(
            "certainty",
            f"{name} · stability · {what}",
            lambda value=value: fitted(name).stability(X, y, n_bootstraps=value),
            "n_bootstraps",
        )
        yield _refused(
            "certainty",
            f"{name} · existence_test · {what} heads",
            lambda value=value: make().existence_test(X, y, n_heads=value),
            "n_heads",
        )
    frames = [pd.DataFrame(m, columns=NAMES) for m in X]
    others = {
        "too few columns": {"X": [m[:, : D - 1] for m in X]},
        "renamed columns": {"X": [frame.rename(columns={"age": "Age"}) for frame in frames]},
        "covariates": {"covariates": Z},
        "nothing": {"y": None},
        "another count": {"y": y[1:]},
    }
    for what, given in others.items():
        yield _refused(
            "certainty",
            f"{name} · calibrate · {what}",
            lambda given=given: fitted(name, True).calibrate(**({"X": frames, "y": y} | given)),
            r"X\b|column|covariate|y\b|features|samples",
        )
    for what, labels in NO_ROW_LABELS.items():
        yield _refused(
            "row labels",
            f"{name} · calibrate_rows · {what}",
            lambda labels=labels: fitted(name).calibrate_rows(X, labels),
            "row_labels",
        )
