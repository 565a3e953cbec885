"""How a cross-validation is reported: a table, figures, and a paragraph for a methods section."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from diagatt import plots
from diagatt.families import counts_trials
from diagatt.metrics import COSTS, NAMES
from diagatt.metrics.numbers import shares
from diagatt.validation.baselines import Task
from diagatt.validation.cross import OURS, SHARES, Validation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BOUNDS = {
    **dict.fromkeys(SHARES, (0, 1)),
    "kappa": (-1, 1),
    "r2": (-np.inf, 1),
}
_REGRESSION = {"gaussian": "ridge", "auto": "ridge", "poisson": "Poisson", "gamma": "gamma"}


def scores_table(validation: Validation) -> tuple[list[str], list[list[Any]]]:
    """Return names of columns, and a line per method and score: mean, interval, every fold."""
    head = ["method", "score", "mean", "low", "high"]
    head += [f"fold_{k + 1}" for k in range(validation.n_folds)]
    lines = []
    for method in validation.predictions:
        for name, by_fold in validation.scores(method).items():
            values = [by_fold.get(k) for k in range(validation.n_folds)]
            lines.append([method, name, *validation.interval(method, name), *values])
    return head, lines


def shown_interval(score: str, mean: float, low: float, high: float, classes: bool = False) -> str:
    """Write a score with its interval, cut off at the smallest and the largest possible score.

    Examples
    --------
    >>> shown_interval("auc", 0.9312, 0.841, 1.02)
    '0.931 [0.84, 1.00]'
    >>> shown_interval("rmse", 123.456, 99.0, 150.0)
    '123 [99.0, 150]'
    >>> shown_interval("log_score", -9.39, -10.16, -8.62)
    '-9.39 [-10.2, -8.62]'
    """
    score = score.partition(": ")[0]  # that of one of several outcomes has its bounds
    low, high = _within_bounds(score, low, high, classes)
    if score in COSTS:
        return f"{_short(mean)} [{_short(low)}, {_short(high)}]"
    if score in ("log_score", "r2"):  # three methods fit into a line of 80 characters
        return f"{_hundredths(mean)} [{_hundredths(low)}, {_hundredths(high)}]"
    return f"{mean:.3f} [{low:.2f}, {high:.2f}]"


def _within_bounds(score: str, low: float, high: float, classes: bool) -> tuple[float, float]:
    """Cut an interval off at the smallest and the largest possible score."""
    least, most = BOUNDS.get(score, (0 if score in COSTS else -np.inf, np.inf))
    if score == "log_score" and classes:  # of a probability
        most = 0
    return max(low, least), min(high, most) + 0.0


def _short(number: float) -> str:
    is_whole = number == 0 or 1000 <= number < 1e6
    return f"{number:.0f}" if is_whole else f"{number:#.3g}".rstrip(".")


def _hundredths(number: float) -> str:
    """Write a number with two decimals, or fewer if it is large."""
    decimals = 2 if abs(number) < 10 else 1 if abs(number) < 100 else 0
    return f"{number:.{decimals}f}"


def figures(validation: Validation) -> dict[str, Figure]:
    """Draw ROC, calibration and confusions of classes, or predictions against responses.

    Several numbers have a figure each, several labels a curve each.
    """
    import matplotlib.pyplot as plt

    drawn = {}

    def add(name: str, ax: Any) -> None:
        drawn[name] = ax.figure
        plt.close(ax.figure)  # pyplot would keep it

    y, ours = validation.y, validation.predictions[OURS]
    classes = validation.task.classes
    if validation.task.has_times:
        add("survival-by-risk", plots.survival_by_risk(y, ours))
        return drawn
    if validation.task.outcomes and classes is None:
        for k, name in enumerate(validation.task.outcomes):
            ax = plots.observed_predicted(y[:, k], ours[:, k])
            ax.set_title(name, fontsize=10, parse_math=False)
            add(f"observed-predicted-{re.sub(r'[^a-zA-Z0-9_-]+', '-', name)}", ax)
        return drawn
    if validation.task.outcomes:
        add("roc", _roc(validation))
        return drawn
    if classes is None:
        observed = shares(y) if counts_trials(validation.task.family) else y
        add("observed-predicted", plots.observed_predicted(observed, ours))
        return drawn
    add("roc", _roc(validation))
    if len(classes) == 2:
        ax = plots.calibration(y == 1, ours[:, 1])
        ax.set_xlabel(f"predicted probability of {classes[1]}", parse_math=False)
    else:
        ax = plots.calibration(ours.argmax(axis=1) == y, ours.max(axis=1))
        ax.set(xlabel="probability of the predicted class", ylabel="share that was right")
    add("calibration", ax)
    add("confusion", plots.confusion(classes[y], classes[ours.argmax(axis=1)], classes=classes))
    return drawn


def _roc(validation: Validation) -> Any:
    """Draw a curve per method for two classes, and a curve per class or label for more."""
    classes, ax = validation.task.classes, None
    assert classes is not None
    if validation.task.outcomes:
        for k, name in enumerate(validation.task.outcomes):
            own = validation.predictions[OURS][:, k]
            ax = plots.roc(validation.y[:, k] == 1, own, label=name, ax=ax)
    elif len(classes) == 2:
        for method, p in validation.predictions.items():
            ax = plots.roc(validation.y == 1, p[:, 1], label=method, ax=ax)
    else:
        for k, name in enumerate(classes):
            own = validation.predictions[OURS][:, k]
            ax = plots.roc(validation.y == k, own, label=str(name), ax=ax)
    assert ax is not None
    ax.set_title("held-out samples of all folds together", fontsize=10)
    return ax


def _mean_of(task: Task) -> str:
    return f"mean over {len(task.outcomes)} outcomes of the " if task.outcomes else ""


def _trees(validation: Validation) -> str:
    if "trees" not in validation.predictions:
        return ""
    kind = "survival trees" if validation.task.has_times else "trees"
    return (
        f" and with 300 extremely randomized {kind} on the mean, minimum, maximum and standard "
        "deviation of every feature over the rows of a sample"
    )


def methods_paragraph(
    validation: Validation, samples: str, groups: str | None, solver: str, seed: int, version: str
) -> str:
    """Return what was done and found, in sentences for a methods section.

    Parameters
    ----------
    validation : Validation
    samples : str
        How many samples of what, such as "120 samples with 8 to 12 rows of 6 features".
    groups : str, optional
        Column whose samples were held out together.
    solver : str
    seed : int
    version : str
        Version of diagatt.
    """
    task, score = validation.task, validation.main
    name = _REGRESSION.get(task.family, task.family) if task.classes is None else "ridge logistic"
    name = "ridge Cox" if task.has_times else name
    stratified = task.classes is not None and not task.outcomes
    folds = f"{'stratified ' if stratified else ''}{validation.n_folds}-fold"
    together = f"; samples with the same {groups} were held out together" if groups else ""
    mean, low, high = validation.interval(OURS, score)
    low, high = _within_bounds(score, low, high, task.classes is not None)
    found = f"{mean:.3f} (95 % interval {low:.3f} to {high:.3f})"
    others = " and ".join(
        f"{validation.interval(method, score)[0]:.3f} for {method}"
        for method in validation.predictions
        if method != OURS
    )
    return (
        f"The data are {samples}. Diagonalized attention (diagatt {version}, solver {solver!r}, "
        f"seed {seed}) was compared with {name} regression on mean rows{_trees(validation)}, in "
        f"{folds} cross-validation{together}. "
        "Scores are means over folds with corrected resampled t intervals (Nadeau and Bengio, "
        f"2003). The {_mean_of(task)}{NAMES[score]} of diagonalized attention was {found}; it was "
        f"{others}. " + validation.verdict()
    )
