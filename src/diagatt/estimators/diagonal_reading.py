"""Reading a fit: where the model looks, how sure it is, and what it estimates."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted
from torch import Tensor

from diagatt import attributes, coerce, parameters
from diagatt.attention.coupling import COUPLINGS, best_rows, least_rows
from diagatt.attention.diagonal import DiagonalAttention
from diagatt.certainty import Certainty, Summary
from diagatt.certainty.summary import coefficient
from diagatt.estimators.base import RowsEstimator
from diagatt.estimators.stored import by_shard
from diagatt.ragged import RaggedRows
from diagatt.scores import SCORE_FORMS, get_score_form
from diagatt.segments import map_blocks, segment_sum, weighted_pool
from diagatt.stores import RowStore


class DiagonalReading(TransformerMixin, RowsEstimator):
    """What a fitted diagonalized attention says; `_DiagAtt` fits it."""

    fitted_rules: ClassVar[attributes.Rules] = {
        **dict.fromkeys(("query_", "value_", "intercept_", "covariate_coef_"), attributes.floats()),
        "key_": parameters.optional(attributes.floats()),
        "value_se_": attributes.errors(),
        "n_heads_": parameters.count(1),
        "n_restarts_": parameters.count(1),
        "n_covariates_": parameters.count(),
        "n_samples_": attributes.size(1),
        "n_iter_": parameters.count(),
        "temperature_": parameters.positive(),
        "score_form_": parameters.one_of(*SCORE_FORMS),
        "coupling_": parameters.one_of(*COUPLINGS),
        "solver_": attributes.text(),
        "log_likelihood_": parameters.optional(attributes.number()),
        "unevenness_": attributes.list_of(attributes.number()),
        **dict.fromkeys(("history_", "selection_", "criteria_"), attributes.report()),
        "communication_": attributes.counts("processes", "reductions", "bytes", "sample_bytes"),
    }
    # A score or an effect is finite only if all entries of its row are: those are looked at.
    _looks_at_every_entry = False
    query_: np.ndarray  # (M·R, D, q), or W itself, (M·R, D, D)
    key_: np.ndarray | None  # (M·R, D, q), or None

    def _validate_rows(self, X: Any, *, reset: bool) -> RaggedRows:
        rows = super()._validate_rows(X, reset=reset)
        if not reset:
            check_lengths(rows, self.coupling_, self.n_heads_)
        return rows

    def _fitted_shapes(self) -> dict[str, tuple[int, ...]]:
        heads, d, q = self.n_heads_ * self.n_restarts_, self.n_features_in_, self.n_covariates_
        K, D = self._fitted_family()[1], get_score_form(self.score_form_).side(d)
        rank = D if self.key_ is None else self.key_.shape[-1] if self.key_.ndim else 0
        outputs = () if K == 1 else (K,)
        return {
            **super()._fitted_shapes(),
            "query_": (heads, D, rank),
            "key_": (heads, D, rank),
            "value_": (heads, *outputs, d),
            "intercept_": outputs,
            "covariate_coef_": (*outputs, q),
            "value_se_": (heads * d + 1 + q,),
        }

    @property
    def query_key_(self) -> np.ndarray:
        """W of every head, (M·R, D, D); multiplied out if its factors are kept."""
        check_is_fitted(self)
        return self.query_ if self.key_ is None else self.query_ @ self.key_.swapaxes(1, 2)

    @query_key_.setter
    def query_key_(self, W: np.ndarray) -> None:
        self.query_, self.key_ = W, None

    def to_module(self) -> DiagonalAttention:
        """Return the fitted model as a torch module (M·R heads if M restarts were averaged)."""
        check_is_fitted(self)
        heads, d = len(self.value_), self.value_.shape[-1]
        K = np.size(self.intercept_)
        query, *effects = (
            torch.tensor(array, dtype=self._dtype)
            for array in (
                self.query_,
                self.value_.reshape(heads, K, d).swapaxes(1, 2),
                np.reshape(self.intercept_, K),
                np.reshape(self.covariate_coef_, (K, -1)).T,
            )
        )
        return DiagonalAttention.with_parameters(
            query,
            None if self.key_ is None else torch.tensor(self.key_, dtype=self._dtype),
            *effects,
            temperature=self.temperature_,
            score_form=self.score_form_,
            coupling=self.coupling_,
            groups=self.n_restarts_,
        )

    @property
    def _dtype(self) -> torch.dtype:
        return torch.from_numpy(self.value_).dtype

    def _packed(self, X: Any) -> tuple[RaggedRows, DiagonalAttention, Tensor, Tensor]:
        """Return checked samples, the module, and the samples' packed rows with offsets."""
        check_is_fitted(self)
        rows, module = self._validate_rows(X, reset=False), self.to_module().to(self.device)
        return rows, module, *rows.to_torch(self.device, module.value.dtype)

    @by_shard
    @torch.no_grad()
    def _linear_predictor(self, X: Any, covariates: Any = None) -> np.ndarray:
        rows, module, values, offsets = self._packed(X)
        Z = self._covariates(covariates, len(rows))
        z = map_blocks(module, values, offsets, torch.as_tensor(Z).to(values))
        _refuse_nonfinite(z, rows)
        return z.cpu().numpy()

    @torch.no_grad()
    def _attention(self, X: Any) -> tuple[RaggedRows, Tensor, Tensor, Tensor]:
        """Return samples, weights of every restart (N, M, R), and packed rows with offsets."""
        rows, module, values, offsets = self._packed(X)
        scores = map_blocks(module.scores, values, offsets)
        _refuse_nonfinite(scores, rows)
        kappa = map_blocks(module.weights, scores, offsets)
        return rows, kappa.reshape(len(values), self.n_restarts_, self.n_heads_), values, offsets

    @torch.no_grad()
    def _scores(self, X: Any) -> tuple[RaggedRows, Tensor, Tensor]:
        """Return samples, scores ψ/τ of every restart (N, M, R), and offsets."""
        rows, module, values, offsets = self._packed(X)
        scores = map_blocks(module.scores, values, offsets) / self.temperature_
        _refuse_nonfinite(scores, rows)
        return rows, scores.reshape(len(values), self.n_restarts_, self.n_heads_), offsets

    @by_shard
    def scores(self, X: Any) -> list[np.ndarray]:
        """Return the scores ψ/τ behind the attention, one ``(p_i, n_heads)`` array per sample.

        With several restarts, these are means over restarts.
        """
        rows, scores, _ = self._scores(X)
        return _per_sample(scores.mean(dim=1), rows)

    @by_shard
    def attention(self, X: Any) -> list[np.ndarray]:
        """Return the attention weights κ (equation softmax_diag_score_multi).

        Parameters
        ----------
        X : samples

        Returns
        -------
        list of arrays of shape (p_i, n_heads)
            Columns sum to 1. With several restarts, these are means over restarts.
        """
        rows, kappa, _, _ = self._attention(X)
        return _per_sample(kappa.mean(dim=1), rows)

    @by_shard
    def locate(self, X: Any) -> np.ndarray:
        """Return the row of interest of each head, the paper's Ŝ: where attention is largest.

        With ``coupling="distinct"`` the heads' rows differ: of all distinct rows, those with the
        largest product of weights.

        Returns
        -------
        array of shape (n_samples, n_heads), int
            Row indices within each sample, from 0.
        """
        check_is_fitted(self)
        if self.n_restarts_ == 1 and least_rows(self.coupling_, self.n_heads_) == 1:
            _, scores, offsets = self._scores(X)  # the softmax keeps their order
            return best_rows(scores[:, 0], offsets, self.coupling_).cpu().numpy()
        _, kappa, _, offsets = self._attention(X)
        return best_rows(kappa.mean(dim=1), offsets, self.coupling_).cpu().numpy()

    @by_shard
    def certainty(self, X: Any) -> Certainty:
        """Return rows of interest with their posterior and entropy, and which are ambiguous."""
        _, kappa, _, offsets = self._attention(X)
        kappa = kappa.mean(dim=1)  # (N, R)
        rows = best_rows(kappa, offsets, self.coupling_)
        posterior = kappa[offsets[:-1, None] + rows, torch.arange(self.n_heads_)]
        entropy = segment_sum(-torch.special.xlogy(kappa, kappa), offsets)
        arrays = (rows, posterior, entropy, posterior < 0.5)
        return Certainty(*(array.cpu().numpy() for array in arrays))

    def summary(self) -> Summary:
        """Return value vectors with standard errors, log-likelihood, AIC and BIC; print it.

        Standard errors come from the observed information of the likelihood solver, with the
        distributions of rows taken as known; other solvers give none.
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self)
        numbered = [f"covariate {j}" for j in range(self.n_covariates_)]
        covariates = getattr(self, "covariate_names_in_", numbered)
        heads, outputs = self.n_restarts_ * self.n_heads_, np.size(self.intercept_)
        value = self.value_.reshape(heads, outputs, -1)
        se = np.full(value[:, 0].size + 1 + self.n_covariates_, np.nan)
        se = se if self.value_se_ is None else self.value_se_
        classes = [""] if outputs == 1 else [f" {c}" for c in self.classes_]
        lines = []
        for k, label in enumerate(classes):
            estimates = value[:, k].ravel()
            where = [(f"head {r}{label}", x) for r in range(heads) for x in names]
            shared = [np.atleast_1d(self.intercept_)[k], *np.atleast_2d(self.covariate_coef_)[k]]
            where += [(f"shared{label}", "intercept")]
            where += [(f"shared{label}", name) for name in covariates]
            for (head, x), estimate, error in zip(where, [*estimates, *shared], se, strict=True):
                lines.append(coefficient(head, x, float(estimate), float(error)))
        facts = {
            "samples": self.n_samples_,
            "family": self._fitted_family()[0].name,
            "solver": self.solver_,
            "attention (0 uniform, 1 one row)": ", ".join(f"{u:.3f}" for u in self.unevenness_),
        }
        return Summary(type(self).__name__, facts, lines, self.criteria_)

    @by_shard
    def restart_agreement(self, X: Any) -> np.ndarray:
        """Return the share of restarts that point at the row of `locate`, (n_samples, n_heads).

        It is 1 where all restarts agree; low values say how little a row can be trusted.
        """
        _, kappa, _, offsets = self._attention(X)
        located = best_rows(kappa.mean(dim=1), offsets, self.coupling_)
        votes = [best_rows(part, offsets, self.coupling_) == located for part in kappa.unbind(1)]
        return torch.stack(votes).double().mean(dim=0).cpu().numpy()

    @by_shard
    def transform(self, X: Any) -> np.ndarray:
        """Return the pooled rows Xᵀκ_r of all heads, (n_samples, n_heads · n_features)."""
        rows, kappa, values, offsets = self._attention(X)
        pooled = weighted_pool(kappa.mean(dim=1), values, offsets)
        return pooled.flatten(1).cpu().numpy().astype(rows.dtype, copy=False)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names ``head0_x0, head0_x1, …`` of the columns of `transform`."""
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        return np.array([f"head{r}_{x}" for r in range(self.n_heads_) for x in names], object)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _refuse_nonfinite(found: Tensor, rows: RaggedRows) -> None:
    """Refuse rows with NaN, infinity or too large entries if what came of them is not finite."""
    if not bool(torch.isfinite(found.sum())):
        coerce.refuse_nonfinite(rows)
        if not bool(torch.isfinite(found).all()):
            coerce.refuse_overflow(rows)


def _per_sample(packed: torch.Tensor, rows: RaggedRows) -> list[np.ndarray]:
    return np.split(packed.cpu().numpy(), rows.offsets[1:-1])


def check_lengths(
    rows: RaggedRows | RowStore,
    coupling: str,
    n_heads: int,
    advice: str = "drop short samples, or fit with ",
) -> None:
    """Refuse samples that have fewer rows than heads that need distinct rows."""
    short, length = rows.shortest()
    if least_rows(coupling, n_heads) > length:
        raise ValueError(
            f"n_heads={n_heads} heads need {n_heads} distinct rows, but sample {short} has "
            f"{length}: {advice}coupling='independent'."
        )
