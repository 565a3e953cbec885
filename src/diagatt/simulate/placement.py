r"""Exact posterior of the heads' distinct rows, by a forward-backward pass over the rows.

Heads 1..s sit on distinct rows of a sample; the placement ``(j_1, …, j_s)`` has weight
``exp(Σ_k ℓ[j_k, k])``. If rows are read one after the other, the state is the set A of heads
already placed: ``2^s`` states instead of ``p^s`` placements,

    F_t[A] = F_{t−1}[A] + Σ_{k ∈ A} F_{t−1}[A∖k] · exp(ℓ[t, k]),

``B`` is the same from the other end, and

    P(j_k = t) ∝ exp(ℓ[t, k]) · Σ_{A ∌ k} F_{t−1}[A] · B_{t+1}[rest].

All sums have positive terms and are kept as logarithms: nothing cancels, nothing overflows.
"""

from __future__ import annotations

import numpy as np
import torch

from diagatt.segments import sample_blocks

__all__ = ["placement_posterior"]

_BLOCK_STATES = 2**22  # 32 MB of forward states per block


def placement_posterior(log_weights: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return the posterior of each head's row, given that heads sit on distinct rows.

    Parameters
    ----------
    log_weights : ndarray of shape (n_rows, s)
        ``ℓ``, the log density ratio of each row under each head against the background.
    offsets : ndarray of shape (n_samples + 1,)

    Returns
    -------
    ndarray of shape (n_rows, s)
        Sums to one within each sample and head.

    Examples
    --------
    Both heads prefer row 0; head 1 does so more strongly, so head 0 mostly sits elsewhere.

    >>> import numpy as np
    >>> weights = np.log([[8.0, 64.0], [1.0, 1.0], [1.0, 1.0]])
    >>> placement_posterior(weights, np.array([0, 3])).round(3)
    array([[0.11 , 0.877],
           [0.445, 0.062],
           [0.445, 0.062]])
    """
    posterior = np.empty(log_weights.shape)
    step = max(1, _BLOCK_STATES >> log_weights.shape[1])
    for samples, rows in sample_blocks(torch.tensor(offsets), step):
        cuts = offsets[samples.start : samples.stop + 1] - rows.start
        posterior[rows] = _forward_backward(log_weights[rows], cuts)
    return posterior


def _forward_backward(log_weights: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    lengths = np.diff(offsets)
    order = np.argsort(-lengths, kind="stable")
    starts = offsets[:-1][order]  # longest first: the first reach[t] samples have a row t
    reach = np.searchsorted(-lengths[order], -np.arange(lengths.max()), side="left")
    weights = np.ascontiguousarray(log_weights.T)  # (s, N)
    s = len(weights)

    before = np.empty((2**s, offsets[-1]))  # forward states just before each row
    state = _nothing_placed(s, len(lengths))
    for t, n_t in enumerate(reach):
        at = starts[:n_t] + t
        before[:, at] = state[:, :n_t]
        state[:, :n_t] = _read_row(state[:, :n_t], weights[:, at])
    total = state[-1]  # (n,) log weight of all placements

    posterior = np.empty(log_weights.shape)
    state = _nothing_placed(s, len(lengths))
    for t in range(len(reach) - 1, -1, -1):
        n_t = reach[t]
        at = starts[:n_t] + t
        here = weights[:, at]
        joined = _join(before[:, at], state[:, :n_t], here)  # (s, n_t)
        posterior[at] = np.exp(joined - total[:n_t]).T
        state[:, :n_t] = _read_row(state[:, :n_t], here)
    return posterior


def _nothing_placed(s: int, n: int) -> np.ndarray:
    state = np.full((2**s, n), -np.inf)  # state[A]: bit k of A says that head k is placed
    state[0] = 0.0
    return state


def _read_row(state: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the states after one more row, on which no head or one head is placed."""
    after = state.copy()
    for placed in range(1, len(state)):
        for k in range(len(weights)):
            if placed >> k & 1:
                other = state[placed ^ (1 << k)] + weights[k]
                np.logaddexp(after[placed], other, out=after[placed])
    return after


def _join(before: np.ndarray, after: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the log weight of the placements that put head k on this row, (s, n)."""
    all_heads = len(before) - 1
    joined = np.full(weights.shape, -np.inf)
    for k in range(len(weights)):
        for placed in range(len(before)):
            if not placed >> k & 1:
                rest = all_heads ^ placed ^ (1 << k)
                np.logaddexp(joined[k], before[placed] + after[rest], out=joined[k])
    return joined + weights
