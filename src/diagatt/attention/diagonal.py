r"""Diagonalized attention (paper, Section 3.2), as a torch module.

For a sample X with rows x_1, …, x_p, head r scores every row on its own, a softmax finds the row,
and a value vector predicts:

.. math::

    ψ_{jr} &= x_j W_r x_j^\top / \sqrt d              && \text{(diag_score)} \\
    κ_r    &= \mathrm{softmax}(ψ_r / τ)               && \text{(softmax_diag_score_multi)} \\
    z      &= \sum_r ⟨v_r, X^\top κ_r⟩ + b            && \text{(final_estimator_multi)}

The paper writes W = W_Q W_Kᵀ and has no intercept b; both are options here. So is the readout: z
may also be the predictor of a mixture over rows, see `diagatt.attention.coupling`.
"""

from __future__ import annotations

from typing import Any, Self

import torch
from torch import Tensor, nn

from diagatt.attention.coupling import (
    COUPLINGS,
    READOUTS,
    Assignments,
    assignments,
    attend,
    is_distinct,
)
from diagatt.attention.module import AttentionModule
from diagatt.attention.none_row import Candidates, known_with_none, none_scores, with_none
from diagatt.attention.query_key import PARAMETERIZATIONS
from diagatt.families import Family, get_family
from diagatt.scores import get_score_form
from diagatt.segments import (
    offsets_from,
    one_longer,
    places_before_last,
    segment_logsumexp,
    segment_sum,
    spread,
    weighted_pool,
    with_last,
)


