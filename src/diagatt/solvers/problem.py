"""The data of a fit: samples with responses, weights and covariates, in memory or on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from diagatt.distributed import Group
from diagatt.families import Family
from diagatt.families.risk_sets import RiskSets
from diagatt.progress import progress_bar
from diagatt.segments import (
    map_blocks,
    offsets_from,
    row_positions,
    sample_of_row,
    segment_mean,
    segment_sum,
    spread,
)

T = TypeVar("T")
# Tensors of `Samples` with one entry per sample, and with one per row.
OF_SAMPLES = ("y", "weights", "covariates", "offset", "groups")
OF_ROWS = ("values", "log_free", "log_known", "log_prior", "missing")


class Problem(Protocol):
    """n samples of a regression problem; `Samples` holds them in memory, `StoredProblem` on disk.

    A solver reads all samples through `total`, which adds up terms over parts of them, or in random
    `batches`. Samples in memory are one part. `sample` returns some of them in memory.
    """

    @property
    def family(self) -> Family: ...
    @property
    def n_outputs(self) -> int: ...
    @property
    def n_samples(self) -> int: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    @property
    def n_covariates(self) -> int: ...
    @property
    def shortest(self) -> int: ...
    @property
    def has_one_row_samples_only(self) -> bool: ...
    @property
    def total_weight(self) -> float: ...
    @property
    def scale(self) -> float: ...
    @property
    def dtype(self) -> torch.dtype: ...
    @property
    def device(self) -> torch.device: ...
    @property
    def group(self) -> Group: ...
    @property
    def in_memory(self) -> Samples | None: ...
    @property
    def most_in_memory(self) -> int: ...
    @property
    def smallest_row_weight(self) -> float: ...

    def total(self, terms: Callable[[Samples], Sequence[Tensor]], ahead: int = 1) -> list[Tensor]:
        """Return sums over all samples, in float64; `terms` returns the summands of a part."""

    def batches(
        self, size: int | None, row_dropout: float, generator: torch.Generator, least: int = 1
    ) -> Iterator[tuple[Samples, int]]:
        """Yield all samples once, in random batches, with the count of samples of each."""

    def take(self, samples: Tensor) -> Problem:
        """Return the problem of these samples."""

    def load(self, samples: Tensor) -> Samples:
        """Return these samples, in this order, in memory."""

    def sample(self, most: int, generator: np.random.Generator) -> Samples:
        """Return all samples, or `most` of them drawn at random, in memory."""

    def changed(self, change: Callable[[Samples], Samples]) -> Problem:
        """Return the problem whose samples are changed, part by part."""

    def pass_bar(self, title: str, shown: bool) -> AbstractContextManager[Callable[..., None]]:
        """Show a bar of passes; call what it yields with a note after each."""

    def digest(self) -> bytes:
        """Return a digest of the data."""

    def with_family(self, family: Family) -> Problem:
        """Return the same samples with another family."""


@dataclass(frozen=True)
class Samples:
    """Samples in memory, on one device: a whole `Problem`, or a part of a stored one.

    Attributes
    ----------
    family : Family
    values : tensor (N, d)
        Packed rows.
    offsets : tensor (n + 1,)
    y : tensor (n,)
        Responses, class indices for classification.
    weights : tensor (n,)
        Positive sample weights.
    covariates : tensor (n, q)
        Shared covariates, q may be 0.
    n_outputs : int
        Count of linear predictors, K.
    log_free : tensor (N,), optional
        Log probability that a row is not yet taken by earlier heads.
    offset : tensor (n, K), optional
        A known part of the predictor: what users give, and what earlier heads contribute.
    groups : tensor (n,), optional
        Codes of groups; samples of one group are held out together.
    log_known : tensor (N,), optional
        0 for rows that may be active; very negative for rows that are known not to be.
    log_prior : tensor (N,), optional
        Logarithms of weights of rows, which are added to their scores.
    missing : bool tensor (N, d), optional
        Which entries of rows are missing and to be integrated out; `values` has imputed numbers.
    """

    family: Family
    values: Tensor
    offsets: Tensor
    y: Tensor
    weights: Tensor
    covariates: Tensor
    n_outputs: int = 1
    log_free: Tensor | None = None
    offset: Tensor | None = None
    groups: Tensor | None = None
    log_known: Tensor | None = None
    log_prior: Tensor | None = None
    missing: Tensor | None = None

    @property
    def n_samples(self) -> int:
        """Count of samples."""
        return len(self.y)

    @property
    def n_rows(self) -> int:
        """Count of rows of all samples."""
        return len(self.values)

    @property
    def n_features(self) -> int:
        """Features per row."""
        return self.values.shape[1]

    @property
    def n_covariates(self) -> int:
        """Count of shared covariates, q."""
        return self.covariates.shape[1]

    @property
    def shortest(self) -> int:
        """Rows of the shortest sample."""
        return int(self.offsets.diff().min())

    @property
    def dtype(self) -> torch.dtype:
        """Type of the rows."""
        return self.values.dtype

    @property
    def device(self) -> torch.device:
        """Device of the tensors."""
        return self.values.device

    @cached_property
    def total_weight(self) -> float:
        """Σ w."""
        return float(self.weights.sum())

    @property
    def in_memory(self) -> Samples:
        """The samples themselves."""
        return self

    @property
    def most_in_memory(self) -> int:
        """How many samples `load` can hold: all."""
        return self.n_samples

    @property
    def has_one_row_samples_only(self) -> bool:
        """Whether attention has nothing to choose and the model is a plain GLM."""
        return len(self.values) == self.n_samples

    @cached_property
    def smallest_row_weight(self) -> float:
        """The smallest weight of a row; 1 where rows have none."""
        return 1.0 if self.log_prior is None else float(self.log_prior.double().min().exp())

    @property
    def row_mass(self) -> Tensor:
        """How many rows each sample stands for, (n,): their count, or the sum of their weights."""
        if self.log_prior is None:
            return self.offsets.diff().to(torch.float64)
        return segment_sum(self.log_prior.double().exp()[:, None], self.offsets)[:, 0]

    @cached_property
    def scale(self) -> float:
        """Size of the loss; makes a fit to 1000·y a thousand times the fit to y."""
        return self.family.scale(self.y, self.weights)

    @cached_property
    def risk_sets(self) -> RiskSets:
        """The risk sets, which evaluate an objective of all samples together."""
        return self.family.couple(self.y, self.weights)

    @property
    def inputs(self) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
        """Rows, offsets, covariates, offset and row weights, as functions of modules take them."""
        return self.values, self.offsets, self.covariates, self.offset, self.log_prior

    @property
    def group(self) -> Group:
        """The processes that share these samples: this one alone."""
        return Group()

    def to(self, dtype: torch.dtype) -> Samples:
        """Cast rows, responses, weights and covariates."""
        names = ["values", "y", "weights", "covariates"]
        names += [name for name in ("offset", "log_prior") if getattr(self, name) is not None]
        return replace(self, **{name: getattr(self, name).to(dtype) for name in names})

    def take(self, samples: Tensor) -> Samples:
        """Return these samples, in this order."""
        lengths = self.offsets.diff()[samples]
        offsets = offsets_from(lengths)
        rows = torch.arange(int(offsets[-1]), device=self.values.device)
        rows += spread(self.offsets[:-1][samples] - offsets[:-1], offsets)
        return self._at(samples, rows, offsets)

    load = take

    def block(self, samples: slice, rows: slice) -> Samples:
        """Return neighbouring samples and their rows, without a copy."""
        return self._at(samples, rows, self.offsets[samples.start : samples.stop + 1] - rows.start)

    def _at(self, samples: Tensor | slice, rows: Tensor | slice, offsets: Tensor) -> Samples:
        """Return some samples with their rows."""
        named = {"offsets": offsets, **self._of(OF_SAMPLES, samples), **self._of(OF_ROWS, rows)}
        return replace(self, **named)

    def _of(self, names: Sequence[str], places: Tensor | slice) -> dict[str, Any]:
        """Return the entries of tensors at some places, of those tensors that there are."""
        found = {name: getattr(self, name) for name in names}
        return {name: tensor[places] for name, tensor in found.items() if tensor is not None}

    def sample(self, most: int, generator: np.random.Generator) -> Samples:
        """Return all samples, or `most` of them drawn at random, in their order."""
        if self.n_samples <= most:
            return self
        chosen = np.sort(generator.choice(self.n_samples, most, replace=False))
        return self.take(torch.from_numpy(chosen).to(self.device))

    def drop_rows(self, share: float, generator: torch.Generator, least: int = 1) -> Samples:
        """Drop each row with probability `share`; every sample keeps at least `least` rows."""
        chance = torch.rand(len(self.values), 1, generator=generator).to(self.device)[:, 0]
        sample = sample_of_row(self.offsets)
        best = chance.argsort(descending=True, stable=True)
        best = best[sample[best].argsort(stable=True)]  # best first, sample by sample
        keep = chance >= share  # (N,)
        keep[best[row_positions(self.offsets) < least]] = True
        lengths = segment_sum(keep[:, None].to(torch.float64), self.offsets)[:, 0].long()
        return replace(self, offsets=offsets_from(lengths), **self._of(OF_ROWS, keep))

    def changed(self, change: Callable[[Samples], Samples]) -> Samples:
        """Return the changed samples."""
        return change(self)

    def with_family(self, family: Family) -> Samples:
        """Return the same samples with another family."""
        return replace(self, family=family, y=family.prepared(self.y))

    def digest(self) -> bytes:
        """Return a digest of everything but rows, and of a sample of those."""
        digest = hashlib.sha256()
        rows = self.values[:: max(1, len(self.values) // 1000)]
        more = [own for own in (self.offset, self.log_prior, self.missing) if own is not None]
        for tensor in (self.offsets, self.y, self.weights, self.covariates, rows, *more):
            digest.update(tensor.cpu().numpy().tobytes())
        return digest.digest()

    def total(self, terms: Callable[[Samples], Sequence[Tensor]], ahead: int = 1) -> list[Tensor]:
        """Return sums over all samples, in float64."""
        return [term.double() for term in terms(self)]

    def pass_bar(self, title: str, shown: bool) -> AbstractContextManager[Callable[..., None]]:
        """Show a bar of passes; call what it yields with a note after each."""
        return progress_bar(title, None, shown)

    def batches(
        self, size: int | None, row_dropout: float, generator: torch.Generator, least: int = 1
    ) -> Iterator[tuple[Samples, int]]:
        """Yield all samples once, in random batches, with the count of samples of each."""
        order = torch.randperm(self.n_samples, generator=generator).to(self.device)
        for samples in order.split(self.n_samples if size is None else size):
            batch = self.take(samples)
            if row_dropout > 0:
                batch = batch.drop_rows(row_dropout, generator, least)
            yield batch, len(samples)

    @classmethod
    def joined(cls, parts: Sequence[Samples]) -> Samples:
        """Join the samples of several parts."""
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
            log_prior=_joined([part.log_prior for part in parts]),
            missing=_joined([part.missing for part in parts]),
        )

    def in_unit(self, unit: float, mean: float = 0.0) -> Samples:
        """Return the samples with responses (y − mean)/unit, offsets and family alike."""
        y = ((self.y.double() - mean) / unit).to(self.y.dtype)
        offset = None if self.offset is None else self.offset / unit
        return replace(self, y=y, offset=offset, family=self.family.in_unit(unit))

    def mean_loss(self, z: Tensor) -> Tensor:
        """Return the weighted mean of ℓ(y, z): the empirical risk of equation (obj).

        Of a family that couples samples, it is their partial likelihood, per unit of weight.
        """
        if self.family.couples_samples:
            return self.risk_sets.loss(z[:, 0]) / self.total_weight
        losses = self.family.loss(self.y, z)
        return (self.weights * losses).sum() / self.weights.sum()


def mean_rows(samples: Samples, dtype: torch.dtype | None = None) -> Tensor:
    """Return the mean row of every sample, (n, d), in the type of the rows or another one."""
    values = samples.values.to(dtype or samples.dtype)
    return map_blocks(segment_mean, values, samples.offsets, log_prior=samples.log_prior)


def group_sums(values: Tensor, groups: Tensor) -> Tensor:
    """Return sums of values of samples, (n, …), over the samples of every group."""
    codes = torch.unique(groups, return_inverse=True)[1]
    return values.new_zeros(int(codes.max()) + 1, *values.shape[1:]).index_add(0, codes, values)


def row_weights(samples: Samples) -> Tensor:
    """Return the product of the weights of sample and row, (N,), for sums over rows."""
    weights = spread(samples.weights, samples.offsets)
    return weights if samples.log_prior is None else weights * samples.log_prior.exp()


def _joined(tensors: Sequence[Tensor | None]) -> Tensor | None:
    """Join tensors, which either all parts have or none."""
    found = [tensor for tensor in tensors if tensor is not None]
    return torch.cat(found) if found else None


class RememberedPart(Generic[T]):
    """A function of parts that is computed once for samples that stay in memory.

    Samples in memory are shown whole at every pass; of the parts of a store nothing is kept.
    """

    def __init__(self, problem: Problem, function: Callable[[Samples], T]) -> None:
        self._whole, self._function = problem.in_memory, function
        self._value: T | None = None

    def __call__(self, part: Samples) -> T:
        """Return the function of the part."""
        if part is not self._whole:
            return self._function(part)
        if self._value is None:
            self._value = self._function(part)
        return self._value
