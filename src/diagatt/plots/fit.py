"""How a fit went: training history, coefficients, and predictions against responses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import norm

from diagatt.arguments import Count, Numbers, Truths
from diagatt.metrics import rmse
from diagatt.plots.canvas import COLOURS, axes_or_new, colour, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def history(history: Sequence[Sequence[dict]], *, ax: Axes | None = None) -> Axes:
    """Draw the loss or the log-likelihood by epoch or iteration, one line per restart.

    A dashed line is the validation loss; a ring marks the best epoch.

    Parameters
    ----------
    history : list of lists of dicts
        Such as ``model.history_``. If the stages of a fit record different quantities (a
        likelihood fit refined by gradient steps), the quantity of the last stage is drawn.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> ax = history([[{"epoch": 1, "loss": 4.0}, {"epoch": 2, "loss": 3.0}]])
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('epoch', 'loss')
    """
    runs = [run for run in history if len(run)]
    if not runs:
        raise ValueError("the history is empty: this fit had no iterations.")
    time = next(iter(runs[-1][0]))  # "epoch" or "iteration"
    value = "loss" if "loss" in runs[-1][0] else "log_likelihood"
    ax = axes_or_new(ax, (5.5, 3.2))
    drawn = [run for run in runs if value in run[0]]
    for k, run in enumerate(drawn):
        steps = [entry[time] for entry in run]
        name = value.replace("_", "-") if len(drawn) == 1 else f"restart {k}"
        ax.plot(steps, [entry[value] for entry in run], color=colour(k), marker=".", label=name)
        if "validation_loss" in run[0]:
            losses = [entry["validation_loss"] for entry in run]
            ax.plot(steps, losses, color=colour(k), ls="--", label="held out" if k == 0 else None)
            best = int(np.argmin(losses))
            ax.plot(steps[best], losses[best], "o", color=colour(k), mfc="none", ms=8)
    legend = len(drawn) > 1 or "validation_loss" in drawn[0][0]
    return tidy(ax, legend=legend, integer_x=True, xlabel=time, ylabel=value.replace("_", "-"))


def coefficients(
    summary: Any, *, level: float = 0.95, most: Count = 30, ax: Axes | None = None
) -> Axes:
    """Draw estimates with their Wald intervals ``estimate ± z·s.e.``, or points without an s.e.

    Parameters
    ----------
    summary : Summary
        Such as ``model.summary()``.
    level : float
        Confidence level of the intervals.
    most : int
        Count of coefficients to draw; the largest absolute estimates are kept.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> from diagatt import DiagAttRegressor, simulate
    >>> data = simulate.regression(200, p=6, d=2, mu=(3,), sigma2=(4,), seed=0)
    >>> model = DiagAttRegressor(solver="likelihood", random_state=0).fit(data.X, data.y)
    >>> ax = coefficients(model.summary())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['head 0  x0', 'head 0  x1', 'shared  intercept']
    """
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, got {level}.")
    lines = summary.coefficients
    size = np.array([abs(line["estimate"]) for line in lines])
    lines = [lines[k] for k in np.sort(np.argsort(-size, kind="stable")[:most])]
    ax = axes_or_new(ax, (5.5, 0.9 + 0.26 * len(lines)))
    sources = list(dict.fromkeys(line["head"] for line in lines))
    quantile = norm.ppf(0.5 + level / 2)
    for k, line in enumerate(lines):
        hue = colour(sources.index(line["head"]))
        ax.plot(line["estimate"], k, "o", color=hue, ms=5)
        if np.isfinite(line["se"]):
            ends = line["estimate"] + quantile * line["se"] * np.array([-1, 1])
            ax.plot(ends, [k, k], color=hue, lw=1.8)
    ax.axvline(0, color="0.6", lw=1, zorder=0)
    names = [f"{line['head']}  {line['feature']}" for line in lines]
    ax.set_yticks(np.arange(len(lines)), names, parse_math=False)
    ax.invert_yaxis()
    has_interval = any(np.isfinite(line["se"]) for line in lines)
    return tidy(ax, xlabel=f"estimate, {100 * level:g} % interval" if has_interval else "estimate")


def contest(report: Sequence[dict], *, most: Count = 20, ax: Axes | None = None) -> Axes:
    """Draw the mean log score out of fold of every contestant, with the error of its gap.

    Members of the final model are filled, and labelled with their weight.

    Parameters
    ----------
    report : sequence of dicts
        Such as ``model.report_``.
    most : int
        Largest count of contestants to draw; the best ones are drawn.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> line = {"solver": "uniform", "what": "unit rows", "log_score": -1.0, "se": 0.0, "weight": 1}
    >>> contest([line]).get_xlabel()
    'log score out of fold'
    """
    from matplotlib.ticker import MaxNLocator

    lines = [line for line in report if line["log_score"] is not None][:most]
    if not lines:
        raise ValueError("the report is empty: only solver='auto' compares ways to fit.")
    ax = axes_or_new(ax, (7.0, 0.8 + 0.26 * len(lines)))
    for k, line in enumerate(lines):
        kept = line["weight"] > 0
        fill = COLOURS[0] if kept else "none"
        ax.errorbar(line["log_score"], k, xerr=line["se"], color=COLOURS[0], lw=1, capsize=2)
        ax.plot(line["log_score"], k, "o", color=COLOURS[0], mfc=fill, ms=6)
        if kept:
            ax.annotate(
                f"{line['weight']:.2f}",
                (line["log_score"], k),
                xytext=(0, 5),
                textcoords="offset points",
                ha="center",
                fontsize=7,
            )
    names = [f"{line['solver']}: {line['what']}" for line in lines]
    ax.set_yticks(range(len(lines)), names, fontsize=8)
    ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.invert_yaxis()
    return tidy(ax, xlabel="log score out of fold", ylabel="")


def observed_predicted(
    y: Numbers, prediction: Numbers, *, found: Truths | None = None, ax: Axes | None = None
) -> Axes:
    """Draw predictions against responses, with the line on which they are equal.

    Parameters
    ----------
    y, prediction : array of shape (n,)
    found : bool array of shape (n,), optional
        Whether the rows of each sample were found (or any other split); the other samples are
        drawn on top in another colour.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> ax = observed_predicted([1.0, 2.0], [1.0, 4.0])
    >>> ax.get_title()
    'RMSE 1.414'
    """
    from matplotlib.ticker import MaxNLocator

    y, prediction = np.asarray(y, dtype=float), np.asarray(prediction, dtype=float)
    error = rmse(y, prediction)
    ax = axes_or_new(ax, (4.4, 4.2))
    low, high = min(y.min(), prediction.min()), max(y.max(), prediction.max())
    ax.plot([low, high], [low, high], color="0.6", lw=1, zorder=0)
    hit = np.full(len(y), True) if found is None else np.asarray(found, dtype=bool)
    label = None if found is None else "found"
    ax.plot(y[hit], prediction[hit], ".", color=COLOURS[0], ms=4, alpha=0.7, label=label)
    if found is not None:
        ax.plot(y[~hit], prediction[~hit], ".", color=COLOURS[1], ms=5, label="missed")
    for axis in (ax.xaxis, ax.yaxis):  # long numbers would run into each other
        axis.set_major_locator(MaxNLocator(5))
    ax.set_title(f"RMSE {error:.4g}", fontsize=10)
    return tidy(ax, legend=found is not None, xlabel="observed", ylabel="predicted")


def calibration(
    correct: Truths, probability: Numbers, *, n_bins: Count = 10, ax: Axes | None = None
) -> Axes:
    """Draw the share of events that happened against their predicted probability.

    Bins have equal counts; bars are 95 % intervals of a share (Wilson's). The title is the expected
    calibration error, ``Σ_b n_b/n · |mean y − mean p|`` over the bins.

    Parameters
    ----------
    correct : array of shape (n,), 0 or 1
        Whether the event happened, such as ``y == model.classes_[1]``.
    probability : array of shape (n,)
        Predicted probability of the event, such as ``model.predict_proba(X)[:, 1]``.
    n_bins : int
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> ax = calibration([0, 1, 1, 1], [0.25, 0.25, 1.0, 1.0], n_bins=2)
    >>> ax.get_title()
    'calibration error 0.125'
    """
    happened, given = np.asarray(correct, dtype=float), np.asarray(probability, dtype=float)
    if happened.ndim != 1 or happened.shape != given.shape or len(happened) == 0:
        raise ValueError(
            f"correct and probability must be 1-D of one length, got {happened.shape} and "
            f"{given.shape}."
        )
    if not (np.isin(happened, (0, 1)).all() and ((given >= 0) & (given <= 1)).all()):
        raise ValueError("correct must be 0 or 1, probability between 0 and 1.")
    bins = np.array_split(np.argsort(given, kind="stable"), min(n_bins, len(given)))
    size = np.array([len(part) for part in bins])
    mean = np.array([given[part].mean() for part in bins])
    share = np.array([happened[part].mean() for part in bins])
    ax = axes_or_new(ax, (4.4, 4.2))
    ax.plot([0, 1], [0, 1], color="0.6", lw=1, zorder=0)
    ax.errorbar(
        mean,
        share,
        np.abs(_wilson(share, size) - share),
        fmt="o-",
        color=COLOURS[0],
        ms=5,
        lw=1,
        capsize=2,
    )
    error = float((size * np.abs(share - mean)).sum() / size.sum())
    ax.set_title(f"calibration error {error:.3f}", fontsize=10)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    return tidy(ax, xlabel="predicted probability", ylabel="share that happened")


def _wilson(share: np.ndarray, size: np.ndarray, level: float = 0.95) -> np.ndarray:
    """Return the ends of Wilson's intervals of shares of `size` events, (2, n)."""
    z2 = norm.ppf(0.5 + level / 2) ** 2
    half = np.sqrt(z2 * (share * (1 - share) / size + z2 / (4 * size**2)))
    ends = np.stack([share + z2 / (2 * size) - half, share + z2 / (2 * size) + half])
    return ends / (1 + z2 / size)


def row_reliability(
    certainty: Any, row_labels: Any, *, n_bins: Count = 10, ax: Axes | None = None
) -> Axes:
    """Draw how often located rows are the active ones against how sure the model was of them.

    On the line, weights are posterior probabilities; below it, they are too large.

    Parameters
    ----------
    certainty : Certainty
        Such as ``model.certainty(X)``.
    row_labels : int array of shape (n,) or (n, n_heads)
        The active rows.
    n_bins : int
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> from diagatt.certainty import Certainty
    >>> one = np.ones((4, 1))
    >>> found = Certainty(0 * one.astype(int), 0.5 * one, one, one < 0, [])
    >>> row_reliability(found, [0, 0, 1, 1], n_bins=1).get_title()
    'calibration error 0.000'
    """
    located = np.asarray(certainty.rows)
    labels = np.asarray(row_labels).reshape(located.shape)
    hit, weight = (located == labels).ravel(), np.clip(certainty.posterior, 0, 1).ravel()
    ax = calibration(hit, weight, n_bins=n_bins, ax=ax)
    return tidy(ax, xlabel="weight of the located row", ylabel="share that is active")
