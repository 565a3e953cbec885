"""What a solver is given: packed samples with responses, weights and covariates."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from diagatt.distributed import Group
from diagatt.families import Family
from diagatt.progress import progress_bar
from diagatt.segments import offsets_from, segment_max, segment_sum, spread


@dataclass(frozen=True)
class Problem:
    """n samples of a regression problem, on one device.

    Attributes
    ----------
    family : Family
    values : tensor (N, d)
        Packed rows.
    offsets : tensor (n + 1,)
    y : tensor (n,)
        Responses, class numbers for classification.
    weights : tensor (n,)
        Positive sample weights.
    covariates : tensor (n, q)
        Shared covariates, q may be 0.
    n_outputs : int
        Linear predictors, K.
    """

    family: Family
    values: Tensor
    offsets: Tensor
    y: Tensor
    weights: Tensor
    covariates: Tensor
    n_outputs: int = 1

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.y)

    @property
    def n_features(self) -> int:
        """Features of a row."""
        return self.values.shape[1]

    @property
    def n_covariates(self) -> int:
        """Shared covariates, q."""
        return self.covariates.shape[1]

    @property
    def shortest(self) -> int:
        """Rows of the shortest sample."""
        return int(self.offsets.diff().min())

    @property
    def dtype(self) -> torch.dtype:
        """Of rows."""
        return self.values.dtype

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""
        return self.values.device

    @cached_property
    def total_weight(self) -> float:
        """Σ w."""
        return float(self.weights.sum())

    @property
    def most_in_memory(self) -> int:
        """Samples that `take` can hold: all."""
        return self.n_samples

    @property
    def has_one_row_samples_only(self) -> bool:
        """Whether attention has nothing to choose and the model is a plain GLM."""
        return len(self.values) == self.n_samples

    @cached_property
    def scale(self) -> float:
        """Size of the loss; makes a fit to 1000·y a thousand times the fit to y."""
        return self.family.scale(self.y, self.weights)

    def to(self, dtype: torch.dtype) -> Problem:
        """Cast rows, responses, weights and covariates."""
        names = ("values", "y", "weights", "covariates")
        return replace(self, **{name: getattr(self, name).to(dtype) for name in names})

    def take(self, samples: Tensor) -> Problem:
        """The problem of these samples, in this order."""
        lengths = self.offsets.diff()[samples]
        offsets = offsets_from(lengths)
        rows = torch.arange(int(offsets[-1]), device=self.values.device)
        rows += spread(self.offsets[:-1][samples] - offsets[:-1], offsets)
        return replace(
            self,
            values=self.values[rows],
            offsets=offsets,
            y=self.y[samples],
            weights=self.weights[samples],
            covariates=self.covariates[samples],
        )

    load = take  # of a store, `take` may leave many samples where they are

    def drop_rows(self, share: float, generator: torch.Generator) -> Problem:
        """Leave out each row with probability `share`; every sample keeps at least one."""
        luck = torch.rand(len(self.values), 1, generator=generator).to(self.values.device)
        best = spread(segment_max(luck, self.offsets), self.offsets)
        keep = ((luck >= share) | (luck >= best))[:, 0]  # (N,)
        lengths = segment_sum(keep.to(torch.float64), self.offsets).long()
        offsets = offsets_from(lengths)
        return replace(self, values=self.values[keep], offsets=offsets)

    def digest(self) -> bytes:
        """Digest of the data: everything but rows, and a sample of those."""
        digest = hashlib.sha256()
        rows = self.values[:: max(1, len(self.values) // 1000)]
        for tensor in (self.offsets, self.y, self.weights, self.covariates, rows):
            digest.update(tensor.cpu().numpy().tobytes())
        return digest.digest()

    @property
    def group(self) -> Group:
        """The processes that share these samples: this one alone."""
        return Group()

    def total(self, terms: Callable[[Problem], Sequence[Tensor]], ahead: int = 1) -> list[Tensor]:
        """Sums over all samples, in float64; `terms` gives those of the samples it is shown."""
        return [term.double() for term in terms(self)]

    def pass_bar(self, title: str, shown: bool) -> AbstractContextManager[Callable[..., None]]:
        """A bar of passes; call what it yields with a note after each."""
        return progress_bar(title, None, shown)

    def batches(
        self, size: int | None, row_dropout: float, generator: torch.Generator
    ) -> Iterator[tuple[Problem, int]]:
        """All samples once, in random batches, with the number of samples of each."""
        order = torch.randperm(self.n_samples, generator=generator).to(self.device)
        for samples in order.split(self.n_samples if size is None else size):
            batch = self.take(samples)
            if row_dropout > 0:
                batch = batch.drop_rows(row_dropout, generator)
            yield batch, len(samples)

    @classmethod
    def joined(cls, parts: Sequence[Problem]) -> Problem:
        """Samples of several problems, one after the other."""
        if len(parts) == 1:
            return parts[0]
        lengths = torch.cat([part.offsets.diff() for part in parts])
        return replace(
            parts[0],
            values=torch.cat([part.values for part in parts]),
            offsets=offsets_from(lengths),
            y=torch.cat([part.y for part in parts]),
            weights=torch.cat([part.weights for part in parts]),
            covariates=torch.cat([part.covariates for part in parts]),
        )

    def mean_loss(self, z: Tensor) -> Tensor:
        """Weighted mean of ℓ(y, z): the empirical risk of equation (obj)."""
        losses = self.family.loss(self.y, z)
        return (self.weights * losses).sum() / self.weights.sum()
