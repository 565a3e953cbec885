"""Ways to write the query–key matrices W_1, …, W_R (paper, Sections 3.1 and 3.2).

Each is a module whose `matrix` gives W of shape (R, D, D). `factors` gives the pair (L, K) with
W = L Kᵀ where there is one, so that scores of low rank cost 2Dq instead of D² per row.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class FullQueryKey(nn.Module):
    """W itself, without constraints."""

    def __init__(self, n_heads: int, dim: int, rank: int | None = None) -> None:
        super().__init__()
        self.rank = rank  # kept by `project_` alone
        self.weight = nn.Parameter(torch.zeros(n_heads, dim, dim))

    @property
    def cuts_rank(self) -> bool:
        """Whether `project_` must keep the rank."""
        return self.rank is not None

    def reset_(self, scale: float, generator: torch.Generator | None) -> None:
        """Draw entries from N(0, scale⁴·D), as products of two factors of N(0, scale²) vary."""
        scale = scale**2 * self.weight.shape[-1] ** 0.5
        nn.init.normal_(self.weight, std=scale, generator=generator)

    def matrix(self) -> Tensor:  # (R, D, D)
        """Return the query–key matrices W_r."""
        return self.weight

    def factors(self) -> tuple[Tensor, Tensor] | None:
        """Return None: there is nothing smaller than W itself."""
        return None

    @torch.no_grad()
    def set_matrix(self, matrix: Tensor) -> None:
        """Set W."""
        self.weight.copy_(matrix)

    @torch.no_grad()
    def project_(self, bound: float | None) -> None:
        """Move to the nearest W with ‖W_r‖_op ≤ bound and rank ≤ `rank`, by singular values."""
        U, S, Vh = torch.linalg.svd(self.weight)
        if self.rank is not None:
            S[:, self.rank :] = 0
        limit = torch.inf if bound is None else bound
        self.weight.copy_(U * S.clamp(max=limit)[:, None, :] @ Vh)


class FactoredQueryKey(nn.Module):
    """W = W_Q W_Kᵀ with W_Q, W_K of shape (D, d′): low rank if d′ < D, the paper's if d′ = D."""

    cuts_rank = False

    def __init__(self, n_heads: int, dim: int, rank: int | None = None) -> None:
        super().__init__()
        self.rank = dim if rank is None else rank
        self.query = nn.Parameter(torch.zeros(n_heads, dim, self.rank))
        self.key = nn.Parameter(torch.zeros(n_heads, dim, self.rank))

    def reset_(self, scale: float, generator: torch.Generator | None) -> None:
        """Draw entries of W_Q and W_K from N(0, scale²)."""
        nn.init.normal_(self.query, std=scale, generator=generator)
        nn.init.normal_(self.key, std=scale, generator=generator)

    def matrix(self) -> Tensor:  # (R, D, D)
        """Return the query–key matrices W_r."""
        return self.query @ self.key.mT

    def factors(self) -> tuple[Tensor, Tensor] | None:
        """Return W_Q and W_K."""
        return self.query, self.key

    @torch.no_grad()
    def set_matrix(self, matrix: Tensor) -> None:
        """Set the nearest W of this rank; both factors share its singular values evenly."""
        U, S, Vh = torch.linalg.svd(matrix)
        root = S[:, None, : self.rank].sqrt()
        width = root.shape[-1]
        self.query.zero_()[:, :, :width] = U[:, :, :width] * root
        self.key.zero_()[:, :, :width] = Vh.mT[:, :, :width] * root

    @torch.no_grad()
    def project_(self, bound: float | None) -> None:
        """Move to the nearest W with ‖W_r‖_op ≤ bound."""
        W = self.matrix()
        U, S, Vh = torch.linalg.svd(W)
        if bound is not None and bool((bound < S).any()):
            self.set_matrix(U * S.clamp(max=bound)[:, None, :] @ Vh)


class PSDQueryKey(nn.Module):
    """W = L Lᵀ, positive semidefinite, rank at most d′ (the form of the separating matrices)."""

    cuts_rank = False

    def __init__(self, n_heads: int, dim: int, rank: int | None = None) -> None:
        super().__init__()
        self.rank = dim if rank is None else rank
        self.factor = nn.Parameter(torch.zeros(n_heads, dim, self.rank))

    def reset_(self, scale: float, generator: torch.Generator | None) -> None:
        """Draw entries of L from N(0, scale²)."""
        nn.init.normal_(self.factor, std=scale, generator=generator)

    def matrix(self) -> Tensor:  # (R, D, D)
        """Return the query–key matrices W_r."""
        return self.factor @ self.factor.mT

    def factors(self) -> tuple[Tensor, Tensor] | None:
        """Return L twice."""
        return self.factor, self.factor

    @torch.no_grad()
    def set_matrix(self, matrix: Tensor) -> None:
        """Set the positive semidefinite W of this rank that is nearest to the symmetric part."""
        values, vectors = torch.linalg.eigh((matrix + matrix.mT) / 2)
        values, vectors = values.flip(-1), vectors.flip(-1)  # largest first
        root = values[:, None, : self.rank].clamp(min=0).sqrt()
        width = root.shape[-1]
        self.factor.zero_()[:, :, :width] = vectors[:, :, :width] * root

    @torch.no_grad()
    def project_(self, bound: float | None) -> None:
        """Move to the nearest W with ‖W_r‖_op ≤ bound: singular values of L are at most √bound."""
        U, S, Vh = torch.linalg.svd(self.factor, full_matrices=False)
        limit = torch.inf if bound is None else bound**0.5
        self.factor.copy_(U * S.clamp(max=limit)[:, None, :] @ Vh)


PARAMETERIZATIONS: dict[str, type[FullQueryKey | FactoredQueryKey | PSDQueryKey]] = {
    "full": FullQueryKey,
    "factored": FactoredQueryKey,
    "psd": PSDQueryKey,
}
