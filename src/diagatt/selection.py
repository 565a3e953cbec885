"""Choice among candidates by their loss on held-out samples (supplement S7.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

Candidate = TypeVar("Candidate")


def splits(n_samples: int, scheme: str | int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the indices of training and held-out samples.

    Parameters
    ----------
    n_samples : int
    scheme : "holdout" or int
        "holdout" holds out n/8 random samples once; an int is the number of cross-validation folds.
    seed : int

    Examples
    --------
    >>> [(len(a), len(b)) for a, b in splits(80, "holdout", 0)]
    [(70, 10)]
    >>> [(len(a), len(b)) for a, b in splits(80, 4, 0)]
    [(60, 20), (60, 20), (60, 20), (60, 20)]
    """
    order = np.random.default_rng(seed).permutation(n_samples)
    if scheme == "holdout":
        parts = [order[: max(1, n_samples // 8)]]
    elif isinstance(scheme, int) and 2 <= scheme <= n_samples:
        parts = np.array_split(order, scheme)
    else:
        raise ValueError(
            f"selection must be 'holdout' or a number of folds from 2 to n = {n_samples}, "
            f"got {scheme!r}."
        )
    if n_samples < 2:
        raise ValueError("choosing a model needs at least 2 samples, got n_samples = 1.")
    for held_out in parts:
        yield np.setdiff1d(order, held_out), np.sort(held_out)


def select(
    candidates: Sequence[Candidate],
    loss: Callable[[Candidate, np.ndarray, np.ndarray], float],
    n_samples: int,
    scheme: str | int,
    seed: int,
) -> tuple[Candidate, list[dict[str, Any]]]:
    """Return the candidate with the smallest mean held-out loss, and the losses of all.

    Parameters
    ----------
    candidates : sequence
    loss : callable
        ``loss(candidate, train, held_out)`` fits to the training samples and returns the mean
        loss on the held-out ones.
    n_samples, scheme, seed
        As in `splits`.
    """
    # Fold by fold: candidates may share what they need of its samples, and one is kept at a time.
    by_fold = [
        [float(loss(candidate, train, held_out)) for candidate in candidates]
        for train, held_out in splits(n_samples, scheme, seed)
    ]
    report: list[dict[str, Any]] = [
        {"candidate": candidate, "loss": float(np.mean(losses)), "folds": list(losses)}
        for candidate, losses in zip(candidates, zip(*by_fold, strict=True), strict=True)
    ]
    means = np.array([r["loss"] for r in report])
    return candidates[int(np.argmin(np.where(np.isfinite(means), means, np.inf)))], report
