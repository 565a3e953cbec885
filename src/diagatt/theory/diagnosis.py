"""What a diagnosis reports: numbers, a sentence a head, and a picture."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from diagatt.theory.guarantees import LocalizationGuarantee
from diagatt.theory.moments import Moments

__all__ = ["Diagnosis", "HeadDiagnosis"]


@dataclass(frozen=True)
class HeadDiagnosis:
    """Localization of one head's row, estimated from data.

    Attributes
    ----------
    head, signal_class : int
        Head and the column of ``rows`` it is judged on, counted from 0.
    active, background : Moments
        Estimated moments of the head's active rows and of background rows.
    gap, gap_se : float
        Estimated score gap over the strongest competitor, and its standard error.
    radius : float
        Estimated concentration radius at level η.
    guarantee : LocalizationGuarantee
        The localization theorem, and the lemma behind it, at this gap and radius.
    bound : float
        Bound on the share of mislocalized samples implied by gap and deviations.
    empirical_error : float
        Observed share of mislocalized samples; NaN if true rows are not known.
    softmax_error : float
        Observed mean distance of the weights from the indicator of the active row.
    source : str
        Where the scores come from.
    active_scores, background_scores : ndarray
    """

    head: int
    signal_class: int
    active: Moments
    background: Moments
    gap: float
    gap_se: float
    radius: float
    guarantee: LocalizationGuarantee
    bound: float
    empirical_error: float
    softmax_error: float
    source: str
    active_scores: np.ndarray = field(repr=False)
    background_scores: np.ndarray = field(repr=False)

    @property
    def localizable(self) -> bool:
        """Whether the localization theorem, or the lemma behind it, applies."""
        return self.guarantee.holds or self.guarantee.holds_sharp

    @property
    def verdict(self) -> str:
        """One plain sentence."""
        needed, sharp = self.guarantee.needed, self.guarantee.needed_sharp
        observed = (
            "observed error unknown, and the gap optimistic: the labels are the model's own choices"
            if np.isnan(self.empirical_error)
            else f"observed {self.empirical_error:.1%}"
        )
        if self.gap <= 0:
            return f"not localizable by these scores: gap {self.gap:.3g} ≤ 0; {observed}."
        if np.isinf(self.radius):
            enough = int(np.ceil(1 / self.guarantee.eta)) - 1
            return (
                f"no guarantee: {len(self.active_scores)} samples are too few for a radius at "
                f"η = {self.guarantee.eta:g}, at least {enough} are needed; {observed}."
            )
        if self.localizable:
            share = min(self.guarantee.eta, self.bound)
            least = needed if self.guarantee.holds else sharp
            return (
                f"localizable: gap {self.gap:.1f} ≥ needed {least:.1f}; "
                f"expected mislocalized ≤ {share:.1%}, {observed}."
            )
        if self.gap > 2 * self.radius:
            # At gap δ and radius r, colder by a factor c gives c(δ − 2r) ≥ log((p − 1)/ε).
            factor = (sharp - 2 * self.radius) / (self.gap - 2 * self.radius)
            return (
                f"row found, weights blurred: gap {self.gap:.3g} < needed {sharp:.3g} for the "
                f"softmax, divide the temperature by {factor:.3g}; "
                f"expected mislocalized ≤ {self.bound:.1%}, {observed}."
            )
        return (
            f"no guarantee: gap {self.gap:.3g} < needed {sharp:.3g}, scores fluctuate too much; "
            f"expected mislocalized ≤ {self.bound:.1%}, {observed}."
        )


@dataclass(frozen=True)
class Diagnosis:
    """Diagnoses of all heads; ``print`` it for the verdicts.

    Attributes
    ----------
    heads : tuple of HeadDiagnosis
    """

    heads: tuple[HeadDiagnosis, ...]

    @property
    def localizable(self) -> bool:
        """Whether every head is localizable."""
        return all(head.localizable for head in self.heads)

    def __str__(self) -> str:
        return "\n".join(f"head {head.head}: {head.verdict}" for head in self.heads)

    def plot(self, ax: Any = None) -> Any:
        """Draw the score distributions of active and background rows, one panel a head.

        Parameters
        ----------
        ax : matplotlib axes, or a sequence of one a head, optional

        Returns
        -------
        axes, or an array of axes if there are several heads
        """
        if ax is None:
            from matplotlib import pyplot

            size = (4.6 * len(self.heads), 3.4)
            _, ax = pyplot.subplots(1, len(self.heads), figsize=size, layout="constrained")
        panels = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
        if len(panels) != len(self.heads):
            raise ValueError(f"{len(panels)} axes for {len(self.heads)} heads: give one a head.")
        for head, axes in zip(self.heads, panels, strict=True):
            _draw_scores(axes, head)
        return ax


def _draw_scores(axes: Any, head: HeadDiagnosis) -> None:
    both = np.concatenate([head.active_scores, head.background_scores])
    edges = np.histogram_bin_edges(both, bins=60)
    groups = (("background", head.background_scores, "0.55"), ("active", head.active_scores, "C1"))
    for name, scores, colour in groups:
        # Shares of the group, not counts: a sample has one active row and many others.
        weights = np.full(len(scores), 1 / max(len(scores), 1))
        axes.hist(scores, bins=edges, weights=weights, color=colour, alpha=0.65, label=name)
        axes.axvline(scores.mean(), color=colour, linestyle="--", linewidth=1.2)
    axes.set_xlabel(f"score of head {head.head}")
    axes.set_ylabel("share of rows")
    state = "localizable" if head.localizable else "no guarantee"
    axes.set_title(
        f"{state}: gap {head.gap:.3g}, needed {head.guarantee.needed_sharp:.3g}", fontsize="medium"
    )
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
