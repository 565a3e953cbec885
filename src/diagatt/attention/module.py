"""The interface of attention modules that `diagatt.solvers.gradient.adam.train` trains."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from diagatt.segments import sample_blocks


class AttentionModule(nn.Module):
    """A torch module whose predictors are linear in V and b, given features of the samples.

    .. math:: z = f(X)^⊤ V + b

    A subclass sets `value`, (…, K) with as many entries as `features` has columns times K, and
    `intercept`, (K,), and defines `features`. All other parameters are those of its scores.
    """

    value: nn.Parameter
    intercept: nn.Parameter

    def features(self, values: Tensor, offsets: Tensor) -> Tensor:
        """Return the features of packed samples that V multiplies, (n, P).

        A module with a `forward` of its own, such as a mixture over rows, may have none.
        """
        raise NotImplementedError(f"{type(self).__name__} has no features.")

    def forward(
        self,
        values: Tensor,
        offsets: Tensor,
        covariates: Tensor | None = None,
        offset: Tensor | None = None,
    ) -> Tensor:
        """Return linear predictors z, (n, K).

        Parameters
        ----------
        values : tensor of shape (N, d)
            Packed rows.
        offsets : tensor of shape (n + 1,)
        covariates : tensor of shape (n, q), optional
            Only modules with coefficients for them use covariates.
        offset : tensor of shape (n, K), optional
            A known part of the predictors.
        """
        K = self.value.shape[-1]
        z = self.features(values, offsets) @ self.value.reshape(-1, K) + self.intercept
        return z if offset is None else z + offset

    def effects(self) -> list[nn.Parameter]:
        """Return the parameters in which predictors are linear: V, b, and γ if there is one."""
        return [self.value, self.intercept]

    def scoring(self) -> list[nn.Parameter]:
        """Return the parameters of the scores."""
        effects = {id(parameter) for parameter in self.effects()}
        return [p for p in self.parameters() if id(p) not in effects]

    def blocks(self, offsets: Tensor) -> Iterator[tuple[slice, slice]]:
        """Cut samples into blocks that go through together: (samples, rows) slices."""
        return sample_blocks(offsets)

    def penalty(self, ridge: float, score_ridge: float) -> Tensor:
        """Return ½ ridge ‖V‖² + ½ score_ridge ‖parameters of the scores‖²."""
        scores = torch.stack([p.square().sum() for p in self.scoring()]).sum()
        return 0.5 * (ridge * self.value.square().sum() + score_ridge * scores)

    @property
    def projects(self) -> bool:
        """Whether parameters are bounded, so that `project_` follows each step."""
        return False

    def project_(self) -> None:
        """Project parameters onto their bounded space; there are no bounds by default."""
