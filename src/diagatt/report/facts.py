"""The first lines of the page: what was fitted, to what, and how well it predicts."""

from __future__ import annotations

from typing import Any

import numpy as np

from diagatt.families import FAMILIES, get_family
from diagatt.metrics import accuracy, crlr, mean_deviance, rmse
from diagatt.report.samples import NEAR, Samples

__all__ = ["metrics", "model_facts"]


def model_facts(model: Any, samples: Samples) -> list[tuple[str, str]]:
    """Return name and value of each fact about the model and the samples."""
    facts = [("estimator", type(model).__name__)]
    if hasattr(model, "summary"):
        summary = model.summary().facts
        facts += [(name, str(summary[name])) for name in ("family", "solver")]
        facts += [("fitted to", _count(summary["samples"], "sample"))]
    heads = _count(samples.weights.shape[1], "head")
    restarts = getattr(model, "n_restarts_", 1)
    facts += [("heads", heads if restarts == 1 else f"{heads}, {restarts} restarts averaged")]
    if getattr(model, "unevenness_", None):
        facts += [("attention (0: even, 1: one row)", f"{np.mean(model.unevenness_):.2f}")]
    lengths = np.diff(samples.offsets)
    low, high = lengths.min(), lengths.max()
    others = "" if low == high else f" to {high:,}, median {np.median(lengths):,.0f}"
    facts += [
        ("shown here", _count(len(samples), "sample")),
        ("rows per sample", f"{low:,}{others}"),
        ("features per row", f"{model.n_features_in_:,}"),
    ]
    if samples.labels is not None:
        facts += [("classes", f"{len(samples.labels):,}")]
    return facts


def metrics(model: Any, samples: Samples) -> list[tuple[str, str, str]]:
    """Return name, value and meaning of each number that says how good the model is here."""
    found: list[tuple[str, str, str]] = []
    if samples.y is not None:
        found += _class_metrics(samples) if samples.labels else _number_metrics(model, samples)
    told = [i for i, rows in enumerate(samples.true_rows or []) if rows]
    if samples.true_rows is not None and told:
        rate = crlr([samples.true_rows[i] for i in told], samples.located[told])
        found += [("Rows found", _percent(rate), "CRLR: share of the true rows that were located")]
    sure = _percent(1 - samples.ambiguous.mean())
    meaning = "samples in which every head puts at least half of its attention on one row"
    return [*found, ("Unambiguous", sure, meaning)]


def _class_metrics(samples: Samples) -> list[tuple[str, str, str]]:
    assert samples.y is not None
    assert samples.probability is not None
    right = accuracy(samples.y, samples.prediction)
    found = [("Accuracy", _percent(right), "share of samples whose predicted class is right")]
    if samples.y.max() < samples.probability.shape[1]:  # a class never seen has deviance ∞
        deviance = mean_deviance("multinomial", samples.y, samples.probability)
        found += [("Deviance", f"{deviance:.3f}", "mean of −2 log probability of the true class")]
    return found


def _number_metrics(model: Any, samples: Samples) -> list[tuple[str, str, str]]:
    assert samples.y is not None
    assert samples.right is not None
    error = rmse(samples.y, samples.prediction)
    found = [("RMSE", f"{error:.4g}", "root mean squared error")]
    variance = float(np.var(samples.y))
    if variance > 0:
        found += [("R²", f"{1 - error**2 / variance:.3f}", "share of the variance explained")]
    family = getattr(model, "family", "auto")
    if family in FAMILIES and not get_family(family).is_quadratic:  # of which the RMSE says all
        deviance = mean_deviance(family, samples.y, samples.prediction)
        found += [("Deviance", f"{deviance:.4g}", f"mean unit deviance, {family}")]
    near = _percent(samples.right.mean())
    return [*found, ("Near", near, f"samples predicted within {NEAR:g} RMSE of the response")]


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _count(n: int, name: str) -> str:
    return f"{n:,} {name}{'' if n == 1 else 's'}"
