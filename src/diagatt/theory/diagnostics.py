"""Can these rows be localized? Gap, radius and bound estimated from data, with a plain verdict."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment

from diagatt.arguments import Seed
from diagatt.localization import top_rows
from diagatt.plots.canvas import axes_or_new, tidy
from diagatt.ragged import RaggedRows
from diagatt.segments import segment_softmax
from diagatt.theory.guarantees import LocalizationGuarantee, localization_guarantee, sufficient_gap
from diagatt.theory.moments import Moments, class_moments, group_moments, row_groups
from diagatt.theory.separators import SeparatingMatrix
from diagatt.theory.start import best_separators


@dataclass(frozen=True)
class HeadDiagnosis:
    """Localization of one head's row, estimated from data."""

    head: int
    signal_class: int  #: Column of ``rows`` that the head is judged on, counted from 0.
    active: Moments  #: Estimated moments of the head's active rows.
    background: Moments  #: Estimated moments of background rows.
    gap: float  #: Mean active score less the largest mean score of a competing class.
    gap_se: float  #: Standard error of the gap.
    radius: float  #: Estimated concentration radius at level η.
    guarantee: LocalizationGuarantee  #: The theorem, and its lemma, at this gap and radius.
    bound: float  #: Bound on the share of mislocalized samples, from gap and deviations.
    empirical_error: float  #: Observed share of mislocalized samples; NaN without true rows.
    softmax_error: float  #: Mean distance of the weights from the indicator of the active row.
    source: str  #: Where the scores come from.
    active_scores: np.ndarray = field(repr=False)
    background_scores: np.ndarray = field(repr=False)

    @property
    def localizable(self) -> bool:
        """Whether the localization theorem, or the lemma behind it, applies."""
        return self.guarantee.holds or self.guarantee.holds_sharp

    @property
    def verdict(self) -> str:
        """What was found, in one plain sentence."""
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
    """Diagnoses of all heads: one `HeadDiagnosis` per head in ``heads``, all verdicts in `str`."""

    heads: tuple[HeadDiagnosis, ...]

    @property
    def localizable(self) -> bool:
        """Whether every head is localizable."""
        return all(head.localizable for head in self.heads)

    def __str__(self) -> str:
        return "\n".join(f"head {head.head}: {head.verdict}" for head in self.heads)

    def plot(self, ax: Any = None) -> Any:
        """Draw the score distributions of active and background rows, one panel per head.

        ``ax`` is a matplotlib axes, or a sequence with one per head; by default new ones are made.
        The axes are returned.
        """
        if ax is None:
            figure = axes_or_new(None, (4.6 * len(self.heads), 3.4)).figure
            figure.clear()
            ax = figure.subplots(1, len(self.heads))
        panels = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
        if len(panels) != len(self.heads):
            raise ValueError(f"{len(panels)} axes for {len(self.heads)} heads: give one per head.")
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
    state = "localizable" if head.localizable else "no guarantee"
    title = f"{state}: gap {head.gap:.3g}, needed {head.guarantee.needed_sharp:.3g}"
    axes.set_title(title, fontsize="medium")
    tidy(axes, legend=True, xlabel=f"score of head {head.head}", ylabel="share of rows")


def diagnose(
    X: Any,
    rows: Any = None,
    model: Any = None,
    *,
    eta: float = 0.05,
    epsilon: float = 0.1,
    temperature: float | None = None,
    test_fraction: float = 0.5,
    random_state: Seed = 0,
) -> Diagnosis:
    """Estimate, per head, what the localization theorems say about these rows.

    The radius estimates the one of the Assumption "concentration condition": it is the
    ⌈(n + 1)(1 − η)⌉-th smallest of ``max_j |ψ_j − mean score of row j's class|`` over samples.
    With gap δ, the row of every sample whose deviation is below δ/2 is located (lemma S1.1), so the
    bound on mislocalized samples is ``(1 + #{deviation ≥ δ/2})/(n + 1)``.

    Parameters
    ----------
    X : RaggedRows or anything it can be made from
    rows : int array of shape (n, s) or (n,), optional
        True rows. Without a model, scores come from the theory's own matrices, built on one part
        of the samples and judged on the other.
    model : fitted estimator, optional
        Has ``locate(X)``, (n, R), and ``scores(X)``, one (p_i, R) array per sample, such as
        `DiagAttRegressor`. With ``rows``, heads are matched to columns of ``rows`` by agreement.
        Without ``rows``, the model's own choices serve as labels: the gap is then optimistic and
        the empirical error unknown.
    eta, epsilon : float
        The guarantee that is asked for: weights are within ε of the truth in all but a share η of
        samples.
    temperature : float, optional
        It divides the scores. The default is 1 for a model; for the theory's matrices it is a
        quarter colder than the warmest temperature at which weights can be within ε.
    test_fraction : float
        Share of samples that the theory's matrices are judged on; with 0 they are judged on the
        samples that they were built on.
    random_state : int or None
        Seed of that split.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((400, 8, 60)) * 0.3  # 400 samples of 8 rows, 60 features
    >>> rows = rng.integers(8, size=400)
    >>> X[np.arange(400), rows] *= 8
    >>> found = diagnose(X, rows)
    >>> found.heads[0].empirical_error, bool(found.heads[0].bound < 0.05)
    (0.0, True)
    """
    samples, built = RaggedRows.coerce(X), None
    if model is None:
        if rows is None:
            raise ValueError("pass rows (the true row of each sample), a fitted model, or both.")
        labels = row_groups(samples, rows)[0] - samples.offsets[:-1, None]  # (n, s), checked
        fit, judge = _split(len(samples), test_fraction, random_state)
        built = class_moments(samples[fit], labels[fit])
        model, samples, rows = _Matrices(best_separators(*built)), samples[judge], labels[judge]
    located = np.asarray(model.locate(samples))  # (n, R)
    scores = np.concatenate(model.scores(samples)).astype(np.float64)  # (N, R)
    if scores.shape != (samples.n_rows, located.shape[1]):
        raise ValueError(
            f"model.scores gave shape {scores.shape}, expected ({samples.n_rows}, "
            f"{located.shape[1]}): one score per row and head, packed."
        )
    own = rows is None
    packed, group = row_groups(samples, located if own else rows, distinct=not own)
    classes, background = built or group_moments(samples, packed, group)
    located = located + samples.offsets[:-1, None]  # packed, too
    pairs = [(r, r) for r in range(located.shape[1])]
    if not (own or built):
        agreement = np.mean(located[:, :, None] == packed[:, None, :], axis=0)  # (R, s)
        pairs = np.array(linear_sum_assignment(-agreement)).T.tolist()
    heads = []
    for r, k in pairs:
        about = (samples, packed[:, k], group, eta, epsilon)
        tau = 1.0 if temperature is None else temperature
        if built and temperature is None:
            unit = _score_facts(scores[:, r], *about)["guarantee"]
            tau = _temperature(unit, int(samples.lengths.max()))
        heads.append(
            HeadDiagnosis(
                head=r,
                signal_class=k,
                active=classes[k],
                background=background,
                empirical_error=np.nan if own else float(np.mean(located[:, r] != packed[:, k])),
                source=model.separators[r].theorem if built else "fitted model",
                **_score_facts(scores[:, r] / tau, *about),
            )
        )
    return Diagnosis(tuple(heads))


