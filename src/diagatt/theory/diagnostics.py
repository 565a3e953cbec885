"""Can these rows be localized? Gap, radius and bound estimated from data."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from diagatt.ragged import RaggedRows
from diagatt.theory.diagnosis import Diagnosis, HeadDiagnosis
from diagatt.theory.evidence import Evidence, score_evidence, top_rows
from diagatt.theory.guarantees import localization_guarantee, sufficient_gap
from diagatt.theory.labelled import class_moments, group_moments, row_groups
from diagatt.theory.moments import Moments
from diagatt.theory.start import best_separators

__all__ = ["diagnose"]


def diagnose(
    X: Any,
    rows: Any = None,
    model: Any = None,
    *,
    eta: float = 0.05,
    epsilon: float = 0.1,
    temperature: float | None = None,
    test_fraction: float = 0.5,
    random_state: int | None = 0,
) -> Diagnosis:
    """Estimate, per head, what the localization theorems say about these rows.

    The radius is the one Assumption "concentration condition" asks for, estimated: over samples,
    the ⌈(n + 1)(1 − η)⌉-th smallest of ``max_j |ψ_j − mean score of row j's class|``. With gap δ,
    every sample whose deviation is below δ/2 has its row located (lemma S1.1), so the bound on
    mislocalized samples is ``(1 + #{deviation ≥ δ/2})/(n + 1)``.

    Parameters
    ----------
    X : RaggedRows or anything it can be made from
    rows : int array of shape (n, s) or (n,), optional
        True rows. Without a model, scores come from the theory's own matrices, built on one part
        of the samples and judged on the other.
    model : fitted estimator, optional
        Has ``locate(X)``, (n, R), and ``scores(X)``, one (p_i, R) array a sample, such as
        `DiagAttRegressor`. With ``rows``, heads are matched to columns of ``rows`` by agreement.
        Without, its own choices serve as labels: the gap is then optimistic and the empirical
        error unknown.
    eta, epsilon : float
        Wanted: weights within ε of the truth in all but a share η of samples.
    temperature : float, optional
        Divides the scores. One by default for a model; for the theory's matrices, a quarter
        colder than the warmest temperature at which weights can be within ε.
    test_fraction : float
        Share of samples to judge on when no model is given; 0 judges on the samples used.
    random_state : int or None
        Seed of that split.

    Returns
    -------
    Diagnosis

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
    samples = RaggedRows.coerce(X)
    if model is not None:
        return _diagnose_model(samples, rows, model, eta, epsilon, temperature)
    if rows is None:
        raise ValueError("give rows (true row of each sample), a fitted model, or both.")
    packed, _ = row_groups(samples, rows)
    labels = packed - samples.offsets[:-1, None]  # (n, s), now checked
    fit, judge = _split(len(samples), test_fraction, random_state)
    classes, background = class_moments(samples[fit], labels[fit])
    found = best_separators(classes, background)
    samples, labels = samples[judge], labels[judge]
    packed, group = row_groups(samples, labels)
    p_max, heads = int(samples.lengths.max()), []
    for k, separator in enumerate(found):
        scores = separator.scores(samples.values)  # (N,) at τ = 1
        if temperature is None:
            unit = score_evidence(samples, scores, packed[:, k], group)
            tau = _temperature(unit.gap, unit.radius(eta), p_max, epsilon)
        else:
            tau = temperature
        evidence = score_evidence(samples, scores / tau, packed[:, k], group)
        error = float(np.mean(top_rows(samples, scores) != packed[:, k]))
        labelled = (k, k, classes[k], background, error, separator.theorem)
        heads.append(_report(evidence, *labelled, p_max, eta, epsilon))
    return Diagnosis(tuple(heads))


def _diagnose_model(
    samples: RaggedRows,
    rows: Any,
    model: Any,
    eta: float,
    epsilon: float,
    temperature: float | None,
) -> Diagnosis:
    located = np.asarray(model.locate(samples))  # (n, R)
    scores = np.concatenate(model.scores(samples)).astype(np.float64)  # (N, R)
    if scores.shape != (samples.n_rows, located.shape[1]):
        raise ValueError(
            f"model.scores gave shape {scores.shape}, expected ({samples.n_rows}, "
            f"{located.shape[1]}): one score a row and head, packed."
        )
    scores = scores / (1.0 if temperature is None else temperature)
    own = rows is None
    packed, group = row_groups(samples, located if own else rows, distinct=not own)
    found = located + samples.offsets[:-1, None]  # (n, R) packed
    classes, background = group_moments(samples, packed, group)
    agreement = np.mean(found[:, :, None] == packed[:, None, :], axis=0)  # (R, s)
    pairs = np.array(linear_sum_assignment(-agreement)).T
    p_max, heads = int(samples.lengths.max()), []
    for r, k in pairs if not own else [(r, r) for r in range(located.shape[1])]:
        error = float("nan") if own else float(np.mean(found[:, r] != packed[:, k]))
        evidence = score_evidence(samples, scores[:, r], packed[:, k], group)
        labelled = (int(r), int(k), classes[k], background, error, "fitted model")
        heads.append(_report(evidence, *labelled, p_max, eta, epsilon))
    return Diagnosis(tuple(heads))


def _report(
    evidence: Evidence,
    head: int,
    signal_class: int,
    active: Moments,
    background: Moments,
    error: float,
    source: str,
    p_max: int,
    eta: float,
    epsilon: float,
) -> HeadDiagnosis:
    radius = evidence.radius(eta)
    return HeadDiagnosis(
        head=head,
        signal_class=signal_class,
        active=active,
        background=background,
        gap=evidence.gap,
        gap_se=evidence.gap_se,
        radius=radius,
        guarantee=localization_guarantee(evidence.gap, radius, p_max, epsilon, eta),
        bound=evidence.bound(),
        empirical_error=error,
        softmax_error=evidence.softmax_error,
        source=source,
        active_scores=evidence.active,
        background_scores=evidence.background,
    )


def _temperature(gap: float, radius: float, p_max: int, epsilon: float) -> float:
    """Warm temperature at which the lemma holds, or else at which expected scores suffice."""
    threshold = max(sufficient_gap(0.0, p_max, epsilon, sharp=True), 1.0)  # log((p_max − 1)/ε)
    margin = gap - 2 * radius if gap > 2 * radius else abs(gap)
    # A quarter colder, so that the gap is met with room to spare.
    return margin / (1.25 * threshold) if margin > 0 else 1.0


def _split(n: int, test_fraction: float, seed: int | None) -> tuple[np.ndarray, np.ndarray]:
    if not 0 <= test_fraction < 1:
        raise ValueError(f"test_fraction must lie in [0, 1), got {test_fraction}.")
    everyone = np.arange(n)
    if test_fraction == 0:
        return everyone, everyone
    order = np.random.default_rng(seed).permutation(n)
    cut = min(max(round(n * test_fraction), 1), n - 2)
    if cut < 1:
        raise ValueError(f"{n} samples cannot be split: pass test_fraction=0 or more samples.")
    return np.sort(order[cut:]), np.sort(order[:cut])
