"""Random batches of a store: shards in random order, a window of them at a time.

A batch takes some samples of every shard of the window, and which ones depends on the seed alone:
batches do not depend on the number of processes, each of which holds its own shards' part of them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from diagatt.solvers.problem import Problem
from diagatt.solvers.stored import StoredProblem

# Part of the store's memory for the window in use and the one that is read meanwhile.
WINDOW = 0.5


def window_batches(
    problem: StoredProblem, size: int | None, row_dropout: float, generator: torch.Generator
) -> Iterator[tuple[Problem, int]]:
    """All samples once: this process's part of every batch, and the size of the whole batch."""
    seed = int(torch.randint(2**62, (), generator=generator))
    order = np.random.default_rng(seed).permutation(np.flatnonzero(problem.counts))
    largest = max(shard.bytes for shard in problem.store.shards)
    width = max(1, int(WINDOW * problem.store.memory * 2**20 / (2 * largest)))
    windows = [order[i : i + width].tolist() for i in range(0, len(order), width)]
    if size is None and len(windows) > 1:
        raise ValueError(
            "batch_size=None takes all rows at once, which do not fit into the store's memory of "
            f"{problem.store.memory:g} MiB: give a number of samples."
        )
    own = [problem.own(window) for window in windows]
    stream = problem.store.parts([k for mine in own for k in mine], ahead=width)
    for window, mine in zip(windows, own, strict=True):
        parts = {k: problem.problem_of(next(stream)) for k in mine}
        yield from _batches(problem, window, parts, size, row_dropout, seed)


def _batches(
    problem: StoredProblem,
    window: list[int],
    parts: dict[int, Problem],
    size: int | None,
    row_dropout: float,
    seed: int,
) -> Iterator[tuple[Problem, int]]:
    """Batches of a window, of whose shards this process holds `parts`."""
    counts = [problem.counts[k] for k in window]
    steps = 1 if size is None else -(-sum(counts) // size)
    luck = {k: _generator(seed, k) for k in parts}
    pieces = {
        k: torch.randperm(part.n_samples, generator=luck[k]).tensor_split(steps)
        for k, part in parts.items()
    }
    for step in range(steps):
        taken = []
        for k, part in parts.items():
            if len(pieces[k][step]):
                batch = part.take(pieces[k][step].to(problem.device))
                taken.append(batch.drop_rows(row_dropout, luck[k]) if row_dropout else batch)
        batch = Problem.joined(taken) if taken else problem.nobody()
        yield batch, sum(count // steps + (step < count % steps) for count in counts)


def _generator(*seeds: int) -> torch.Generator:
    state = np.random.SeedSequence(seeds).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(state[0] >> 1))
