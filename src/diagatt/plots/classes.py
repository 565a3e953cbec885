"""How well classes are separated: the ROC curve and the table of confusions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import confusion_matrix, roc_auc_score, roc_curve

from diagatt import coerce
from diagatt.arguments import Labels, Numbers, Truths
from diagatt.plots.canvas import axes_or_new, colour, tidy
from diagatt.tables import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LONGEST = 14  # letters of a class name; longer names are cut


def roc(
    happened: Truths, probability: Numbers, *, label: str | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the receiver operating characteristic: hits against false alarms.

    Called again with the same axes, it adds a curve.

    Parameters
    ----------
    happened : array of shape (n,), 0 or 1
        Whether the event happened, such as ``y == model.classes_[1]``.
    probability : array of shape (n,)
        Predicted probability of the event, or any score of it.
    label : str, optional
        Name of the curve; the legend adds its AUC.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> ax = roc([0, 1, 1], [0.2, 0.4, 0.9], label="model")
    >>> ax.get_legend().get_texts()[0].get_text()
    'model (AUC 1.000)'
    """
    happened = np.asarray(happened, dtype=int)
    if len(np.unique(happened)) != 2:
        raise ValueError("a ROC curve needs samples with the event and samples without it.")
    alarms, hits, _ = roc_curve(happened, probability)
    area = f"AUC {roc_auc_score(happened, probability):.3f}"
    new = ax is None
    ax = axes_or_new(ax, (4.4, 4.2))
    if new or not ax.lines:
        ax.plot([0, 1], [0, 1], color="0.6", lw=1, zorder=0)
    hue = colour(len(ax.lines) - 1)
    ax.plot(alarms, hits, color=hue, lw=1.8, label=area if label is None else f"{label} ({area})")
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    tidy(ax, xlabel="false alarms (1 − specificity)", ylabel="hits (sensitivity)")
    ax.legend(frameon=False, fontsize=9, loc="lower right")
    return ax


def confusion(y: Labels, predicted: Labels, *, classes: Any = None, ax: Axes | None = None) -> Axes:
    r"""Draw how often each class was predicted for each true class: counts, shaded by share.

    Parameters
    ----------
    y, predicted : array of shape (n,)
        True and predicted classes.
    classes : array, optional
        All classes, in order; by default the classes that occur.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> ax = confusion(["ill", "well", "well"], ["ill", "ill", "well"])
    >>> [text.get_text() for text in ax.texts]
    ['1\n100 %', '0\n0 %', '1\n50 %', '1\n50 %']
    """
    true, found = (coerce.classes(given, len(y)) for given in (y, predicted))
    occurring = np.unique(np.concatenate([true, found]))
    known = occurring if classes is None else np.atleast_1d(np.asarray(classes))
    others = [one for one in occurring.tolist() if one not in known.tolist()]
    if others:
        raise ValueError(f"classes must hold all classes that occur, and lack {others[0]!r}.")
    counts = confusion_matrix(true, found, labels=known)
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    side = 2.2 + 0.62 * len(known)
    ax = axes_or_new(ax, (side, side))
    ax.imshow(share, vmin=0, vmax=1, cmap="Blues")
    for (i, j), count in np.ndenumerate(counts):
        ink = "white" if share[i, j] > 0.6 else "black"
        text = f"{count}\n{percent(share[i, j], 0)}"
        ax.text(j, i, text, ha="center", va="center", color=ink, fontsize=9)
    names = [_short(str(c)) for c in known]
    long = len(known) > 4 or max(map(len, names)) > 5
    turned: dict[str, Any] = {"rotation": 45, "ha": "right"} if long else {}
    ax.set_xticks(range(len(known)), names, parse_math=False, **turned)
    ax.set_yticks(range(len(known)), names, parse_math=False)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set(xlabel="predicted", ylabel="observed")
    accuracy = counts.trace() / max(counts.sum(), 1)
    ax.set_title(f"{percent(accuracy)} right", fontsize=10)
    return ax


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"