@dataclass(frozen=True)
class _Matrices:
    """The theory's own matrices, which score and locate as a model does."""

    separators: list[SeparatingMatrix]

    def scores(self, samples: RaggedRows) -> list[np.ndarray]:
        columns = [separator.scores(samples.values) for separator in self.separators]
        return [np.column_stack(columns)]  # all samples in one array

    def locate(self, samples: RaggedRows) -> np.ndarray:
        columns = self.scores(samples)[0].T
        return np.hstack([top_rows(column, samples.offsets, 1) for column in columns])


def _score_facts(
    scores: np.ndarray,
    samples: RaggedRows,
    active: np.ndarray,
    group: np.ndarray,
    eta: float,
    epsilon: float,
) -> dict[str, Any]:
    """Return what the packed scores (N,) of one head show, as fields of a `HeadDiagnosis`.

    ``active`` (n,) are the packed positions of the head's active rows, which count as a class of
    their own; ``group`` (N,) is the class of every row, 0 for background.
    """
    own = int(group.max()) + 1
    group = group.copy()
    group[active] = own
    counts = np.bincount(group)  # (own + 1,)
    present = np.flatnonzero(counts)
    means = np.bincount(group, weights=scores) / np.maximum(counts, 1)
    centred = scores - means[group]  # (N,)
    spread = np.bincount(group, weights=centred**2) / np.maximum(counts - 1, 1)
    others = present[present != own]
    if len(others) == 0:
        raise ValueError(
            "every sample has one row: pass samples with other rows to compare active rows with."
        )
    rival = others[np.argmax(means[others])]
    gap = float(means[own] - means[rival])
    deviations = np.maximum.reduceat(np.abs(centred), samples.offsets[:-1])  # (n,)
    n, order = len(deviations), int(np.ceil((len(deviations) + 1) * (1 - eta)))
    # A fresh sample exceeds it with probability at most η; infinite if n is too small for this η.
    radius = float(np.sort(deviations)[order - 1]) if order <= n else float("inf")
    weights = segment_softmax(torch.from_numpy(scores), torch.tensor(samples.offsets)).numpy()
    p_max = int(samples.lengths.max())
    return {
        "gap": gap,
        "gap_se": float(np.sqrt(spread[own] / counts[own] + spread[rival] / counts[rival])),
        "radius": radius,
        "guarantee": localization_guarantee(gap, radius, p_max, epsilon, eta),
        "bound": float((1 + np.sum(deviations >= gap / 2)) / (n + 1)) if gap > 0 else 1.0,
        # The active weight's distance from one is the sum of all others: the largest entry.
        "softmax_error": float(np.mean(1 - weights[active])),
        "active_scores": scores[active],
        "background_scores": scores[group == 0],
    }


def _temperature(unit: LocalizationGuarantee, p_max: int) -> float:
    """Return a warm temperature at which the lemma holds, or else expected scores suffice."""
    threshold = max(sufficient_gap(0.0, p_max, unit.epsilon, sharp=True), 1.0)  # log((p − 1)/ε)
    margin = unit.gap - 2 * unit.radius if unit.gap > 2 * unit.radius else abs(unit.gap)
    # A quarter colder, so that the gap is met with room to spare.
    return margin / (1.25 * threshold) if margin > 0 else 1.0


def _split(n: int, test_fraction: float, seed: Seed) -> tuple[np.ndarray, np.ndarray]:
    """Return the samples to build the matrices on, and those to judge them on."""
    if not 0 <= test_fraction < 1:
        raise ValueError(f"test_fraction must lie in [0, 1), got {test_fraction}.")
    if test_fraction == 0:
        return np.arange(n), np.arange(n)
    order = np.random.default_rng(seed).permutation(n)
    cut = min(max(round(n * test_fraction), 1), n - 2)
    if cut < 1:
        raise ValueError(f"{n} samples cannot be split: pass test_fraction=0 or more samples.")
    return np.sort(order[cut:]), np.sort(order[:cut])
