r"""Cox's partial likelihood: sums within risk sets, in one pass over sorted times.

Sample i is at risk from its entry (exclusive) to its end. The negative log partial likelihood is

.. math:: -\sum_{e} w_e z_e + \sum_e c_e \log D_e, \qquad
          D_e = \sum_{i\ \text{at risk at}\ t_e} w_i e^{z_i}
                - f_e \sum_{i\ \text{ends at}\ t_e} w_i e^{z_i},

with one term per event e. Breslow's ties have f = 0 and c = w; of m events at one time, Efron's
have f = 0, 1/m, …, (m − 1)/m and their mean weight c.
"""

from __future__ import annotations

import torch
from torch import Tensor

TIES = ("efron", "breslow")


class RiskSets:
    """Which samples are at risk at every event time; built once for all evaluations.

    Parameters
    ----------
    entry, stop : tensors of shape (n,)
    event : bool tensor of shape (n,)
    weights : tensor of shape (n,)
    ties : {"efron", "breslow"}
    """

    def __init__(
        self, entry: Tensor, stop: Tensor, event: Tensor, weights: Tensor, ties: str = "efron"
    ) -> None:
        self.weights, self.event = weights.double(), event
        stop, entry = stop.double().contiguous(), entry.double().contiguous()
        self.times, ended = torch.unique(stop[event], return_inverse=True)  # (m,), (events,)
        m = len(self.times)
        self.of_event = ended  # the time of each event
        # The times at which sample i is at risk: from `first` to `last`, exclusive.
        self.first = torch.searchsorted(self.times, entry, right=True)
        self.last = torch.searchsorted(self.times, stop, right=True)
        self.has_entries = bool((entry > 0).any())
        own = self.weights[event]
        self.deaths = torch.zeros(m, dtype=torch.float64).to(own).index_add(0, ended, own)
        counts = torch.bincount(ended, minlength=m)
        self.shares, self.charges = torch.zeros_like(own), own
        if ties == "efron":
            order = ended.argsort(stable=True)
            starts = counts.cumsum(0) - counts
            rank = torch.empty_like(ended)
            rank[order] = torch.arange(len(ended), device=ended.device) - starts[ended[order]]
            self.shares = rank.double() / counts[ended]
            self.charges = (self.deaths / counts)[ended]

    def _at_risk(self, mass: Tensor) -> Tensor:
        """Return sums of mass over the samples at risk at every event time, (n, …) → (m, …)."""
        m = len(self.times)
        zero = mass.new_zeros(m + 1, *mass.shape[1:])
        # Sample i counts at all times before `last`: add it at `last` and sum from behind.
        total = zero.index_add(0, self.last, mass)
        if self.has_entries:
            total = total.index_add(0, self.first, -mass)
        return total.flip(0).cumsum(0).flip(0)[1:]

    def _ending(self, mass: Tensor) -> Tensor:
        """Return sums of mass over the events of every time, (n, …) → (m, …)."""
        zero = mass.new_zeros(len(self.times), *mass.shape[1:])
        return zero.index_add(0, self.of_event, mass[self.event])

    def _denominators(self, mass: Tensor) -> Tensor:
        """Return D of every event, (events, …), of masses (n, …)."""
        at_risk, ending = self._at_risk(mass), self._ending(mass)
        shares = self.shares.reshape(-1, *[1] * (mass.ndim - 1))
        return at_risk[self.of_event] - shares * ending[self.of_event]

    def _mass(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Return w e^{z − peak}, (n,), and the peak."""
        z = z.double()
        peak = z.max()
        return self.weights * torch.exp(z - peak), peak

    def loss(self, z: Tensor) -> Tensor:
        """Return the negative log partial likelihood of predictors (n,)."""
        return self.loss_and_gradient(z)[0]

    def loss_and_gradient(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Return the loss and its derivative in the predictors, (n,), from one pass."""
        mass, peak = self._mass(z)
        sums = self._denominators(mass).clamp(min=1e-300)
        own = (self.weights * z.double())[self.event]
        loss = (self.charges * (sums.log() + peak)).sum() - own.sum()
        return loss, mass * self._exposure(sums) - self.weights * self.event

    def _exposure(self, sums: Tensor) -> Tensor:
        """Return how much mass of each sample counts in all denominators, (n,): e^{−peak} Λ."""
        rates = self.charges / sums  # (events,)
        m = len(self.times)
        per_time = rates.new_zeros(m).index_add(0, self.of_event, rates)
        total = torch.cat([per_time.new_zeros(1), per_time.cumsum(0)])
        hazard = total[self.last] - total[self.first]
        left_out = rates.new_zeros(m).index_add(0, self.of_event, self.shares * rates)
        hazard[self.event] -= left_out[self.of_event]
        return hazard

    def gradient(self, z: Tensor) -> Tensor:
        """Return the derivative of the loss in the predictors, (n,)."""
        return self.loss_and_gradient(z)[1]

    def hessian(self, z: Tensor, features: Tensor) -> Tensor:
        """Return the second derivative in coefficients of features (n, P), (P, P)."""
        mass, _ = self._mass(z)
        scaled, sums = mass[:, None] * features, self._denominators(mass).clamp(min=1e-300)
        means = self._denominators(scaled) / sums[:, None]  # (events, P)
        first = features.T @ (self._exposure(sums)[:, None] * scaled)
        return first - means.T @ (self.charges[:, None] * means)

    def scores(self, z: Tensor, features: Tensor) -> Tensor:
        r"""Return what each sample adds to the slope in coefficients of features, (n, P) → (n, P).

        These are the score residuals of Lin and Wei (1989): with the mean features
        :math:`\bar f_e` of those at risk, an event adds :math:`\bar f_e - f` and every event that
        a sample is at risk of adds :math:`e^z (f - \bar f_e)/D_e`. They sum to the slope.
        """
        mass, _ = self._mass(z)
        sums = self._denominators(mass).clamp(min=1e-300)
        means = self._denominators(mass[:, None] * features) / sums[:, None]  # (events, P)
        rates = (self.charges / sums)[:, None] * means
        per_time = rates.new_zeros(len(self.times), rates.shape[1])
        total = per_time.index_add(0, self.of_event, rates).cumsum(0)
        total = torch.cat([torch.zeros_like(total[:1]), total])
        met = total[self.last] - total[self.first]  # (n, P)
        left_out = per_time.index_add(0, self.of_event, self.shares[:, None] * rates)
        met[self.event] -= left_out[self.of_event]
        found = mass[:, None] * (features * self._exposure(sums)[:, None] - met)
        found[self.event] += self.charges[:, None] * means
        return found - (self.weights * self.event)[:, None] * features

    def baseline(self, z: Tensor) -> Tensor:
        """Return event times and Breslow's cumulative baseline hazard at them, (2, m)."""
        mass, peak = self._mass(z)
        steps = self.deaths / self._at_risk(mass).clamp(min=1e-300) * torch.exp(-peak)
        return torch.stack([self.times, steps.cumsum(0)])
