"""Figures of times to an event: survival by risk group, baseline hazard, rows by hazard ratio."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from diagatt.lifetimes import read_times
from diagatt.plots.canvas import COLOURS, axes_or_new, colour, tidy
from diagatt.survival_metrics import kaplan_meier, log_rank

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def survival_by_risk(y: Any, risk: Any, *, n_groups: int = 3, ax: Axes | None = None) -> Axes:
    """Draw Kaplan and Meier's curves of samples with low, middle and high risk.

    Groups have equal counts; a band is ±2 standard errors. The title is the p-value of the log-rank
    test. Risks of samples that the model was fitted to look better than they are: pass others.

    Parameters
    ----------
    y : structured array, frame or mapping
        Events and times, as `DiagAttSurvival.fit` takes them; intervals count from their lower end.
    risk : array of shape (n,)
        Such as ``model.predict(X)``.
    n_groups : int
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> y = {"time": [1.0, 2.0, 3.0, 4.0], "event": [True, True, True, False]}
    >>> survival_by_risk(y, [4.0, 3.0, 2.0, 1.0], n_groups=2).get_xlabel()
    'time'
    """
    risks = np.asarray(risk, dtype=np.float64)
    times = read_times(y, len(risks))
    event, ends = np.isfinite(times[:, 2]), times[:, 1]
    if not 1 < n_groups <= len(risks):
        raise ValueError(f"n_groups must lie between 2 and {len(risks)}, got {n_groups}.")
    order = np.argsort(risks, kind="stable")
    group = np.empty(len(risks), dtype=int)
    for k, part in enumerate(np.array_split(order, n_groups)):
        group[part] = k
    ax = axes_or_new(ax, (5.5, 3.6))
    for k in range(n_groups):
        at, curve, error = kaplan_meier(event[group == k], ends[group == k])
        last = ends[group == k].max()
        x, s, e = np.r_[0, at, last], np.r_[1, curve, curve[-1:]], np.r_[0, error, error[-1:]]
        x = x[: len(s)] if len(curve) else np.array([0.0, last])
        s, e = (s, e) if len(curve) else (np.ones(2), np.zeros(2))
        name = f"{_words(k, n_groups)} risk ({(group == k).sum()})"
        ax.step(x, s, where="post", color=colour(k), label=name)
        low, high = np.clip(s - 2 * e, 0, 1), np.clip(s + 2 * e, 0, 1)
        ax.fill_between(x, low, high, step="post", color=colour(k), alpha=0.15, lw=0)
    p = log_rank(event, ends, group).p
    ax.set_title("log-rank p < 0.001" if p < 1e-3 else f"log-rank p = {p:.3f}", fontsize=10)
    ax.set_ylim(-0.02, 1.02)
    return tidy(ax, legend=True, xlabel="time", ylabel="share without event")


def _words(k: int, n_groups: int) -> str:
    if k == 0:
        return "low"
    if k == n_groups - 1:
        return "high"
    return "middle" if n_groups == 3 else f"part {k + 1}"


def baseline_hazard(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the cumulative hazard of a sample whose predictor is 0.

    Parameters
    ----------
    model : fitted DiagAttSurvival
    ax : matplotlib Axes, optional
    """
    import torch

    family, at = model._fitted_family()[0], model.unique_times_
    zero = torch.zeros(1, 1, dtype=torch.float64)
    hazard = -family.log_survival(torch.from_numpy(at)[None], zero)[0].numpy()
    ax = axes_or_new(ax, (5.5, 3.2))
    steps = np.r_[0, at], np.r_[0, hazard]
    where = "steps-post" if family.couples_samples else "default"
    ax.plot(*steps, drawstyle=where, color=COLOURS[0])
    return tidy(ax, xlabel="time", ylabel="cumulative baseline hazard")


def hazard_ratios(
    model: Any, sample: Any, *, head: int = 0, most: int = 15, ax: Axes | None = None
) -> Axes:
    r"""Draw the rows of a sample by their hazard ratio; larger points have more attention.

    The hazard ratio of row j is :math:`e^{⟨v, x_j⟩ - \sum_l κ_l ⟨v, x_l⟩}`: how many times as large
    the hazard would be if the row had all the attention of the head. For a "weibull" model, whose
    log times have the scale σ, the exponent is divided by −σ.

    Parameters
    ----------
    model : fitted DiagAttSurvival
        Its family is "cox" or "weibull"; other families have no proportional hazards.
    sample : array of shape (p, d)
    head : int
    most : int
        Largest count of rows to draw; those with the most attention are drawn.
    ax : matplotlib Axes, optional
    """
    import torch

    from diagatt.attention.row_terms import row_terms

    family = model._fitted_family()[0]
    per_unit = family.log_hazard_per_unit
    if per_unit is None:
        raise ValueError(
            f"the {family.name} family has no proportional hazards: fit family='cox' or 'weibull'."
        )
    _, module, values, offsets = model._packed([sample])
    none = values.new_zeros(1, model.n_covariates_)
    with torch.no_grad():
        terms = row_terms(module, values, offsets, none)
    kappa = terms.weights()[:, head].numpy()
    effect = terms.effects[:, head, 0].numpy()
    log_ratio = per_unit * (effect - kappa @ effect)
    drawn = np.argsort(-kappa, kind="stable")[:most]
    drawn = drawn[np.argsort(log_ratio[drawn], kind="stable")]
    ax = axes_or_new(ax, (5.5, 0.8 + 0.25 * len(drawn)))
    places = np.arange(len(drawn))
    ax.scatter(np.exp(log_ratio[drawn]), places, s=10 + 150 * kappa[drawn], color=colour(head))
    ax.axvline(1.0, color="0.7", lw=0.8, zorder=0)
    ax.set_xscale("log")
    ax.set_yticks(places, [f"row {j}" for j in drawn])
    return tidy(ax, xlabel="hazard ratio of the row", ylabel="")
