"""The best separating matrix for each class, and its scale in diagonalized attention."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from diagatt.theory.guarantees import sufficient_gap
from diagatt.theory.moments import Moments, envelope, score_gap, score_variance
from diagatt.theory.multi_head import separate_head
from diagatt.theory.separators import (
    SeparatingMatrix,
    second_moment_separator,
    single_head_subspace_separator,
)
from diagatt.theory.whitening import SeparationError, informative_subspace


def separating_start(
    classes: Sequence[Moments],
    background: Moments,
    *,
    p_max: int = 100,
    epsilon: float = 0.1,
    divisor: float | None = None,
) -> np.ndarray:
    """Return one separating matrix per head, (R, d, d), scaled for a softmax of temperature 1.

    Parameters
    ----------
    classes : sequence of Moments
        Estimated moments of the active rows of each head, for instance from
        :func:`class_moments`.
    background : Moments
    p_max : int
        Largest count of rows in a sample.
    epsilon : float
        Softmax error that the expected scores should reach: the temperature is set so that the
        gap is ``2 log((p_max − 1)/ε)``.
    divisor : float, optional
        What divides ``xWxᵀ`` before the softmax; √d, as in diagonalized attention, by default. The
        matrices are multiplied by it.

    Examples
    --------
    >>> active, background = Moments(np.zeros(4), 3 * np.eye(4)), Moments(np.zeros(4), np.eye(4))
    >>> W = separating_start([active], background, p_max=11, epsilon=0.1)
    >>> W.shape, round(score_gap(W[0] / 2, active, [background]), 3)  # √d = 2; 2 log(10 / 0.1)
    ((1, 4, 4), 9.21)
    """
    scale = np.sqrt(background.n_features) if divisor is None else divisor
    target = max(sufficient_gap(0.0, p_max, epsilon), 1.0)
    matrices = []
    for k, found in enumerate(best_separators(classes, background)):
        gap = score_gap(found.W, classes[k], _other_classes(classes, background, k))
        matrices.append(found.W * (scale * target / gap))
    return np.stack(matrices)


def best_separators(classes: Sequence[Moments], background: Moments) -> list[SeparatingMatrix]:
    """Return, for each class, the construction whose gap stands out most from the noise (τ = 1).

    Candidates are the informative-subspace versions of the covariance constructions (single-head
    and multi-head) and of the second-moment construction; the winner has the largest
    ``gap / √(Var_active + Var_background)`` under Gaussian rows.

    Raises
    ------
    SeparationError
        If no candidate has a positive gap for some class.

    Examples
    --------
    >>> by_mean = Moments([5.0, 0.0], np.eye(2))  # no covariance contrast at all
    >>> best_separators([by_mean], Moments(np.zeros(2), np.eye(2)))[0].theorem
    'S2.1: heterogeneous inactive rows by second moments'
    """
    chosen = []
    for k, active in enumerate(classes):
        others = _other_classes(classes, background, k)
        best: tuple[float, SeparatingMatrix | None] = (0.0, None)
        for candidate in _candidates(classes, background, k):
            noise = score_variance(candidate.W, active) + score_variance(candidate.W, background)
            ratio = score_gap(candidate.W, active, others) / np.sqrt(noise)
            if ratio > best[0]:
                best = (float(ratio), candidate)
        if best[1] is None:
            message = (
                f"no construction separates class {k}: its rows vary no more than the others in "
                "any direction, so second moments do not tell them apart."
            )
            raise SeparationError(message, condition="score gap > 0", value=0.0, head=k)
        chosen.append(best[1])
    return chosen


def _candidates(
    classes: Sequence[Moments], background: Moments, k: int
) -> Iterator[SeparatingMatrix]:
    """Yield the constructions for class k whose conditions hold."""
    active, deltas = classes[k], [c.covariance - background.covariance for c in classes]
    attempts: list[Callable[[], SeparatingMatrix]] = []
    basis = informative_subspace(deltas[k], _invertible(background.covariance))
    if basis.shape[1]:
        attempts.append(partial(single_head_subspace_separator, active, background, basis))
    if basis.shape[1] and len(classes) > 1:
        means = np.column_stack([background.mean, *(c.mean for c in classes)])
        attempts.append(partial(separate_head, k, deltas, means, basis=basis, theorem="S2.3"))
    others = [r.second_moment for r in _other_classes(classes, background, k)]
    for upper in (background.second_moment, envelope(others)):
        inside = informative_subspace(active.second_moment - upper, _invertible(upper))
        if inside.shape[1]:
            attempts.append(partial(second_moment_separator, active, upper, basis=inside))
    for attempt in attempts:
        try:
            yield attempt()
        except SeparationError:
            continue


def _other_classes(classes: Sequence[Moments], background: Moments, k: int) -> list[Moments]:
    return [background, *(c for j, c in enumerate(classes) if j != k)]


def _invertible(matrix: np.ndarray) -> np.ndarray:
    """Add a small ridge, which an estimated covariance of rank below d needs."""
    return matrix + (1e-8 * np.trace(matrix) / len(matrix) + 1e-300) * np.eye(len(matrix))
