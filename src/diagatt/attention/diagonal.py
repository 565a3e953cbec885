r"""Diagonalized attention (paper, Section 3.2), as a torch module.

For a sample X with rows x_1, …, x_p, head r scores every row on its own, a softmax finds the row,
and a value vector predicts:

.. math::

    ψ_{jr} &= x_j W_r x_j^\top / \sqrt d              && \text{(diag_score)} \\
    κ_r    &= \mathrm{softmax}(ψ_r / τ)               && \text{(softmax_diag_score_multi)} \\
    z      &= \sum_r ⟨v_r, X^\top κ_r⟩ + b            && \text{(final_estimator_multi)}

The paper writes W = W_Q W_Kᵀ and has no intercept b; both are options here.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from diagatt.attention.coupling import coupled_attention
from diagatt.attention.parameterizations import PARAMETERIZATIONS, FullQueryKey
from diagatt.segments import (
    offsets_from,
    row_forms,
    sample_of_row,
    segment_mean,
    segment_softmax,
    segment_sum,
)

# What a row is lengthened by before it is scored: nothing; a constant 1, which gives the score an
# affine term; or a 1 and the mean row of its sample, so that scores compare a row to its company.
SCORE_FORMS = ("quadratic", "affine", "contextual")
COUPLINGS = ("independent", "distinct")


class ScoreForm(NamedTuple):
    """W of lengthened rows (x, 1, c), cut into its terms: x W x + x·u + x T c + const."""

    quadratic: Tensor  # (R, d, d)
    linear: Tensor | None  # (R, d)
    constant: Tensor | None  # (R,)
    context: Tensor | None  # (R, d, d)


def score_dimension(n_features: int, score_form: str) -> int:
    """Side D of the query–key matrices for lengthened rows."""
    extra = {"quadratic": 0, "affine": 1, "contextual": n_features + 1}
    return n_features + extra[score_form]


def split_query_key(query_key: Tensor, d: int) -> ScoreForm:
    """Terms of the score of lengthened rows (x, 1, c).

    Terms in c alone are the same for all rows of a sample; the softmax does not see them.
    """
    if query_key.shape[-1] == d:
        return ScoreForm(query_key, None, None, None)
    linear = query_key[:, :d, d] + query_key[:, d, :d]
    context = None
    if query_key.shape[-1] > d + 1:
        context = query_key[:, :d, d + 1 :] + query_key[:, d + 1 :, :d].mT
    return ScoreForm(query_key[:, :d, :d].contiguous(), linear, query_key[:, d, d], context)


def row_scores(
    values: Tensor, offsets: Tensor, query_key: Tensor, project: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Scores x̃_j W_r x̃_jᵀ of every row, (N, R), unscaled; x̃ is x, (x, 1) or (x, 1, mean row).

    And, from the same pass over the rows, their products with the (d, L) matrix `project`.
    """
    d, heads = values.shape[1], len(query_key)
    form = split_query_key(query_key, d)
    linear = [] if form.linear is None else [form.linear.T]  # (d, R)
    linear += [values.new_empty(d, 0) if project is None else project]
    scores, products = row_forms(values, form.quadratic, torch.cat(linear, dim=1))
    if form.constant is not None:
        scores, products = scores + products[:, :heads] + form.constant, products[:, heads:]
    if form.context is not None:
        mean_row = segment_mean(values, offsets)  # (n, d)
        sample = sample_of_row(offsets)
        pull = torch.stack([mean_row @ T.mT for T in form.context], dim=1)  # (n, R, d)
        scores = scores + torch.einsum("jd,jrd->jr", values, pull[sample])
    return scores, products


