"""What is measured of the default on each design; every function fits and returns numbers."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.default_designs import (
    Draw,
    changed_units,
    digit_bags,
    noise,
    shaped_rows,
    simulated,
)
from diagatt import (
    DiagAttClassifier,
    DiagAttRegressor,
    GatedAttentionClassifier,
    PooledClassifier,
    RaggedRows,
    simulate,
)
from diagatt.metrics import rmse

OWN_SOLVERS = ("likelihood", "gradient", "mixture", "uniform")
N_TEST = 2000


def fitted(X: Any, y: np.ndarray, seed: int, **settings: Any) -> Any:
    """Fit a regressor or a classifier; that nothing was found is read off, not warned of."""
    kind = DiagAttRegressor if y.dtype.kind == "f" else DiagAttClassifier
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind(random_state=seed, **settings).fit(X, y)


def prediction(model: Any, X: Any) -> np.ndarray:
    """Return expected responses, or probabilities of the second class."""
    if hasattr(model, "predict_proba"):
        return model.predict_proba(X)[:, 1]
    return model.predict(X)


def rescaled(train: RaggedRows, *others: RaggedRows, each: bool) -> list[RaggedRows]:
    """Centre rows and divide by one scale, or each feature by its own, learnt in training."""
    shift, spread = train.values.mean(axis=0), train.values.std(axis=0)
    if not each:
        spread = np.full_like(spread, np.sqrt(np.mean(spread**2)))
    scale = np.where(spread > 0, spread, 1.0)
    return [RaggedRows((X.values - shift) / scale, X.offsets) for X in (train, *others)]


def units(data: str, change: str, seed: int) -> dict[str, float]:
    """Fit in two units; return the largest change of a prediction, in SD of predictions."""
    draws: dict[str, Draw] = {
        "simulated": simulated(150, 10, 6, seed),
        "skewed": shaped_rows("skewed", "bernoulli", 200, seed),
        "wide": simulated(100, 6, 70, seed),
        "digits": digit_bags(100, seed),
    }
    X, y, _ = draws[data]
    first = prediction(fitted(X, y, seed), X)
    other = changed_units(X, change, seed)
    second = prediction(fitted(other, y, seed), other)
    return {"change": float(np.abs(second - first).max() / first.std())}


def says_none(family: str, n: int, d: int, kind: str, seed: int) -> dict[str, Any]:
    """Fit to noise."""
    X, y, _ = noise(kind, family, n, d, seed)
    model = fitted(X, y, seed)
    best = model.contest_[0]
    return {
        "none": not model.has_row_of_interest_,
        "best": f"{best['solver']}; {best['what']}",
    }


def located(shape: str, family: str, seed: int) -> dict[str, float]:
    """Return the shares of rows that the default and two solvers locate in new samples."""
    X, y, _ = shaped_rows(shape, family, 400, seed)
    new = shaped_rows(shape, family, N_TEST, seed + 1000)
    return {
        solver: float((fitted(X, y, seed, solver=solver).locate(new.X)[:, 0] == new.place).mean())
        for solver in ("auto", "mixture", "likelihood")
    }


def simulated_errors(n: int, seed: int) -> dict[str, float]:
    """Return the RMSE of the default, of every solver of its own, and of the Bayes oracle."""
    shape = {"p": 20, "d": 8, "mu": 3.0, "sigma2": 4.0, "dtype": np.float64}
    train = simulate.regression(n, seed=seed, **shape)
    test = train.draw(N_TEST, seed=(seed, 1))
    found = {"oracle": rmse(test.y, test.oracle().prediction)}
    for solver in ("auto", *OWN_SOLVERS):
        model = fitted(train.X, train.y, seed, solver=solver)
        found[solver] = rmse(test.y, model.predict(test.X))
    return found


def digits(n: int, seed: int) -> dict[str, float]:
    """Return AUC and rows found by the default, by gated attention and by pooling.

    "found" counts nines that `locate` names, "for the class" those that ``locate(target=1)`` names:
    the row that speaks most for a nine being there.
    """
    train, test = digit_bags(n, seed), digit_bags(N_TEST, seed, test=True)
    X, X_test = rescaled(train.X, test.X, each=False)
    models = {
        "auto": (fitted(train.X, train.y, seed), test.X),
        "gated": (GatedAttentionClassifier(random_state=seed).fit(X, train.y), X_test),
        "pooled": (_pooled(seed).fit(X, train.y), X_test),
    }
    found = {}
    for name, (model, rows) in models.items():
        hit = model.locate(rows)[:, 0] == test.place
        found[name] = float(roc_auc_score(test.y, prediction(model, rows)))
        found[f"{name} found"] = float(hit[test.y == 1].mean())
    hit = models["auto"][0].locate(test.X, target=1)[:, 0] == test.place
    return found | {"auto found for the class": float(hit[test.y == 1].mean())}


def seconds(data: str, seed: int) -> dict[str, float]:
    """Return CPU seconds of the default and of one fit by gradients, one after the other."""
    if data == "noise":
        X, y, _ = noise("iid", "gaussian", 300, 50, seed)
    else:
        X, y, _ = simulated(300, 10, 50, seed, family=data)
    return {solver: _cpu_seconds(X, y, seed, solver) for solver in ("auto", "gradient")}


def table1_seconds(seed: int) -> dict[str, float]:
    """Return CPU seconds and RMSE at the shape of the paper's Table 1."""
    train = simulate.regression(9000, p=100, d=70, seed=seed)
    test = train.draw(N_TEST, seed=(seed, 1))
    began = time.process_time()
    model = fitted(train.X, train.y, seed)
    took = time.process_time() - began
    error = rmse(test.y, model.predict(test.X))
    return {"auto": took, "ratio": error / rmse(test.y, test.oracle().prediction)}


def real_bags(name: str, number: int) -> dict[str, list[float]]:
    """Return responses of a stored test fold, and probabilities by three methods."""
    from diagatt.bench.sets import get_set, load_set, split

    chosen = get_set(name)
    bags, (train, test) = load_set(chosen), split(chosen, number)
    X, X_test, y = bags.X[train], bags.X[test], bags.y[train]
    Z, Z_test = rescaled(X, X_test, each=True)
    gated = GatedAttentionClassifier(random_state=number).fit(Z, y)
    return {
        "y": bags.y[test].tolist(),
        "auto": prediction(fitted(X, y, number), X_test).tolist(),
        "gated": prediction(gated, Z_test).tolist(),
        "pooled": prediction(_pooled(number).fit(Z, y), Z_test).tolist(),
    }


def _cpu_seconds(X: RaggedRows, y: np.ndarray, seed: int, solver: str) -> float:
    began = time.process_time()
    fitted(X, y, seed, solver=solver)
    return time.process_time() - began


def _pooled(seed: int) -> PooledClassifier:
    return PooledClassifier(ridge="auto", selection=5, random_state=seed)
