"""The page's first lines: what was fitted, on what, and how well it predicts."""

from __future__ import annotations

from typing import Any

import numpy as np

from diagatt.metrics import accuracy, crlr, mean_deviance, rmse
from diagatt.report.samples import FAR, Samples

__all__ = ["metrics", "model_facts"]


def model_facts(model: Any, samples: Samples) -> list[tuple[str, str]]:
    """Name and value of everything worth knowing about the model and the samples."""
    lengths = np.diff(samples.offsets)
    facts = [("estimator", type(model).__name__)]
    if hasattr(model, "summary"):
        told = model.summary().facts
        facts += [
            ("family", str(told["family"])),
            ("solver", str(told["solver"])),
            ("fitted on", _count(told["samples"], "sample")),
        ]
    heads = _count(samples.weights.shape[1], "head")
    restarts = getattr(model, "n_restarts_", 1)
    facts += [("heads", heads if restarts == 1 else f"{heads}, {restarts} restarts averaged")]
    if getattr(model, "unevenness_", None):
        facts += [("attention, 0 even to 1 one row", f"{np.mean(model.unevenness_):.2f}")]
    spread = f"{lengths.min():,}" if lengths.min() == lengths.max() else _span(lengths)
    facts += [
        ("shown here", _count(len(samples), "sample")),
        ("rows a sample", spread),
        ("features of a row", f"{model.n_features_in_:,}"),
    ]
    if samples.labels is not None:
        facts += [("classes", f"{len(samples.labels):,}")]
    return facts


def metrics(model: Any, samples: Samples) -> list[tuple[str, str, str]]:
    """Name, value and meaning of each number that says how good the model is here."""
    found: list[tuple[str, str, str]] = []
    if samples.y is not None:
        found += _class_metrics(samples) if samples.labels else _number_metrics(model, samples)
    known = [i for i, rows in enumerate(samples.true_rows or []) if rows]
    if samples.true_rows is not None and known:
        rate = crlr([samples.true_rows[i] for i in known], samples.located[known])
        found += [("Rows found", _percent(rate), "CRLR: share of the true rows that were located")]
    sure = _percent(1 - samples.ambiguous.mean())
    return [*found, ("Unambiguous", sure, "samples whose located rows all have half of the weight")]


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
    error = rmse(samples.y, samples.prediction)
    found = [("RMSE", f"{error:.4g}", "root mean squared error")]
    spread = float(np.var(samples.y))
    if spread > 0:
        found += [("R²", f"{1 - error**2 / spread:.3f}", "share of the variance explained")]
    family = getattr(model, "family", "gaussian")
    if family in ("poisson", "gamma"):
        deviance = mean_deviance(family, samples.y, samples.prediction)
        found += [("Deviance", f"{deviance:.4g}", f"mean unit deviance, {family}")]
    assert samples.right is not None
    near = _percent(samples.right.mean())
    return [*found, ("Near", near, f"samples predicted within {FAR:g} RMSE of the response")]


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _count(n: int, name: str) -> str:
    return f"{n:,} {name}{'' if n == 1 else 's'}"


def _span(lengths: np.ndarray) -> str:
    return f"{lengths.min():,} to {lengths.max():,}, median {np.median(lengths):,.0f}"