class DiagonalAttention(AttentionModule):
    """R heads of diagonalized attention over ragged samples.

    Parameters
    ----------
    n_features : int
        Features per row, d.
    n_heads : int
        R.
    n_outputs : int
        Linear predictors: 1, or the count of classes.
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
        Count of groups of equal size that heads stand in; they are coupled within groups only
        (the average of several fits).
    readout : {"pooled", "mixture"}
        The predictor of the pooled row, as in the paper; or that of the mixture's mean,
        g(Σ_j κ_j g⁻¹(⟨v, x_j⟩ + b)): one row is active, and κ is its probability.
    family : str or Family, optional
        The response distribution, whose link a mixture needs.
    value_bound, score_bound : float, optional
        The paper's bounded parameter space: ‖V‖_F ≤ R₁ and ‖W_r‖_op ≤ R₂, kept by `project_`.
    none : bool
        Whether samples may have no row of interest, see `diagatt.attention.none_row`; heads then
        choose rows independently of each other.

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
        readout: str = "pooled",
        family: str | Family | None = None,
        value_bound: float | None = None,
        score_bound: float | None = None,
        none: bool = False,
    ) -> None:
        super().__init__()
        if parameterization not in PARAMETERIZATIONS:
            raise ValueError(
                f"unknown parameterization {parameterization!r}: "
                f"choose one of {sorted(PARAMETERIZATIONS)}."
            )
        if coupling not in COUPLINGS:
            raise ValueError(f"unknown coupling {coupling!r}: choose one of {list(COUPLINGS)}.")
        if readout not in READOUTS:
            raise ValueError(f"unknown readout {readout!r}: choose one of {list(READOUTS)}.")
        if readout == "mixture" and family is None:
            raise ValueError("readout='mixture' needs the family, whose link mixes rows.")
        if not temperature > 0:
            raise ValueError(f"temperature must be positive, got {temperature}.")
        for name, size in [("n_features", n_features), ("n_heads", n_heads)]:
            if size < 1:
                raise ValueError(f"{name} must be at least 1, got {size}.")
        self.n_features, self.n_heads, self.n_outputs = n_features, n_heads, n_outputs
        self.temperature, self.score_form = temperature, get_score_form(score_form)
        self.coupling, self.groups = coupling, groups
        self.readout, self.family = readout, None if family is None else get_family(family)
        self.value_bound, self.score_bound = value_bound, score_bound
        dim = self.score_form.side(n_features)
        if rank is not None and not 1 <= rank <= dim:
            raise ValueError(f"rank must lie between 1 and {dim}, got {rank}.")
        self.query_key = PARAMETERIZATIONS[parameterization](n_heads, dim, rank)
        self.value = nn.Parameter(torch.zeros(n_heads, n_features, n_outputs))
        self.intercept = nn.Parameter(torch.zeros(n_outputs))
        self.covariate = nn.Parameter(torch.zeros(n_covariates, n_outputs))
        self.none_score: nn.Parameter | None = None  # (R,)
        self.none_value: nn.Parameter | None = None  # (R, K)
        if none:
            if n_heads > groups:
                raise ValueError("none=True is for one head.")
            self.none_score = nn.Parameter(torch.zeros(n_heads))
            self.none_value = nn.Parameter(torch.zeros(n_heads, n_outputs))
        self.reset_parameters()

    @classmethod
    def with_parameters(
        cls,
        query: Tensor,
        key: Tensor | None,
        value: Tensor,
        intercept: Tensor,
        covariate: Tensor,
        *,
        none: tuple[Tensor, Tensor] | None = None,
        **how: Any,
    ) -> Self:
        """Make a module from given parameters; nothing is drawn and nothing is copied.

        Parameters
        ----------
        query, key : tensors of shape (R, D, q)
            W_Q and W_K; or W itself, (R, D, D), and None.
        value, intercept, covariate : tensors of shapes (R, d, K), (K,) and (n_covariates, K)
        none : tensors of shapes (R,) and (R, K), optional
            Score and value of the none-row.
        **how
            Temperature, score form, coupling, groups, readout and family.
        """
        heads, d, n_outputs = value.shape
        if key is not None:
            how |= {"parameterization": "factored", "rank": key.shape[-1]}
        with torch.device("meta"):
            module = cls(d, heads, n_outputs, len(covariate), none=none is not None, **how)
        state = {"value": value, "intercept": intercept, "covariate": covariate}
        if key is None:
            state["query_key.weight"] = query
        else:
            state |= {"query_key.query": query, "query_key.key": key}
        if none is not None:
            state |= {"none_score": none[0], "none_value": none[1]}
        module.load_state_dict(state, assign=True)
        return module

    @torch.no_grad()
    def reset_parameters(
        self, scale: float = 0.1, generator: torch.Generator | None = None
    ) -> None:
        """Draw W (see the parameterization); set values, intercept and covariates to zero."""
        if self.value.is_meta:  # parameters will be given; torch takes a second to draw nothing
            return
        self.query_key.reset_(scale, generator)
        for parameter in self.effects():
            parameter.zero_()
        if self.none_score is not None:
            self.none_score.zero_()

    @property
    def settings(self) -> dict[str, Any]:
        """What `with_parameters` takes besides parameters, so that copies are of the same kind."""
        return {
            "temperature": self.temperature,
            "score_form": self.score_form.name,
            "coupling": self.coupling,
            "groups": self.groups,
            "readout": self.readout,
            "family": self.family,
        }

    @property
    def has_none(self) -> bool:
        """Whether samples may have no row of interest."""
        return self.none_score is not None

    @property
    def none(self) -> tuple[Tensor, Tensor] | None:
        """Score (R,) and value (R, K) of the none-row, if there is one."""
        if self.none_score is None or self.none_value is None:
            return None
        return self.none_score, self.none_value

    def effects(self) -> list[nn.Parameter]:
        """Return the parameters in which the predictor is linear: V, a of none-rows, b and γ."""
        own = [] if self.none_value is None else [self.none_value]
        return [self.value, *own, self.intercept, self.covariate]

    def scores(self, values: Tensor, offsets: Tensor, log_prior: Tensor | None = None) -> Tensor:
        """Return ψ, (N, R): equation (diag_score); with τ log w of rows that have weights w."""
        return self._scores(values, offsets, log_prior)[0]

    def _scores(
        self,
        values: Tensor,
        offsets: Tensor,
        log_prior: Tensor | None = None,
        project: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return ψ, and the rows' products with `project` if it is given."""
        form, factors = self.score_form, self.small_factors
        if factors is not None:
            query, key = (
                form.products(values, offsets, factor.permute(1, 0, 2).flatten(1))
                for factor in factors  # (R, D, q) → (D, R·q)
            )
            raw = (query * key).reshape(len(values), self.n_heads, -1).sum(dim=-1)
            products = values[:, :0] if project is None else values @ project
        else:
            raw, products = form.scores(values, offsets, self.query_key.matrix(), project)
        scores = raw / self.n_features**0.5
        if log_prior is not None:  # κ ∝ w exp(ψ/τ)
            scores = scores + self.temperature * log_prior[:, None]
        return scores, products

    def features(self, values: Tensor, offsets: Tensor, log_prior: Tensor | None = None) -> Tensor:
        """Return the pooled rows Xᵀκ_r of all heads side by side, (n, R·d), which V multiplies.

        The weights of none-rows, which a multiplies, follow, (n, R).
        """
        kappa = self.attention(values, offsets, log_prior)
        pooled = weighted_pool(kappa, values, offsets).flatten(1)
        if not self.has_none:
            return pooled
        return torch.cat([pooled, 1 - segment_sum(kappa, offsets)], dim=1)

    def attention(self, values: Tensor, offsets: Tensor, log_prior: Tensor | None = None) -> Tensor:
        """Return κ, (N, R): equation (softmax_diag_score_multi)."""
        return self.weights(self.scores(values, offsets, log_prior), offsets)

    def weights(self, scores: Tensor, offsets: Tensor) -> Tensor:
        """Return κ of given scores ψ, (N, R); they sum to the probability that there is a row."""
        if self.none_score is None:
            return attend(scores / self.temperature, offsets, self.coupling, self.groups)
        own = none_scores(offsets, self.none_score, self.temperature)
        scores = with_last(scores, own, offsets)
        kappa = attend(scores / self.temperature, one_longer(offsets), self.coupling, self.groups)
        return kappa[places_before_last(offsets)]

    def forward(
        self,
        values: Tensor,
        offsets: Tensor | None = None,
        covariates: Tensor | None = None,
        offset: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        log_prior: Tensor | None = None,
    ) -> Tensor:
        """Return the linear predictors z, (n, K): equation (final_estimator_multi).

        Parameters
        ----------
        values : tensor of shape (N, d), or (n, p, d) with `mask`
            Packed rows, or padded samples.
        offsets : tensor of shape (n + 1,)
            Where samples begin and end; required for packed rows.
        covariates : tensor of shape (n, q), optional
        offset : tensor of shape (n, K), optional
            A known part of the predictor.
        mask : bool tensor of shape (n, p), optional
            Real rows of padded samples; all of them by default.
        log_prior : tensor of shape (N,), optional
            Logarithms of weights of packed rows, added to ψ/τ.
        """
        if values.ndim == 3:
            values, offsets = _pack(values, mask)
        if offsets is None:
            raise ValueError("packed rows need offsets; padded samples have shape (n, p, d).")
        scores, effects, places = self.candidates(values, offsets, log_prior)
        shared = self.shared(offsets, covariates, offset)
        return self.predictors_of(scores, effects, shared, places)

    def predictors_of(
        self, scores: Tensor, effects: Tensor, shared: Tensor, offsets: Tensor
    ) -> Tensor:
        """Return z, (n, K), of given `candidates` and shared terms (n, K)."""
        if self.family is None or self.readout == "pooled" or self.family.has_identity_link:
            # ⟨v_r, Xᵀκ_r⟩ = Σ_j κ_jr ⟨v_r, x_j⟩: rows were projected, no pooled rows needed.
            kappa = attend(scores / self.temperature, offsets, self.coupling, self.groups)  # (N, R)
            return segment_sum((kappa[:, :, None] * effects).sum(dim=1), offsets) + shared
        # Predictors of several groups are averaged; the values of each are divided by their count.
        groups = zip(scores.chunk(self.groups, 1), effects.chunk(self.groups, 1), strict=True)
        mixed = [
            self.family.mixed_predictor(*self._assignments(own, self.groups * z, shared, offsets))
            for own, z in groups
        ]
        return torch.stack(mixed).mean(dim=0)

    def candidates(
        self, values: Tensor, offsets: Tensor, log_prior: Tensor | None = None
    ) -> Candidates:
        """Return scores and effects of rows and, if samples may have none, of none-rows."""
        scores, effects = self.rows(values, offsets, log_prior)
        if self.none is None:
            return Candidates(scores, effects, offsets)
        return with_none(scores, effects, offsets, *self.none, self.temperature)

    def rows(
        self, values: Tensor, offsets: Tensor, log_prior: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return scores, (N, R), and effects ⟨v_r, x_j⟩, (N, R, K), from one pass over the rows."""
        project = self.value.permute(1, 0, 2).flatten(1)  # (d, R·K)
        scores, effects = self._scores(values, offsets, log_prior, project)
        return scores, effects.reshape(len(values), self.n_heads, self.n_outputs)

    def shared(
        self, offsets: Tensor, covariates: Tensor | None, offset: Tensor | None = None
    ) -> Tensor:
        """Return the part of the predictor that all rows of a sample have in common, (n, K)."""
        if covariates is None:
            shared = self.intercept.expand(len(offsets) - 1, -1)
        else:
            shared = self.intercept + covariates @ self.covariate
        return shared if offset is None else shared + offset

    def _assignments(
        self, scores: Tensor, effects: Tensor, shared: Tensor, offsets: Tensor
    ) -> Assignments:
        scaled = scores / self.temperature
        return assignments(scaled, effects, shared, offsets, is_distinct(self.coupling))

    def log_density(self, y: Tensor, *samples: Any, **known: Any) -> Tensor:
        r"""Return log p(y | X) of a mixture over rows, :math:`\log \sum_j κ_j p(y | z_j, φ)`, (n,).

        Arguments are those of `joint_density`. With several heads the sum runs over assignments of
        rows to heads.
        """
        terms, _, places = self.joint_density(y, *samples, **known)
        return segment_logsumexp(terms, places)

    def assignments(
        self,
        values: Tensor,
        offsets: Tensor,
        covariates: Tensor | None = None,
        offset: Tensor | None = None,
        log_prior: Tensor | None = None,
    ) -> Assignments:
        """Return the rows that may be active, with their log probabilities and predictors."""
        scores, effects, places = self.candidates(values, offsets, log_prior)
        return self._assignments(scores, effects, self.shared(offsets, covariates, offset), places)

    def joint_density(
        self,
        y: Tensor,
        values: Tensor,
        offsets: Tensor,
        covariates: Tensor | None = None,
        phi: float | Tensor = 1.0,
        offset: Tensor | None = None,
        log_known: Tensor | None = None,
        log_prior: Tensor | None = None,
    ) -> Assignments:
        """Return log κ p(y | z, φ) of every row that may be active, (M,), with its predictor.

        With one head, rows that are known not to be active may be left out by a very negative
        `log_known`, (N,).
        """
        scores, effects, places = self.candidates(values, offsets, log_prior)
        shared = self.shared(offsets, covariates, offset)
        if log_known is not None and self.has_none:
            log_known = known_with_none(log_known, offsets)
        return self.joint_density_of(y, scores, effects, shared, places, phi, log_known)

    def joint_density_of(
        self,
        y: Tensor,
        scores: Tensor,
        effects: Tensor,
        shared: Tensor,
        offsets: Tensor,
        phi: float | Tensor = 1.0,
        log_known: Tensor | None = None,
    ) -> Assignments:
        """Return `joint_density` of given `candidates`; φ may be that of every sample, (n,)."""
        if self.family is None or self.readout != "mixture" or self.groups > 1:
            raise ValueError("log_density needs readout='mixture' and one group of heads.")
        log_p, z, places = self._assignments(scores, effects, shared, offsets)
        if isinstance(phi, Tensor) and phi.ndim:
            phi = spread(phi, places)
        terms = log_p + self.family.log_density(spread(y, places), z, phi)  # (M,)
        return Assignments(terms if log_known is None else terms + log_known, z, places)

    def penalty(
        self, ridge: float | Tensor, score_ridge: float, linear_ridge: float | None = None
    ) -> Tensor:
        """Return ½ ridge ‖V‖² + ½ score_ridge Σ_r ‖W_r‖².

        With `linear_ridge`, the linear term x·u of the scores has a penalty of its own,
        ½ linear_ridge ‖u‖², in place of what its entries of W would add.
        """
        total = 0.5 * ridge * self.value.square().sum()
        if self.none_value is not None:
            total = total + 0.5 * ridge * self.none_value.square().sum()
        if score_ridge or linear_ridge:
            W, d = self.query_key.matrix(), self.n_features
            squares = score_ridge * W.square().sum()
            if linear_ridge is not None and self.score_form.has_constant:
                linear = W[:, :d, d].square().sum() + W[:, d, :d].square().sum()
                # Where both halves agree, u = 2 W[:d, d]/√d.
                squares = squares + (2 / d * linear_ridge - score_ridge) * linear
            total = total + 0.5 * squares
        return total

    @property
    def small_factors(self) -> tuple[Tensor, Tensor] | None:
        """W_Q and W_K, (R, D, q) each, if they are smaller than W, else None."""
        factors = self.query_key.factors()
        dim = self.score_form.side(self.n_features)
        return None if factors is None or 2 * factors[0].shape[-1] >= dim else factors

    @property
    def projects(self) -> bool:
        """Whether `project_` has anything to do."""
        bounds = (self.value_bound, self.score_bound)
        return self.query_key.cuts_rank or any(bound is not None for bound in bounds)

    @torch.no_grad()
    def project_(self) -> None:
        """Project parameters onto the bounded space Θ after a step (see equation obj)."""
        if self.value_bound is not None:
            self.value.mul_(min(1.0, self.value_bound / max(float(self.value.norm()), 1e-300)))
        if self.score_bound is not None or self.query_key.cuts_rank:
            self.query_key.project_(self.score_bound)


def _pack(padded: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    if mask is None:
        mask = torch.ones(padded.shape[:2], dtype=torch.bool, device=padded.device)
    lengths = mask.sum(dim=1)
    if bool((lengths == 0).any()):
        raise ValueError(f"sample {int((lengths == 0).nonzero()[0])} has no real row in the mask.")
    return padded[mask], offsets_from(lengths)
