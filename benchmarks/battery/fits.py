"""What a model is fitted to: hostile responses, weights, covariates and stores."""

from __future__ import annotations

import datetime
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse
import torch
from sklearn.base import is_classifier
from sklearn.utils import get_tags

from benchmarks.battery.judge import Case, equal, finite
from benchmarks.battery.models import (
    LABELS,
    NUMBERS,
    D,
    N,
    X,
    Z,
    estimators,
    expected,
    fitted,
    methods,
    responses,
    takes_covariates,
)
from diagatt.estimators.times import ReadsTimes
from diagatt.lifetimes import make_times

WORDS = r"\by\b|label|class|respon|time|event|start|stop|upper"
SIZES = r"large|small|overflow|scale|standardize|infinit|finite"
DAYS = np.datetime64("2020-01-01") + np.arange(N)


def entry(base: Any, value: Any, kind: Any = object) -> np.ndarray:
    """Return a copy with one other entry."""
    copy = np.array(base, dtype=kind)
    copy.flat[5] = value
    return copy


TWO_COLUMNS = np.stack([NUMBERS, NUMBERS], axis=1)
HIDDEN = np.ma.masked_array(NUMBERS, mask=np.arange(N) == 5)
# What neither a regressor nor a classifier can be fitted to.
NO_RESPONSES: dict[str, Any] = {
    "None": None,
    "dates": DAYS,
    "durations": DAYS - DAYS[0],
    "list of dates": [datetime.date(2020, 1, 1 + i) for i in range(N)],
    "list of moments": [datetime.datetime(2020, 1, 1 + i) for i in range(N)],
    "list of durations": [datetime.timedelta(days=i % 2) for i in range(N)],
    "objects of dates": np.array([datetime.date(2020, 1, 1 + i % 2) for i in range(N)], object),
    "pandas dates": pd.Series(DAYS),
    "pandas durations": pd.Series(DAYS - DAYS[0]),
    "pandas NaT": pd.Series([pd.NaT] * N),
    "polars dates": pl.Series(DAYS.astype("M8[ms]")),
    "arrow dates": pa.array([datetime.date(2020, 1, 1 + i % 2) for i in range(N)]),
    "complex": NUMBERS + 1j,
    "a dictionary": {"y": 1},
    "a number": 1.0,
    "a word": "y",
    "too few": NUMBERS[1:],
    "two columns": TWO_COLUMNS,
    "three axes": NUMBERS[:, None, None],
    "empty": [],
    "one NaN": entry(NUMBERS, np.nan, float),
    "one None": entry(NUMBERS, None),
    "one pandas.NA": entry(NUMBERS, pd.NA),
    "one infinity": entry(NUMBERS, np.inf, float),
    "one masked": HIDDEN,
    "one masked label": np.ma.masked_array(LABELS, mask=np.arange(N) == 5),
    "lists": [[1, 2], [3]] * (N // 2),
    "dictionaries": [{}, {"a": 1}] * (N // 2),
    "sparse": scipy.sparse.csr_matrix(NUMBERS[:, None]),
    "one date": entry(NUMBERS, datetime.date(2020, 1, 1)),
    "mixed": entry(LABELS, 3),
    "a function": len,
    "NaN only": np.full(N, np.nan),
    "null column": pa.nulls(N),
    "arrow null": pa.array([None, *NUMBERS[1:].tolist()]),
    "polars null": pl.Series([None, *NUMBERS[1:].tolist()]),
}
NO_NUMBERS: dict[str, Any] = {
    "words": LABELS,
    "words of numbers": NUMBERS.astype(str),
    "bytes": LABELS.astype(bytes),
    "categories": pd.Series(LABELS, dtype="category"),
    "one word": entry(NUMBERS, "1"),
    "beyond float64": entry(NUMBERS, 10**400),
}
NO_CLASSES: dict[str, Any] = {
    "numbers": NUMBERS,
    "tensor of numbers": torch.tensor(NUMBERS),
    "numbers in a frame": pd.DataFrame({"y": NUMBERS}),
    "numbers in a list": NUMBERS.tolist(),
    "numbers as objects": NUMBERS.astype(object),
    "numbers of polars": pl.Series(NUMBERS),
    "numbers of arrow": pa.array(NUMBERS),
    "one class": np.zeros(N, int),
    "one label": ["yes"] * N,
    "words and NaN": ["yes", np.nan] * (N // 2),
    "words and numbers": ["yes", 1] * (N // 2),
    "intervals": pd.cut(pd.Series(NUMBERS), 2),
}
# The same responses in other containers: the fit must be the same.
SAME: dict[str, Callable[[np.ndarray], Any]] = {
    "list": np.ndarray.tolist,
    "tuple": lambda y: tuple(y.tolist()),
    "objects": lambda y: y.astype(object),
    "series": pd.Series,
    "polars": pl.Series,
    "arrow": lambda y: pa.array(y.tolist()),
    "backwards": lambda y: y[::-1].copy()[::-1],
    "a column": lambda y: y[:, None],
    "no mask": np.ma.masked_array,
}
# Times to an event: what they cannot be, and the same ones in other containers.
TIMES = make_times(NUMBERS > 0, np.exp(NUMBERS / 10))
EVENT, TIME = TIMES["event"], TIMES["time"]
NO_TIMES: dict[str, Any] = {
    "NaN as time": {"event": EVENT, "time": entry(TIME, np.nan, float)},
    "infinity as time": {"event": EVENT, "time": entry(TIME, np.inf, float)},
    "None as time": {"event": EVENT, "time": entry(TIME, None)},
    "masked time": {"event": EVENT, "time": np.ma.masked_array(TIME, mask=np.arange(N) == 5)},
    "null time": pl.DataFrame({"event": EVENT, "time": [None, *TIME[1:].tolist()]}),
    "zero as time": {"event": EVENT, "time": entry(TIME, 0.0, float)},
    "negative time": {"event": EVENT, "time": entry(TIME, -1.0, float)},
    "words as times": {"event": EVENT, "time": TIME.astype(str)},
    "dates as times": {"event": EVENT, "time": DAYS},
    "complex times": {"event": EVENT, "time": TIME + 1j},
    "too few times": {"event": EVENT, "time": TIME[1:]},
    "two columns of times": {"event": EVENT, "time": np.stack([TIME, TIME], axis=1)},
    "event of 2": {"event": entry(EVENT, 2, int), "time": TIME},
    "event of a half": {"event": entry(EVENT, 0.5, float), "time": TIME},
    "NaN as event": {"event": entry(EVENT, np.nan, float), "time": TIME},
    "null event": pl.DataFrame({"event": [None, *EVENT[1:].tolist()], "time": TIME}),
    "words as events": {"event": LABELS, "time": TIME},
    "no event": make_times(np.zeros(N, bool), TIME),
    "one time": make_times(EVENT, np.ones(N)),
    "time alone": {"time": TIME},
    "event alone": {"event": EVENT},
    "a column more": {"event": EVENT, "time": TIME, "age": TIME},
    "renamed columns": pd.DataFrame({"Event": EVENT, "Time": TIME}),
    "late entry after the end": {"start": TIME + 1, "stop": TIME, "event": EVENT},
    "upper before lower": {"lower": TIME, "upper": TIME / 2},
}
SAME_TIMES: dict[str, Callable[[np.ndarray], Any]] = {
    "mapping": lambda y: {name: y[name] for name in y.dtype.names},
    "lists": lambda y: {name: y[name].tolist() for name in y.dtype.names},
    "frame": pd.DataFrame,
    "permuted frame": lambda y: pd.DataFrame(y)[["time", "event"]],
    "polars": lambda y: pl.DataFrame({name: y[name] for name in y.dtype.names}),
    "arrow": lambda y: pa.table({name: y[name] for name in y.dtype.names}),
    "other names": lambda y: make_times(y["event"], y["time"], names=("died", "days")),
    "numbers as events": lambda y: {"event": y["event"].astype(float), "time": y["time"]},
    "backwards": lambda y: y[::-1].copy()[::-1],
    "from 0": lambda y: make_times(y["event"], y["time"], start=np.zeros(N)),
}
NO_WEIGHTS: dict[str, Any] = {
    "words": ["a"] * N,
    "a word": "balanced",
    "a dictionary": {0: 1.0},
    "dictionaries": [{}] * N,
    "dates": DAYS,
    "durations": DAYS - DAYS[0],
    "complex": np.ones(N) + 1j,
    "too few": np.ones(N - 1),
    "two columns": np.ones((N, 2)),
    "negative": entry(np.ones(N), -1.0, float),
    "NaN": entry(np.ones(N), np.nan, float),
    "infinity": entry(np.ones(N), np.inf, float),
    "None": entry(np.ones(N), None),
    "zeros": np.zeros(N),
    "masked": np.ma.masked_array(np.ones(N), mask=np.arange(N) == 5),
    "a negative number": -1.0,
    "NaN alone": np.nan,
    "an object": object(),
    "sparse": scipy.sparse.csr_matrix(np.ones((N, 1))),
    "beyond float64": entry(np.ones(N), 10**400),
    "pandas dates": pd.Series(DAYS),
}
NO_COVARIATES: dict[str, Any] = {
    "words": Z.astype(str),
    "a word": "sex",
    "a dictionary": {"sex": Z[:, 0]},
    "dates": np.stack([DAYS, DAYS], axis=1),
    "dates in a frame": pd.DataFrame({"sex": Z[:, 0], "day": DAYS}),
    "durations in a frame": pd.DataFrame({"sex": Z[:, 0], "d": DAYS - DAYS[0]}),
    "NaT in a frame": pd.DataFrame({"sex": Z[:, 0], "d": [pd.NaT] * N}),
    "dates as objects": entry(Z, datetime.date(2020, 1, 1)),
    "complex": Z + 1j,
    "too few": Z[1:],
    "one axis": Z[:, 0],
    "three axes": Z[None],
    "NaN": entry(Z, np.nan, float),
    "infinity": entry(Z, np.inf, float),
    "None": entry(Z, None),
    "masked": np.ma.masked_array(Z, mask=np.arange(2 * N).reshape(N, 2) == 5),
    "sparse": scipy.sparse.csr_matrix(Z),
    "twins": pd.DataFrame(Z, columns=["sex", "sex"]),
    "categories": pd.DataFrame({"sex": pd.Series(LABELS, dtype="category")}),
    "a number": 1.0,
    "beyond float64": entry(Z, 10**400),
    "numbers and words as names": pd.DataFrame(Z, columns=["sex", 1]),
}
SAME_COVARIATES: dict[str, Callable[[np.ndarray], Any]] = {
    "list": np.ndarray.tolist,
    "backwards": lambda z: z[::-1].copy()[::-1],
    "columns first": np.asfortranarray,
    "float32": lambda z: z.astype(np.float32),
    "whole numbers": lambda z: z.astype(int),
    "tensor": torch.tensor,
    "pandas": lambda z: pd.DataFrame(z, columns=["sex", "dose"]),
    "polars": lambda z: pl.DataFrame(z, schema=["sex", "dose"]),
    "permuted": lambda z: pd.DataFrame(z[:, ::-1], columns=["dose", "sex"]),
    "permuted arrow": lambda z: pa.table({"dose": z[:, 1], "sex": z[:, 0]}),
}
OTHER_COVARIATES: dict[str, Any] = {
    "none": None,
    "too few": Z[:, :1],
    "too many": Z[:, [0, 1, 0]],
    "renamed": pd.DataFrame(Z, columns=["sex", "Dose"]),
    "missing": pd.DataFrame({"sex": Z[:, 0]}),
    "one more": pd.DataFrame(Z[:, [0, 1, 0]], columns=["sex", "dose", "site"]),
}


def cases() -> Iterator[Case]:
    """Yield the cases of fits."""
    for name, make in estimators():
        classes = is_classifier(make())
        wrong, same = NO_RESPONSES | (NO_CLASSES if classes else NO_NUMBERS), SAME
        if isinstance(make(), ReadsTimes):
            wrong, same = wrong | NO_TIMES, SAME_TIMES
        if get_tags(make()).target_tags.multi_output and not classes:
            yield Case(
                "responses",
                f"{name} · two columns",
                lambda make=make: make().fit(X, TWO_COLUMNS).predict(X),
                False,
                lambda found: found.shape == (N, 2) and equal(found[:, 0], found[:, 1]),
            )
            wrong = {what: y for what, y in wrong.items() if what != "two columns"}
        for what, y in wrong.items():
            yield _refused("responses", name, make, what, {"y": y}, WORDS)
        for what, form in same.items():
            yield Case(
                "responses",
                f"{name} · same responses · {what}",
                lambda make=make, form=form: make().fit(X, form(responses(make()))),
                False,
                lambda model, name=name: _agrees(name, model),
            )
        takes_weights = "sample_weight" in signature(make().fit).parameters
        for what, weights in NO_WEIGHTS.items() if takes_weights else ():
            given = {"y": responses(make()), "sample_weight": weights}
            yield _refused("weights", name, make, what, given, r"sample_weight|[wW]eight")
        yield from _magnitudes(name, make, takes_weights)
        if takes_covariates(make()):
            yield from _covariates(name, make)
        yield from _stores(name, make)


def _refused(
    family: str, name: str, make: Callable, what: str, given: dict[str, Any], words: str
) -> Case:
    def act() -> Any:
        model = make()
        before = dict(vars(model))
        try:
            return model.fit(X, **given)
        finally:
            if vars(model) != before and not hasattr(model, "n_features_in_"):
                raise AssertionError("a fit that failed has changed the estimator")

    return Case(family, f"{name} · {what}", act, True, words=words)


def _agrees(name: str, model: Any) -> bool:
    return equal(dict(methods(model))["predict"](X), expected(name, "predict"))


def _covariates(name: str, make: Callable) -> Iterator[Case]:
    for what, given in NO_COVARIATES.items():
        both = {"y": responses(make()), "covariates": given}
        yield _refused("covariates", name, make, f"fit · {what}", both, "covariate|column")
    asked = [m for m in ("predict", "predict_proba", "decision_function") if hasattr(make(), m)]
    for method in asked:
        for saved in (False, True):
            for what, given in (NO_COVARIATES | OTHER_COVARIATES).items():
                yield Case(
                    "covariates",
                    f"{name} · {method}{' · saved' if saved else ''} · {what}",
                    lambda method=method, saved=saved, given=given: getattr(
                        fitted(name, saved=saved, beside=True), method
                    )(X, covariates=given),
                    True,
                    words="covariate|column",
                )
            for what, form in SAME_COVARIATES.items():
                yield Case(
                    "covariates",
                    f"{name} · {method}{' · saved' if saved else ''} · same in {what}",
                    lambda method=method, saved=saved, form=form: getattr(
                        fitted(name, saved=saved, beside=True), method
                    )(X, covariates=form(Z)),
                    False,
                    lambda answer, method=method: equal(
                        answer, getattr(fitted(name, beside=True), method)(X, covariates=Z)
                    ),
                )


def _magnitudes(name: str, make: Callable, takes_weights: bool) -> Iterator[Case]:
    """Yield fits to very large and very small numbers: finite predictions, or a refusal."""
    y = responses(make())
    for size in (1e-300, 1e-150, 1e-30, 1e30, 1e150, 1e300):
        rows = [size * m for m in X]
        fits = {"rows": (rows, y, {}), "a row": ([*X[:-1], size * X[-1]], y, {})}
        if not is_classifier(make()):
            sized = _sized(y, size)
            fits["responses"] = (X, sized, {})
            fits["responses of float32"] = ([m.astype(np.float32) for m in X], sized, {})
        if takes_weights:
            fits["weights"] = (X, y, {"sample_weight": np.full(N, size)})
            one = np.where(np.arange(N) == 3, size, 1.0)
            fits["a weight"] = (X, y, {"sample_weight": one})
        if takes_covariates(make()):
            fits["covariates"] = (X, y, {"covariates": size * Z})
        for what, (samples, own, given) in fits.items():

            def act(samples: Any = samples, own: Any = own, given: Any = given) -> Any:
                model = make().fit(samples, own, **given)
                beside = {k: v for k, v in given.items() if k == "covariates"}
                shown = {"y": own} if "y" in signature(model.predict).parameters else {}
                ask = getattr(model, "predict_proba", model.predict)
                return ask(samples, **beside, **shown)

            words = f"{name} · {what} of {size:g}"
            yield Case("magnitudes", words, act, None, finite, SIZES)


def _sized(y: np.ndarray, size: float) -> np.ndarray:
    return size * y if y.dtype.names is None else make_times(y["event"], size * y["time"])


@cache
def _store(responses: str) -> Any:
    from diagatt.stores import RowStore

    folder = Path(tempfile.mkdtemp(prefix="battery")) / "store"
    y = {"numbers": NUMBERS, "labels": LABELS, "none": None}[responses]
    return RowStore.from_rows(folder, X, y, dtype="float64")


def _stores(name: str, make: Callable) -> Iterator[Case]:
    if not name.startswith("DiagAtt"):
        return
    wrong = "numbers" if is_classifier(make()) else "labels"
    for what in (wrong, "none"):
        yield Case(
            "stores",
            f"{name} · store of {what}",
            lambda what=what: make().fit(_store(what)),
            True,
            words="store|respon|class|label",
        )
    for method in ("predict", "locate", "attention", "transform"):
        yield Case(
            "stores",
            f"{name} · store · {method}",
            lambda method=method: getattr(fitted(name), method)(_store("numbers")),
            False,
            lambda answer, method=method: equal(answer, expected(name, method)),
        )
    yield Case(
        "stores",
        f"{name} · store · permuted names",
        lambda: fitted(name, True).predict(_store("numbers")),
        False,
        lambda answer: equal(answer, expected(name, "predict", True)),
    )


assert D == 3
