"""Several outcomes of one sample: each has a predictor of its own, and all share the rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from diagatt.families.base import Family
from diagatt.families.bernoulli import Bernoulli
from diagatt.families.gamma import Gamma
from diagatt.families.gaussian import Gaussian
from diagatt.families.poisson import Poisson

#: Families that several outcomes may have: those without a shape of their own.
ALLOWED = (Gaussian, Poisson, Gamma, Bernoulli)
# What several outcomes inherit from the family of each.
_SAME = (
    "classifies",
    "is_quadratic",
    "has_identity_link",
    "has_dispersion",
    "has_log_link",
    "curvature_bound",
    "predicts_mixtures",
)


class Outcomes(Family):
    r"""q outcomes of one family, independent given the rows: y and z have shape (n, q).

    .. math:: ℓ(y, z) = \sum_k ℓ_k(y_k, z_k)

    They have one dispersion. Gaussian outcomes are therefore brought to unit variance before a fit
    (`with_units`), so that no outcome counts more than another because of its unit.

    Parameters
    ----------
    each : Family
        The family of every outcome.
    count : int
        q.
    units : sequence of float, optional
        What outcomes were divided by. Densities are those of outcomes before that.

    Examples
    --------
    >>> family = Outcomes(Gaussian(), 2)
    >>> family.loss(torch.tensor([[1.0, 2.0]]), torch.tensor([[0.0, 0.0]]))
    tensor([2.5000])
    """

    def __init__(self, each: Family, count: int, units: Sequence[float] | None = None) -> None:
        if not isinstance(each, ALLOWED):
            allowed = ", ".join(family.name for family in ALLOWED)
            raise ValueError(
                f"several outcomes at once are for the families {allowed}, not for {each.name!r}: "
                "fit every outcome by itself, for example with scikit-learn's MultiOutputRegressor."
            )
        self.each, self.n_outcomes = each, count  # type: ignore[misc]
        self.units = None if units is None else torch.as_tensor(units, dtype=torch.float64)
        self.name = each.name  # type: ignore[misc]
        self.response_width = count  # type: ignore[misc]
        self.response_range = f"{each.response_range}, for each of {count} outcomes"  # type: ignore[misc]
        for flag in _SAME:
            setattr(self, flag, getattr(each, flag))
        # One Gram matrix serves all outcomes only where the curvature is bounded.
        self.prefers_bound = each.curvature_bound is not None  # type: ignore[misc]

    def with_units(self, units: Tensor) -> Outcomes:
        """Return the family of outcomes that were divided by these units, (q,)."""
        return Outcomes(self.each, self.n_outcomes, units.tolist())

    def _columns(self, function: Callable[..., Tensor], *tensors: Tensor) -> list[Tensor]:
        """Return a function of the columns of tensors, outcome by outcome."""
        return [function(*(t[:, k] for t in tensors)) for k in range(self.n_outcomes)]

    def by_outcome(self, y, mean):
        places = range(self.n_outcomes)
        return [(self.each, y[:, k], mean[:, k : k + 1]) for k in places]

    def inverse_link(self, z):
        return self.each.inverse_link(z)  # entry by entry

    def link(self, mean):
        return self.each.link(mean)

    def loss(self, y, z):
        own = self._columns(lambda y, z: self.each.loss(y, z[:, None]), y, z)
        return torch.stack(own).sum(dim=0)

    def gradient(self, y, z):
        own = self._columns(lambda y, z: self.each.gradient(y, z[:, None]), y, z)
        return torch.cat(own, dim=1)

    def curvature(self, y, z):
        own = self._columns(lambda y, z: self.each.curvature(y, z[:, None])[:, 0, 0], y, z)
        return torch.diag_embed(torch.stack(own, dim=1))

    def n_outputs(self, n_classes=None):
        return self.n_outcomes

    def null_predictor(self, y, weights):
        own = self._columns(lambda y: self.each.null_predictor(y, weights), y)
        return torch.cat(own, dim=1)

    def unit_dispersion(self, y, z):
        own = self._columns(lambda y, z: self.each.unit_dispersion(y, z[:, None]), y, z)
        return torch.stack(own).mean(dim=0)

    def initial_dispersion(self, scale):
        return self.each.initial_dispersion(scale)

    def log_normalizer(self, y, phi):
        own = torch.stack(self._columns(lambda y: self.each.log_normalizer(y, phi), y)).sum(dim=0)
        return own if self.units is None else own - float(self.units.log().sum())

    def mixed_predictor(self, log_probability, z, offsets):
        own = self._columns(
            lambda z: self.each.mixed_predictor(log_probability, z[:, None], offsets), z
        )
        return torch.cat(own, dim=1)

    def saturated_loss(self, y):
        return torch.stack(self._columns(self.each.saturated_loss, y)).sum(dim=0)

    def is_valid(self, y):
        return torch.stack(self._columns(self.each.is_valid, y)).all(dim=0)

    def __repr__(self) -> str:
        return f"Outcomes({self.each!r}, {self.n_outcomes})"
