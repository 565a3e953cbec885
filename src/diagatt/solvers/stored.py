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
from diagatt.solvers.problem import Samples

if TYPE_CHECKING:
    from diagatt.stores import RowStore, StoredPart

# Shares of the store's memory: for samples that are taken from it, and for the window of shards in
# use together with the one that is read meanwhile.
TAKEN_SHARE, WINDOW_SHARE = 0.25, 0.5

CPU = torch.device("cpu")
Encode = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class StoredProblem:
    """A `Problem` whose samples are in a store.

    Attributes
    ----------
    store : RowStore
    family : Family
    encode : callable
        Turns stored responses into numbers, (n,) or (n, width of the family): classes become class
        indices, times to an event entry, lower and upper.
    n_outputs : int
    dtype, device
        Type and device of the tensors.
    chosen : tuple of arrays, optional
        Which samples of each shard take part, sorted; all by default.
    changes : tuple of callables
        What happens to the samples of every part, one after the other.
    """

    store: RowStore
    family: Family
    encode: Encode
    n_outputs: int = 1
    dtype: torch.dtype = torch.float32
    device: torch.device = CPU
    chosen: tuple[np.ndarray, ...] | None = None
    changes: tuple[Callable[[Samples], Samples], ...] = ()
    group: Group = field(default_factory=current_group)
    watchers: list[Callable[..., None]] = field(default_factory=list, repr=False)

    @property
    def n_rows(self) -> int:
        """Count of rows of the whole store."""
        return self.store.n_rows

    @cached_property
    def _widths(self) -> tuple[int, int]:
        """Features and covariates, after the changes."""
        if not self.changes:
            return self.store.n_features, self.store.n_covariates
        one = self.samples_of(self.store.take(np.array([0])))
        return one.n_features, one.n_covariates

    @property
    def n_features(self) -> int:
        """Features per row."""
        return self._widths[0]

    @property
    def n_covariates(self) -> int:
        """Count of shared covariates, q."""
        return self._widths[1]

    @cached_property
    def counts(self) -> list[int]:
        """Count of samples per shard."""
        if self.chosen is not None:
            return [len(samples) for samples in self.chosen]
        return [shard.n_samples for shard in self.store.shards]

    @property
    def n_samples(self) -> int:
        """Count of samples."""
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
        """Size of the loss, from the mean and the variance of the responses."""
        if self.family.response_width > 1:
            return 1.0  # as in memory: outcomes have unit variance, and times have no unit of loss
        mean = self._mean(lambda y: y)
        deviation = self._mean(lambda y: (y - mean) ** 2) ** 0.5
        two = torch.tensor([mean - deviation, mean + deviation], dtype=torch.float64)
        return self.family.scale(two, torch.ones(2, dtype=torch.float64))

    def _mean(self, function: Callable[[Tensor], Tensor]) -> float:
        def terms(part: Samples) -> list[Tensor]:
            return [(part.weights.double() * function(part.y.double())).sum()]

        return float(self.total(terms, ahead=0)[0]) / self.total_weight

    @property
    def most_in_memory(self) -> int:
        """How many samples `take` reads into memory; of more it gives a view of the store."""
        taken = TAKEN_SHARE * self.store.memory * 2**20
        return max(1, int(taken / self.store.memory_per_sample))

    @cached_property
    def smallest_row_weight(self) -> float:
        """The smallest weight of a row; 1 where rows have none."""
        return self.store.smallest_row_weight()

    @property
    def in_memory(self) -> None:
        """None: the samples are on disk."""
        return None

    def digest(self) -> bytes:
        """Return a digest of the store and of which of its samples take part."""
        digest = hashlib.sha256(self.store.digest.encode())
        for samples in self.chosen or ():
            digest.update(samples.tobytes())
        return digest.digest()

    # ------------------------------------------------------------------ passes

    def parts(self, ahead: int = 1) -> Iterator[Samples]:
        """Yield this process's shards; the rows of the next `ahead` are read meanwhile."""
        own = [k for k in self.own(range(len(self.counts))) if self.counts[k]]
        stream = self.store.parts(own, ahead=ahead) if ahead else map(self.store.part, own)
        for part in stream:
            yield self.samples_of(part)

    @contextmanager
    def pass_bar(self, title: str, shown: bool) -> Iterator[Callable[[str], None]]:
        """Show a bar that every pass fills shard by shard; yield a function that adds a note."""
        own = self.own(range(len(self.counts)))
        with progress_bar(title, len(own), shown) as advance:
            self.watchers.append(advance)
            try:
                yield lambda note: advance(note, steps=0)
            finally:
                self.watchers.remove(advance)

    def total(self, terms: Callable[[Samples], Sequence[Tensor]], ahead: int = 1) -> list[Tensor]:
        """Return sums over all samples of all processes, in float64.

        With ``ahead=0`` only what `terms` uses is read: responses, not rows.
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
            sums = [torch.zeros_like(term) for term in terms(self.empty_part())]
        return self.group.add(sums)

    def take(self, samples: Tensor) -> Samples | StoredProblem:
        """Return these samples in memory if they are few, else a view of the store in its order."""
        if len(samples) <= self.most_in_memory:
            return self.load(samples)
        indices = np.sort(self._indices(samples))
        parts = np.split(indices, np.searchsorted(indices, self.store.starts[1:]))
        chosen = tuple(p - start for p, start in zip(parts, self.store.starts, strict=True))
        return replace(self, chosen=chosen)

    def changed(self, change: Callable[[Samples], Samples]) -> StoredProblem:
        """Return the problem whose samples are changed when they are read."""
        return replace(self, changes=(*self.changes, change))

    def with_family(self, family: Family) -> StoredProblem:
        """Return the same samples with another family."""
        return replace(self, family=family)

    def load(self, samples: Tensor) -> Samples:
        """Return these samples, in memory, in this order.

        Every process reads those of its own shards; then they are exchanged.
        """
        indices = self._indices(samples)
        if self.group.size == 1:
            return self.samples_of(self.store.take(indices))
        shard = np.searchsorted(self.store.starts, indices, side="right") - 1
        mine = shard % self.group.size == self.group.rank
        own = self.samples_of(self.store.take(indices[mine])) if mine.any() else self.empty_part()
        return _merged(own, torch.from_numpy(mine).to(self.device), self.group)

    def sample(self, most: int, generator: np.random.Generator) -> Samples:
        """Return all samples, or `most` of them drawn at random, in memory."""
        most, chosen = min(most, self.most_in_memory), np.arange(self.n_samples)
        if self.n_samples > most:
            chosen = np.sort(generator.choice(self.n_samples, most, replace=False))
        return self.load(torch.from_numpy(chosen).to(self.device))

    def _indices(self, samples: Tensor) -> np.ndarray:
        """Return the indices of samples in the store."""
        indices = samples.cpu().numpy()
        if self.chosen is None:
            return indices
        inside = [start + c for start, c in zip(self.store.starts, self.chosen, strict=True)]
        return np.concatenate(inside)[indices]

    def own(self, shards: Sequence[int]) -> list[int]:
        """Return the shards, out of some, that this process reads."""
        return list(shards[self.group.rank :: self.group.size])

    def samples_of(self, part: StoredPart) -> Samples:
        """Return a part's arrays as tensors; rows stay in place if they have the right type."""
        values, offsets = part.X.to_torch(self.device, self.dtype)
        offsets = offsets.clone()  # a view would keep the whole shard where its rows are changed
        n = len(part.X)
        y: Any = np.zeros(n) if part.y is None else self.encode(part.y)
        w: Any = np.ones(n) if part.weights is None else part.weights
        Z: Any = np.empty((n, 0)) if part.covariates is None else part.covariates
        y, w, Z = (torch.as_tensor(np.array(a)).to(self.device, self.dtype) for a in (y, w, Z))
        if self.family.shape.numel():  # a baseline hazard, say
            y = self.family.prepared(y)
        prior: Any = part.X.log_prior
        prior = None if prior is None else torch.as_tensor(prior).to(self.device, self.dtype)
        samples = Samples(self.family, values, offsets, y, w, Z, self.n_outputs, log_prior=prior)
        for change in self.changes:
            samples = change(samples)
        if self.chosen is None or part.shard < 0:
            return samples
        return samples.take(torch.from_numpy(self.chosen[part.shard]).to(self.device))

    def empty_part(self) -> Samples:
        """Return one sample of weight 0: a process without shards adds sums of the right shape."""
        sample = self.samples_of(self.store.take(np.array([0])))
        return replace(sample, weights=torch.zeros_like(sample.weights))

    def batches(
        self, size: int | None, row_dropout: float, generator: torch.Generator, least: int = 1
    ) -> Iterator[tuple[Samples, int]]:
        """Yield all samples once, in random batches: this process's part, and the whole's size.

        Shards come in random order, a window of them at a time. A batch takes some samples of every
        shard of the window; which ones depends on the seed alone, not on the count of processes.
        """
        seed = int(torch.randint(2**62, (), generator=generator))
        order = np.random.default_rng(seed).permutation(np.flatnonzero(self.counts))
        window = WINDOW_SHARE * self.store.memory * 2**20
        width = max(1, int(window / (2 * self.store.largest_part)))
        windows = [order[i : i + width].tolist() for i in range(0, len(order), width)]
        if size is None and len(windows) > 1:
            raise ValueError(
                "batch_size=None takes all rows at once, which do not fit into the store's memory "
                f"of {self.store.memory:g} MiB: give a count of samples."
            )
        own = [self.own(window) for window in windows]
        stream = self.store.parts([k for mine in own for k in mine], ahead=width)
        for window, mine in zip(windows, own, strict=True):
            parts = {k: self.samples_of(next(stream)) for k in mine}
            counts = [self.counts[k] for k in window]
            steps = 1 if size is None else -(-sum(counts) // size)
            for step, taken in enumerate(_batches(parts, steps, row_dropout, seed, least)):
                batch = Samples.joined(taken) if taken else self.empty_part()
                del taken[:]
                yield batch, sum(count // steps + (step < count % steps) for count in counts)
                del batch  # before the next one is put together


def _batches(
    parts: dict[int, Samples], steps: int, row_dropout: float, seed: int, least: int
) -> Iterator[list[Samples]]:
    """Yield the samples of each batch, from the shards of a window that this process holds.

    `parts` is emptied by the last batch, which then has the rows for itself.
    """
    generators = {k: _generator(seed, k) for k in parts}
    pieces = {
        k: torch.randperm(part.n_samples, generator=generators[k]).tensor_split(steps)
        for k, part in parts.items()
    }
    for step in range(steps):
        taken = []
        for k in list(parts):
            part = parts[k] if step < steps - 1 else parts.pop(k)
            if len(pieces[k][step]):
                batch = part.take(pieces[k][step].to(part.device))
                if row_dropout:
                    batch = batch.drop_rows(row_dropout, generators[k], least)
                taken.append(batch)
                del batch
            del part
        yield taken


def _generator(*seeds: int) -> torch.Generator:
    state = np.random.SeedSequence(seeds).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(state[0]) >> 1)


def _merged(own: Samples, mine: Tensor, group: Group) -> Samples:
    """Join the samples of all processes; `mine`, (n,) bool, marks those of this process."""

    def gathered(ours: Tensor, places: Tensor) -> Tensor:
        whole = ours.new_zeros(len(places), *ours.shape[1:])
        whole[places] = ours[: int(places.sum())]
        return group.merge(whole)

    lengths = gathered(own.offsets.diff(), mine)
    offsets = offsets_from(lengths)
    prior = None if own.log_prior is None else gathered(own.log_prior, spread(mine, offsets))
    return replace(
        own,
        values=gathered(own.values, spread(mine, offsets)),
        offsets=offsets,
        y=gathered(own.y, mine),
        weights=gathered(own.weights, mine),
        covariates=gathered(own.covariates, mine),
        log_prior=prior,
    )
