"""``diagatt evaluate``, and the scores that `fit` prints of samples held out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diagatt.commands import options, outputs
from diagatt.commands.messages import counted

if TYPE_CHECKING:
    import numpy as np

    from diagatt.kinds import Inputs


@dataclass(frozen=True)
class Score:
    """A score with its 95 % bootstrap interval over samples."""

    name: str
    value: float
    low: float
    high: float


def evaluate(
    model: options.Model,
    data: options.Data,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="JSON file to write as well.", metavar="FILE"),
    ] = None,
    drop: options.Drop = "",
    cache: options.Cache = None,
    overwrite: options.Overwrite = False,
    **asked: Any,
) -> None:
    """Compare predictions with known responses.

    It prints AUC, accuracy, balanced accuracy and log score (mean log-likelihood) of classes, with
    quadratic kappa and ranked probability score if they are ordered, or R², RMSE, mean absolute
    error and log score of numbers, or concordances, AUC over time and integrated Brier score of
    times to an event, with 95 % bootstrap intervals over samples.

    Example: `diagatt evaluate m.safetensors test.csv`
    """
    with outputs.writing(output, {"MODEL": model, "DATA": data}, overwrite=overwrite):
        from rich.console import Console

        from diagatt.files import write_atomically
        from diagatt.kinds.files import read_inputs, read_model_file

        file = read_model_file(model)
        inputs = read_inputs(data, options.without(file.columns, drop, asked), need_target=True)
        found = scored(options.with_cache(file.model(), cache), inputs, str(data))
        show(Console(highlight=False), counted(len(inputs)), found)
        if output is not None:
            content = {"samples": len(inputs), "interval": "bootstrap over samples, 95 %"}
            scores = {s.name: {"value": s.value, "low": s.low, "high": s.high} for s in found}
            write_atomically(output, (json.dumps(content | scores, indent=1) + "\n").encode())


def scored(model: Any, inputs: Inputs, source: str) -> list[Score]:
    """Return every score of a model on samples with known responses."""
    import numpy as np

    from diagatt.families import counts_trials
    from diagatt.metrics import NAMES, class_scores, number_scores

    y = np.asarray(inputs.y)
    given = {} if inputs.covariates is None else {"covariates": inputs.named_covariates}
    given |= inputs.known
    family = getattr(getattr(model, "estimator_", model), "family", "auto")
    if y.dtype.names is not None:  # times to an event
        scores = _of_times(model, inputs.X, y, given)
    elif y.ndim == 2 and not counts_trials(family):
        return _of_outcomes(model, inputs, given)
    elif hasattr(model, "predict_proba"):
        y = _codes(y, model.classes_, inputs, source)
        prediction = model.predict_proba(inputs.X, **given)
        ordered = getattr(getattr(model, "estimator_", model), "has_ordered_classes", False)

        def scores(chosen: Any) -> dict[str, float]:
            return class_scores(y[chosen], prediction[chosen], ordered)
    else:
        if y.dtype.kind not in "iufb":
            raise ValueError(
                f"{source}: the response of sample {inputs.ids[0]} is {str(y[0])!r}, and the model "
                "predicts numbers."
            )
        prediction = model.predict(inputs.X, **given)

        def scores(chosen: Any) -> dict[str, float]:
            return number_scores(y[chosen], prediction[chosen], family)

    return _with_intervals(scores, len(y), list(NAMES))


def _of_times(model: Any, X: Any, y: np.ndarray, given: dict[str, Any]) -> Any:
    """Return the function that scores some samples' times to an event."""
    from diagatt.metrics import concordance
    from diagatt.survival_metrics import evaluation_times, survival_scores

    risk, event = model.predict(X, **given), y["event"]
    if "start" in (y.dtype.names or ()):  # weights against censoring do not know late entries
        return lambda chosen: {
            "concordance": concordance(event[chosen], y["stop"][chosen], risk[chosen])
        }
    at = evaluation_times(event, y["time"])
    curves = model.predict_survival_function(X, **given, return_array=True, times=at)

    def scores(chosen: Any) -> dict[str, float]:
        own = (event[chosen], y["time"][chosen], risk[chosen])
        return survival_scores(*own, curves[chosen], at)

    return scores


def _of_outcomes(model: Any, inputs: Inputs, given: dict[str, Any]) -> list[Score]:
    """Return scores of several outcomes: their means, and the first score of each outcome."""
    import numpy as np

    from diagatt.metrics import outcome_scores

    y, names = np.asarray(inputs.y), inputs.columns.targets
    family = getattr(getattr(model, "estimator_", model), "family", "auto")
    classifies = hasattr(model, "predict_proba")
    found = getattr(model, "predict_proba" if classifies else "predict")(inputs.X, **given)

    def scores(chosen: Any) -> dict[str, float]:
        return outcome_scores(y[chosen], found[chosen], names, family, classifies)

    return _with_intervals(scores, len(y), list(scores(np.arange(len(y)))))


def _with_intervals(scores: Any, count: int, names: list[str]) -> list[Score]:
    """Return scores of all samples, as far as they are there, with bootstrap intervals."""
    import numpy as np

    from diagatt.resampling import bootstrap_intervals

    values = scores(np.arange(count))
    ends = bootstrap_intervals(scores, count) if count > 1 else {}
    unknown = (float("nan"), float("nan"))
    return [Score(n, values[n], *ends.get(n, unknown)) for n in names if n in values]


def _codes(y: np.ndarray, classes: np.ndarray, inputs: Inputs, source: str) -> np.ndarray:
    """Return the column of each class; refuse one that the model does not know."""
    import numpy as np

    for i in np.flatnonzero(~np.isin(y, classes))[:1]:
        known = ", ".join(str(c) for c in classes[:6]) + (" …" if len(classes) > 6 else "")
        raise ValueError(
            f"{source}: the response of sample {inputs.ids[i]} is {y[i]}, a class that the model "
            f"does not know; it knows {known}."
        )
    return np.searchsorted(classes, y)


def show(console: Any, title: str, found: list[Score]) -> None:
    """Print scores with their intervals."""
    from rich.table import Table

    from diagatt.metrics import COSTS, score_name

    table = Table(title, "value", "95 % interval", box=None, padding=(0, 3, 0, 0))
    for score in found:
        digits = ".4g" if score.name.partition(": ")[0] in COSTS else ".3f"
        known = score.low == score.low  # one sample has none
        ends = f"{score.low:{digits}} to {score.high:{digits}}" if known else "–"
        table.add_row(score_name(score.name), f"{score.value:{digits}}", ends)
    console.print(table)
