"""Coefficients with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import norm

from diagatt.plots.canvas import COLOURS, axes_or_new, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["coefficients"]


def coefficients(
    summary: Any, *, level: float = 0.95, most: int = 30, ax: Axes | None = None
) -> Axes:
    """Draw estimates with their Wald intervals, ``estimate ± z·s.e.``; without s.e. the point.

    Parameters
    ----------
    summary : Summary
        As in ``model.summary()``.
    level : float
        Of the intervals.
    most : int
        Lines to draw; of more coefficients, those with the largest absolute estimates.
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
    kept = np.sort(np.argsort(-size, kind="stable")[:most])
    lines = [lines[k] for k in kept]
    ax = axes_or_new(ax, (5.5, 0.9 + 0.26 * len(lines)))
    sources = list(dict.fromkeys(line["head"] for line in lines))
    reach = norm.ppf(0.5 + level / 2)
    for k, line in enumerate(lines):
        hue = COLOURS[sources.index(line["head"]) % len(COLOURS)]
        ax.plot(line["estimate"], k, "o", color=hue, ms=5)
        if np.isfinite(line["se"]):
            half = reach * line["se"]
            ax.plot([line["estimate"] - half, line["estimate"] + half], [k, k], color=hue, lw=1.8)
    ax.axvline(0, color="0.6", lw=1, zorder=0)
    names = [f"{line['head']}  {line['feature']}" for line in lines]
    ax.set_yticks(np.arange(len(lines)), names, parse_math=False)
    ax.invert_yaxis()
    known = any(np.isfinite(line["se"]) for line in lines)
    ax.set_xlabel(f"estimate, {100 * level:g} % interval" if known else "estimate")
    return tidy(ax)