class DiagonalAttention(nn.Module):
    """R heads of diagonalized attention over ragged samples.

    Parameters
    ----------
    n_features : int
        Features of a row, d.
    n_heads : int
        R.
    n_outputs : int
        Linear predictors: 1, or the number of classes.
    n_covariates : int
        Shared covariates added to the predictor (paper, after equation model1).
    temperature : float
        τ; divides scores before the softmax.
    parameterization : {"full", "factored", "psd"}
        W free; W = W_Q W_Kᵀ; W = L Lᵀ.
    rank : int, optional
        Columns of the factors. For "full", the rank that `project_` keeps.
    score_form : {"quadratic", "affine", "contextual"}
        Score x; (x, 1): a bias in query and key; or (x, 1, mean row of the sample).
    coupling : {"independent", "distinct"}
        Separate softmaxes as in the paper, or their joint distribution over distinct rows.
    groups : int
        Heads stand in so many groups of equal size and are coupled within groups only (the
        average of several fits).
    value_bound, score_bound : float, optional
        The paper's bounded parameter space: ‖V‖_F ≤ R₁ and ‖W_r‖_op ≤ R₂, kept by `project_`.

    Examples
    --------
    >>> model = DiagonalAttention(n_features=4, n_heads=2)
    >>> values, offsets = torch.randn(7, 4), torch.tensor([0, 3, 7])  # samples of 3 and 4 rows
    >>> model(values, offsets).shape
    torch.Size([2, 1])
    >>> model.attention(values, offsets).shape
    torch.Size([7, 2])
    """

    def __init__(
        self,
        n_features: int,
        n_heads: int = 1,
        n_outputs: int = 1,
        n_covariates: int = 0,
        *,
        temperature: float = 1.0,
        parameterization: str = "full",
        rank: int | None = None,
        score_form: str = "quadratic",
        coupling: str = "independent",
        groups: int = 1,
        value_bound: float | None = None,
        score_bound: float | None = None,
    ) -> None:
        super().__init__()
        if parameterization not in PARAMETERIZATIONS:
            raise ValueError(
                f"unknown parameterization {parameterization!r}: "
                f"choose one of {sorted(PARAMETERIZATIONS)}."
            )
        if score_form not in SCORE_FORMS:
            raise ValueError(
                f"unknown score_form {score_form!r}: choose one of {list(SCORE_FORMS)}."
            )
        if coupling not in COUPLINGS:
            raise ValueError(f"unknown coupling {coupling!r}: choose one of {list(COUPLINGS)}.")
        if not temperature > 0:
            raise ValueError(f"temperature must be positive, got {temperature}.")
        for name, size in [("n_features", n_features), ("n_heads", n_heads)]:
            if size < 1:
                raise ValueError(f"{name} must be at least 1, got {size}.")
        self.n_features, self.n_heads, self.n_outputs = n_features, n_heads, n_outputs
        self.temperature, self.score_form = temperature, score_form
        self.coupling, self.groups = coupling, groups
        self.value_bound, self.score_bound = value_bound, score_bound
        dim = score_dimension(n_features, score_form)
        if rank is not None and not 1 <= rank <= dim:
            raise ValueError(f"rank must lie between 1 and {dim}, got {rank}.")
        self.query_key = PARAMETERIZATIONS[parameterization](n_heads, dim, rank)
        self.value = nn.Parameter(torch.zeros(n_heads, n_features, n_outputs))
        self.intercept = nn.Parameter(torch.zeros(n_outputs))
        self.covariate = nn.Parameter(torch.zeros(n_covariates, n_outputs))
        self.reset_parameters()

    def reset_parameters(self, scale: float = 0.1, generator: torch.Generator | None = None):
        """Draw W (see the parameterization), set values and intercept to zero."""
        self.query_key.reset_(scale, generator)
        for parameter in (self.value, self.intercept, self.covariate):
            nn.init.zeros_(parameter)

    def scores(self, values: Tensor, offsets: Tensor) -> Tensor:
        """ψ, (N, R): equation (diag_score)."""
        return self._scores(values, offsets)[0]

    def _scores(
        self, values: Tensor, offsets: Tensor, project: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """ψ, and the rows' products with `project` if it is given."""
        factors = self.small_factors
        if factors is not None:
            raw = self._factored_scores(values, offsets, *factors)
            products = values[:, :0] if project is None else values @ project
        else:
            raw, products = row_scores(values, offsets, self.query_key.matrix(), project)
        return raw / self.n_features**0.5, products

    def _factored_scores(self, values: Tensor, offsets: Tensor, L: Tensor, K: Tensor) -> Tensor:
        sides = []
        for factor in (L, K):  # (R, D, q)
            flat = factor.permute(1, 0, 2).reshape(factor.shape[1], -1)  # (D, R·q)
            side = values @ flat[: self.n_features]  # (N, R·q)
            if self.score_form != "quadratic":
                side = side + flat[self.n_features]
            if self.score_form == "contextual":
                pulled = segment_mean(values, offsets) @ flat[self.n_features + 1 :]  # (n, R·q)
                side = side + pulled[sample_of_row(offsets)]
            sides.append(side.reshape(len(values), self.n_heads, -1))
        return (sides[0] * sides[1]).sum(dim=-1)

    def attention(self, values: Tensor, offsets: Tensor) -> Tensor:
        """κ, (N, R): equation (softmax_diag_score_multi)."""
        return self._weights(self.scores(values, offsets), offsets)

    def _weights(self, scores: Tensor, offsets: Tensor) -> Tensor:
        scores = scores / self.temperature
        if self.coupling == "independent" or self.n_heads == self.groups:
            return segment_softmax(scores, offsets)
        parts = scores.chunk(self.groups, dim=1)
        return torch.cat([coupled_attention(part, offsets) for part in parts], dim=1)

    def forward(
        self,
        values: Tensor,
        offsets: Tensor | None = None,
        covariates: Tensor | None = None,
        *,
        mask: Tensor | None = None,
    ) -> Tensor:
        """Linear predictors z, (n, K): equation (final_estimator_multi).

        Parameters
        ----------
        values : tensor of shape (N, d), or (n, p, d) with `mask`
            Packed rows, or padded samples.
        offsets : tensor of shape (n + 1,)
            Where samples begin and end; required for packed rows.
        covariates : tensor of shape (n, q), optional
        mask : bool tensor of shape (n, p), optional
            Real rows of padded samples; all of them by default.
        """
        if values.ndim == 3:
            values, offsets = _pack(values, mask)
        if offsets is None:
            raise ValueError("packed rows need offsets; padded samples have shape (n, p, d).")
        # ⟨v_r, Xᵀκ_r⟩ = Σ_j κ_jr ⟨v_r, x_j⟩: project rows first, no pooled rows needed.
        project = self.value.permute(1, 0, 2).flatten(1)  # (d, R·K)
        scores, effects = self._scores(values, offsets, project)
        kappa = self._weights(scores, offsets)  # (N, R)
        effects = effects.reshape(len(values), self.n_heads, self.n_outputs)
        z = segment_sum((kappa[:, :, None] * effects).sum(dim=1), offsets) + self.intercept
        return z if covariates is None else z + covariates @ self.covariate

    def penalty(self, ridge: float, score_ridge: float) -> Tensor:
        """½ ridge ‖V‖² + ½ score_ridge Σ_r ‖W_r‖²."""
        total = 0.5 * ridge * self.value.square().sum()
        if score_ridge:
            total = total + 0.5 * score_ridge * self.query_key.matrix().square().sum()
        return total

    @property
    def small_factors(self) -> tuple[Tensor, Tensor] | None:
        """W_Q and W_K, (R, D, q) each, if they are smaller than W, else None."""
        factors = self.query_key.factors()
        dim = score_dimension(self.n_features, self.score_form)
        return None if factors is None or 2 * factors[0].shape[-1] >= dim else factors

    @property
    def cuts_rank(self) -> bool:
        """Whether `project_` keeps the rank of a free W."""
        return isinstance(self.query_key, FullQueryKey) and self.query_key.rank is not None

    @property
    def projects(self) -> bool:
        """Whether `project_` has anything to do."""
        return self.value_bound is not None or self.score_bound is not None or self.cuts_rank

    @torch.no_grad()
    def project_(self) -> None:
        """Return to the bounded parameter space Θ after a step (see equation obj)."""
        if self.value_bound is not None:
            self.value.mul_(min(1.0, self.value_bound / max(float(self.value.norm()), 1e-300)))
        if self.score_bound is not None or self.cuts_rank:
            self.query_key.project_(self.score_bound)


def _pack(padded: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    if mask is None:
        mask = torch.ones(padded.shape[:2], dtype=torch.bool, device=padded.device)
    lengths = mask.sum(dim=1)
    if bool((lengths == 0).any()):
        raise ValueError(f"sample {int((lengths == 0).nonzero()[0])} has no real row in the mask.")
    return padded[mask], offsets_from(lengths)
