"""A problem whose rows stay on disk, and may be shared by several processes.

Everything a solver needs of all samples is a sum (`StoredProblem.total`): the terms of one shard
after the other, added, then added over the processes. What needs samples in memory takes some
(`StoredProblem.take`). Shard k belongs to process k mod (number of processes).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from diagatt.distributed import Group, current_group
from diagatt.families import Family
from diagatt.progress import progress_bar
from diagatt.segments import offsets_from, spread
from diagatt.solvers.problem import Problem

if TYPE_CHECKING:
    from diagatt.stores import RowStore, StoredPart

# Part of the store's memory that samples taken from it may fill.
TAKEN = 0.25

CPU = torch.device("cpu")
Encode = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class StoredProblem:
    """The face of `Problem` for a store; see there.

    Attributes
    ----------
    store : RowStore
    family : Family
    encode : callable
        Stored responses → numbers, (n,): classes become class numbers.
    n_outputs : int
    dtype, device : of the tensors that solvers see
    chosen : tuple of arrays, optional
        Which samples of each shard take part, sorted; all by default.
    """

    store: RowStore
    family: Family
    encode: Encode
    n_outputs: int = 1
    dtype: torch.dtype = torch.float32
    device: torch.device = CPU
    chosen: tuple[np.ndarray, ...] | None = None
    group: Group = field(default_factory=current_group)
    watchers: list[Callable[..., None]] = field(default_factory=list, repr=False)

    @property
    def n_features(self) -> int:
        """Features of a row."""
        return self.store.n_features

    @property
    def n_covariates(self) -> int:
        """Shared covariates, q."""
        return self.store.n_covariates

    @cached_property
    def counts(self) -> list[int]:
        """Samples of each shard."""
        if self.chosen is not None:
            return [len(samples) for samples in self.chosen]
        return [shard.n_samples for shard in self.store.shards]

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return sum(self.counts)

    @property
    def shortest(self) -> int:
        """Rows of the shortest sample."""
        return self.store.shortest()[1]

    @property
    def has_one_row_samples_only(self) -> bool:
        """Whether attention has nothing to choose and the model is a plain GLM."""
        return self.store.n_rows == self.store.n_samples

    @cached_property
    def total_weight(self) -> float:
        """Σ w."""
        return float(self.total(lambda part: [part.weights.double().sum()], ahead=0)[0])

    @cached_property
    def scale(self) -> float:
        """Size of the loss, as of `Problem`: the family's, of mean and variance."""
        mean = self._mean(lambda y: y)
        deviation = self._mean(lambda y: (y - mean) ** 2) ** 0.5
        two = torch.tensor([mean - deviation, mean + deviation], dtype=torch.float64)
        return self.family.scale(two, torch.ones(2, dtype=torch.float64))

    def _mean(self, function: Callable[[Tensor], Tensor]) -> float:
        def terms(part: Problem) -> list[Tensor]:
            return [(part.weights.double() * function(part.y.double())).sum()]

        return float(self.total(terms, ahead=0)[0]) / self.total_weight

    @property
    def most_in_memory(self) -> int:
        """Samples that `take` reads into memory; of more it gives a view of the store."""
        bytes_a_sample = self.store.nbytes / self.store.n_samples
        return max(1, int(TAKEN * self.store.memory * 2**20 / bytes_a_sample))

    def digest(self) -> bytes:
        """Digest of the data: the store's, and which of its samples take part."""
        digest = hashlib.sha256(self.store.digest.encode())
        for samples in self.chosen or ():
            digest.update(samples.tobytes())
        return digest.digest()

    # ------------------------------------------------------------------ passes

    def parts(self, ahead: int = 1) -> Iterator[Problem]:
        """Problems of this process's shards; the rows of the next `ahead` are read meanwhile."""
        own = [k for k in self.own(range(len(self.counts))) if self.counts[k]]
        stream = self.store.parts(own, ahead=ahead) if ahead else map(self.store.part, own)
        for part in stream:
            yield self.problem_of(part)

    @contextmanager
    def pass_bar(self, title: str, shown: bool) -> Iterator[Callable[[str], None]]:
        """A bar that every pass fills shard by shard; yields what writes a note beside it."""
        own = self.own(range(len(self.counts)))
        with progress_bar(title, len(own), shown) as advance:
            self.watchers.append(advance)
            try:
                yield lambda note: advance(note, steps=0)
            finally:
                self.watchers.remove(advance)

    def total(self, terms: Callable[[Problem], Sequence[Tensor]], ahead: int = 1) -> list[Tensor]:
        """Sums over all samples of all processes, in float64.

        With ``ahead=0`` nothing is read but what `terms` looks at: responses, not rows.
        """
        sums: list[Tensor] | None = None
        for advance in self.watchers:
            advance(steps=0, restart=True)
        for part in self.parts(ahead):
            new = [term.double() for term in terms(part)]
            sums = new if sums is None else [a.add_(b) for a, b in zip(sums, new, strict=True)]
            for advance in self.watchers:
                advance()
        if sums is None:  # a process without shards adds nothing, in the right shapes
            sums = [torch.zeros_like(term) for term in terms(self.nobody())]
        return self.group.add(sums)

    def take(self, samples: Tensor) -> Problem | StoredProblem:
        """These samples in memory if they are few; else where they are, in the store's order."""
        if len(samples) <= self.most_in_memory:
            return self.load(samples)
        numbers = np.sort(self._numbers(samples))
        parts = np.split(numbers, np.searchsorted(numbers, self.store.starts[1:]))
        chosen = tuple(p - start for p, start in zip(parts, self.store.starts, strict=True))
        return replace(self, chosen=chosen)

    def load(self, samples: Tensor) -> Problem:
        """These samples, in memory, in this order.

        Every process reads those of its own shards; then they are put together.
        """
        numbers = self._numbers(samples)
        if self.group.size == 1:
            return self.problem_of(self.store.take(numbers))
        shard = np.searchsorted(self.store.starts, numbers, side="right") - 1
        mine = shard % self.group.size == self.group.rank
        own = self.problem_of(self.store.take(numbers[mine])) if mine.any() else self.nobody()
        return _merged(own, torch.from_numpy(mine).to(self.device), self.group)

    def _numbers(self, samples: Tensor) -> np.ndarray:
        """Numbers of our samples in the store."""
        numbers = samples.cpu().numpy()
        if self.chosen is None:
            return numbers
        inside = [start + c for start, c in zip(self.store.starts, self.chosen, strict=True)]
        return np.concatenate(inside)[numbers]

    def own(self, shards: Sequence[int]) -> list[int]:
        """Those of some shards that this process reads."""
        return list(shards[self.group.rank :: self.group.size])

    def problem_of(self, part: StoredPart) -> Problem:
        """Rows, responses, weights and covariates as tensors; rows in place, if of that type."""
        values, offsets = part.X.to_torch(self.device, self.dtype)
        n = len(part.X)
        y: Any = np.zeros(n) if part.y is None else self.encode(part.y)
        w: Any = np.ones(n) if part.weights is None else part.weights
        Z: Any = np.empty((n, 0)) if part.covariates is None else part.covariates
        y, w, Z = (torch.as_tensor(np.array(a)).to(self.device, self.dtype) for a in (y, w, Z))
        problem = Problem(self.family, values, offsets, y, w, Z, self.n_outputs)
        if self.chosen is None or part.shard < 0:
            return problem
        return problem.take(torch.from_numpy(self.chosen[part.shard]).to(self.device))

    def nobody(self) -> Problem:
        """One sample that does not count."""
        sample = self.problem_of(self.store.take(np.array([0])))
        return replace(sample, weights=torch.zeros_like(sample.weights))

    def batches(
        self, size: int | None, row_dropout: float, generator: torch.Generator
    ) -> Iterator[tuple[Problem, int]]:
        """All samples once, in random batches: this process's part, and the size of the whole."""
        from diagatt.solvers.stored_batches import window_batches

        return window_batches(self, size, row_dropout, generator)


def _merged(own: Problem, mine: Tensor, group: Group) -> Problem:
    """Samples of all processes in one problem; `mine`, (n,) bool, says which of them are ours."""

    def everyone(ours: Tensor, places: Tensor) -> Tensor:
        whole = ours.new_zeros(len(places), *ours.shape[1:])
        whole[places] = ours[: int(places.sum())]
        return group.merge(whole)

    lengths = everyone(own.offsets.diff(), mine)
    offsets = offsets_from(lengths)
    return replace(
        own,
        values=everyone(own.values, spread(mine, offsets)),
        offsets=offsets,
        y=everyone(own.y, mine),
        weights=everyone(own.weights, mine),
        covariates=everyone(own.covariates, mine),
    )


AnyProblem = Problem | StoredProblem
