"""Reading a fit: predictions, attention, rows of interest, and the summary of estimates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from sklearn.base import TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted
from torch import Tensor

from diagatt import coerce, parameters
from diagatt.attention.blend import Blend
from diagatt.attention.coupling import best_rows, least_rows
from diagatt.attention.none_row import none_probability
from diagatt.attention.row_terms import row_terms
from diagatt.certainty import ContestReport, Summary
from diagatt.certainty.summary import coefficient
from diagatt.covariates import parted
from diagatt.estimators.containers import by_shard
from diagatt.estimators.fitted_diagonal import FittedDiagonal
from diagatt.ragged import RaggedRows
from diagatt.segments import map_blocks, segment_max, weighted_pool


class DiagonalReading(TransformerMixin, FittedDiagonal):
    """Methods that read a fitted diagonalized attention; `_DiagAtt` fits it."""

    def _packed(self, X: Any) -> tuple[RaggedRows, Any, Tensor, Tensor]:
        """Return checked samples, the module, and the samples' packed rows with offsets."""
        check_is_fitted(self)
        rows, module = self._validate_rows(X, reset=False), self.to_module().to(self.device)
        return rows, module, *rows.to_torch(self.device, self._dtype)

    def _log_prior(self, rows: RaggedRows) -> Tensor | None:
        """Return the logarithms of the rows' weights, (N,); None without."""
        if rows.log_prior is None:
            return None
        return torch.as_tensor(rows.log_prior).to(self.device, self._dtype)

    @by_shard
    @torch.no_grad()
    def _linear_predictor(
        self, X: Any, covariates: Any = None, offset: Any = None, exposure: Any = None
    ) -> np.ndarray:
        X, covariates = parted(X, covariates)
        rows, module, values, offsets = self._packed(X)
        coerce.refuse_other_order(rows, covariates=covariates, offset=offset, exposure=exposure)
        given = [self._covariates(covariates, len(rows))]
        known = self._offset(offset, exposure, len(rows))
        given += [] if known is None else [known]
        arrays = (torch.as_tensor(array).to(values) for array in given)
        z = map_blocks(module, values, offsets, *arrays, log_prior=self._log_prior(rows))
        _refuse_overflow(z, rows)
        return z.cpu().numpy()

    @torch.no_grad()
    def _attention(self, X: Any) -> tuple[RaggedRows, Tensor, Tensor, Tensor, Tensor]:
        """Return samples, weights of every restart or member (N, M, R), their shares (M,), rows.

        The packed rows come with their offsets.
        """
        rows, module, values, offsets = self._packed(X)
        if isinstance(module, Blend):
            prior = self._log_prior(rows)
            kappa = map_blocks(module.weights_of_voters, values, offsets, log_prior=prior)
            shares = values.new_tensor(module.votes)
        else:
            scores = map_blocks(module.scores, values, offsets, log_prior=self._log_prior(rows))
            _refuse_overflow(scores, rows)
            kappa = map_blocks(module.weights, scores, offsets)
            shares = values.new_full((self.n_restarts_,), 1 / self.n_restarts_)
        return rows, kappa.reshape(len(values), len(shares), -1), shares, values, offsets

    def _mean_attention(self, X: Any) -> tuple[RaggedRows, Tensor, Tensor, Tensor]:
        """Return samples, attention weights (N, R), and packed rows with offsets."""
        rows, kappa, shares, values, offsets = self._attention(X)
        return rows, torch.einsum("jmr,m->jr", kappa, shares), values, offsets

    @torch.no_grad()
    def _scores(self, X: Any) -> tuple[RaggedRows, Tensor, Tensor]:
        """Return samples, scores ψ/τ, means over restarts or members, (N, R), and offsets."""
        rows, module, values, offsets = self._packed(X)
        scores = map_blocks(module.scores, values, offsets, log_prior=self._log_prior(rows))
        _refuse_overflow(scores, rows)
        if not isinstance(module, Blend):
            scores = scores.reshape(len(values), self.n_restarts_, -1).mean(dim=1)
            scores = scores / float(self.temperature_)
        return rows, scores, offsets

    @by_shard
    def scores(self, X: Any) -> list[np.ndarray]:
        """Return the scores ψ/τ behind the attention, one ``(p_i, n_heads)`` array per sample.

        With several restarts or members, the scores are means over them.
        """
        rows, scores, _ = self._scores(X)
        return _per_sample(scores, rows)

    @by_shard
    def attention(self, X: Any, target: Any = None, covariates: Any = None) -> list[np.ndarray]:
        r"""Return the attention weights κ (equation softmax_diag_score_multi).

        Parameters
        ----------
        X : samples
        target : class, optional
            Return the rows that indicate this class: the weights are then those of the rows given
            that the sample is of the class,
            :math:`κ_j\, P(y = k | x_j) / \sum_l κ_l\, P(y = k | x_l)`. With several labels, this is
            the column of y or its name, and the weights are those given that the label is 1.
        covariates : array of shape (n, q), optional
            Needed with `target` if the model was fitted with covariates.

        Returns
        -------
        list of arrays of shape (p_i, n_heads)
            Columns sum to 1, or, if samples may have no row of interest (``none=True`` of the
            solver), to the probability that there is one. With several restarts or members, the
            weights are means over them.
        """
        if target is not None:
            rows, kappa, _ = self._attention_given(X, target, covariates)
        else:
            rows, kappa, _, _ = self._mean_attention(X)
        return _per_sample(kappa, rows)

    @torch.no_grad()
    def _attention_given(
        self, X: Any, target: Any, covariates: Any
    ) -> tuple[RaggedRows, Tensor, Tensor]:
        """Return samples, weights of rows given a class (N, R), and offsets."""
        check_is_fitted(self)
        family, place = self._fitted_family()[0], self._target_place(target)
        rows, module, values, offsets = self._packed(X)
        Z = torch.as_tensor(self._covariates(covariates, len(rows))).to(values)

        def of_class(z: Tensor) -> Tensor:
            if family.n_outcomes > 1:  # z of this label alone determines its probability
                return torch.nn.functional.logsigmoid(z[:, place])
            return -family.loss(z.new_full((len(z),), place), z)

        def of_block(
            values: Tensor, offsets: Tensor, Z: Tensor, log_prior: Tensor | None = None
        ) -> Tensor:
            return row_terms(module, values, offsets, Z, None, log_prior).weights_given(of_class)

        prior = self._log_prior(rows)
        return rows, map_blocks(of_block, values, offsets, Z, log_prior=prior), offsets

    def _target_place(self, target: Any) -> int:
        """Return the column of a class, or of one of several labels."""
        if not self._fitted_family()[0].classifies:
            raise ValueError("target is for classes: for numbers, call attention(X) without it.")
        known = [np.asarray(self.classes_).tolist(), list(self._output_names())]
        for names in known:
            if target in names:
                return names.index(target)
        raise ValueError(
            f"target={target!r} is no class of this model: it has {', '.join(map(str, known[0]))}."
        )

    @by_shard
    def locate(
        self, X: Any, target: Any = None, covariates: Any = None, none: bool = False
    ) -> np.ndarray:
        """Return the row of interest of each head, where its attention is largest (the paper's Ŝ).

        With ``coupling="distinct"``, the rows of the heads differ: of all choices of distinct rows,
        it is the one with the largest product of weights.

        Parameters
        ----------
        X : samples
        target, covariates
            Locate the row that most indicates a class; see `attention`.
        none : bool
            Return −1 for samples in which having no row of interest is more probable than any
            single row. This needs a solver with ``none=True``.

        Returns
        -------
        array of shape (n_samples, n_heads), int
            Indices of rows within each sample, counted from 0.
        """
        check_is_fitted(self)
        if target is not None and none:
            raise ValueError("target and none=True cannot be combined: leave one of them out.")
        if target is not None:
            _, kappa, offsets = self._attention_given(X, target, covariates)
            return best_rows(kappa, offsets, self.coupling_).cpu().numpy()
        if none:
            return self._locate_or_none(X)
        alone = self.n_restarts_ == 1 and len(self.members_) <= 1
        if alone and least_rows(self.coupling_, self.n_heads_) == 1:
            _, scores, offsets = self._scores(X)  # the softmax keeps their order
            return best_rows(scores, offsets, self.coupling_).cpu().numpy()
        _, kappa, _, offsets = self._mean_attention(X)
        return best_rows(kappa, offsets, self.coupling_).cpu().numpy()

    def _locate_or_none(self, X: Any) -> np.ndarray:
        if self.none_score_ is None:
            raise ValueError(
                "this fit takes every sample as having a row of interest: fit with a solver that "
                "has none=True, for example solver=Mixture(none=True)."
            )
        _, kappa, _, offsets = self._mean_attention(X)
        located = best_rows(kappa, offsets, self.coupling_)
        is_none = none_probability(kappa, offsets) > segment_max(kappa, offsets)
        return torch.where(is_none, -1, located).cpu().numpy()

    def summary(self, level: float = 0.95) -> Summary:
        """Return coefficients with intervals, tests and criteria, ready to be printed.

        Standard errors come from the sandwich over all parameters (`diagatt.solvers.sandwich`); if
        there are none, a line says why. ``summary().to_frame()`` returns the coefficients as a data
        frame, `to_latex` and `to_html` return them as tables.

        Parameters
        ----------
        level : float
            Level of the intervals.
        """
        check_is_fitted(self)
        parameters.check_share(level, "level")
        names = self._encoded_names()
        numbered = [f"covariate {j}" for j in range(self.n_covariates_)]
        covariates = getattr(self, "covariate_names_in_", numbered)
        heads, outputs = self.n_restarts_ * self.n_heads_, np.size(self.intercept_)
        value = self.value_.reshape(heads, outputs, -1)
        se = np.full((outputs, value[:, 0].size + 1 + self.n_covariates_), np.nan)
        if self.value_se_ is not None:
            se = np.broadcast_to(np.atleast_2d(self.value_se_), se.shape)
        classes = [""] if outputs == 1 else [f" {name}" for name in self._output_names()]
        lines = []
        for k, label in enumerate(classes):
            estimates = value[:, k].ravel()
            where = [(f"head {r}{label}", x) for r in range(heads) for x in names]
            shared = [np.atleast_1d(self.intercept_)[k], *np.atleast_2d(self.covariate_coef_)[k]]
            where += [(f"shared{label}", "intercept")]
            where += [(f"shared{label}", name) for name in covariates]
            for (head, x), estimate, error in zip(where, [*estimates, *shared], se[k], strict=True):
                lines.append(coefficient(head, x, float(estimate), float(error), level))
        facts: dict[str, Any] = {"samples": self.n_samples_}
        if self.n_rows_:
            facts["rows"] = self.n_rows_
        facts |= {
            "family": self._fitted_family()[0].label,
            "solver": self.solver_,
            **self._blend_facts(),
            **self._out_of_fold_facts(),
            "attention (0 uniform, 1 one row)": ", ".join(f"{u:.3f}" for u in self.unevenness_),
        }
        if self.prevalence_ is not None:
            facts["samples with a row of interest"] = f"{100 * self.prevalence_:.1f} % (estimated)"
            if self.prevalence_interval_ is not None:
                low, high = 100 * self.prevalence_interval_
                facts["95 % interval of that share"] = f"{low:.1f} to {high:.1f} %"
        facts |= self._missing_facts()
        if self.errors_note_:
            facts["standard errors"] = self.errors_note_.replace("no standard errors", "none", 1)
        joint = self.log_likelihood_ is not None
        facts["log-likelihood of"] = "rows and responses" if joint else "responses"
        return Summary(type(self).__name__, facts, lines, self.criteria_, level)

    def _output_names(self) -> Sequence[Any]:
        """Return the names of the predictors if there are several: the classes."""
        return self.classes_.tolist()

    def _out_of_fold_facts(self) -> dict[str, Any]:
        """Return facts that come from predictions out of fold, if there are any."""
        return {}

    def _blend_facts(self) -> dict[str, Any]:
        """Return which of several members the coefficients belong to."""
        if not self.members_:
            return {}
        facts: dict[str, Any] = {"coefficients of": self.described_}
        if len(self.members_) > 1:
            own = (self.solver_, self.described_)  # several solvers may share a label
            weight = sum(e["weight"] for e in self.contest_ if (e["solver"], e["what"]) == own)
            count = f"{len(self.members_)} members"
            without = f"none; the {count} that predict have no coefficients of single features"
            facts["its weight in the blend"] = f"{weight:.2f} of {count}" if weight else without
        return facts

    @property
    def report_(self) -> ContestReport:
        """Contestants with their log scores out of fold, best first, ready to be printed."""
        check_is_fitted(self)
        return ContestReport(list(self.contest_))

    @by_shard
    def restart_agreement(self, X: Any) -> np.ndarray:
        """Return the share of restarts that agree with the row of `locate`, (n_samples, n_heads).

        It is 1 where all restarts agree; a row with a low share should not be trusted. Members of a
        blend count in proportion to their votes.
        """
        _, kappa, shares, _, offsets = self._attention(X)
        mean = torch.einsum("jmr,m->jr", kappa, shares)
        located = best_rows(mean, offsets, self.coupling_)
        votes = [best_rows(part, offsets, self.coupling_) == located for part in kappa.unbind(1)]
        agreement = torch.einsum("mnr,m->nr", torch.stack(votes).double(), shares.double())
        return agreement.clamp(max=1.0).cpu().numpy()

    @by_shard
    def transform(self, X: Any) -> np.ndarray:
        """Return the pooled rows Xᵀκ_r of all heads, (n_samples, n_heads · n_features)."""
        rows, kappa, values, offsets = self._mean_attention(X)
        pooled = weighted_pool(kappa, values, offsets)
        return pooled.flatten(1).cpu().numpy().astype(rows.dtype, copy=False)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names ``head0_x0, head0_x1, …`` of the columns of `transform`."""
        check_is_fitted(self)
        known = input_features is None and self._width != self.n_features_in_
        names = self._encoded_names() if known else _check_feature_names_in(self, input_features)
        return np.array([f"head{r}_{x}" for r in range(self.n_heads_) for x in names], object)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _refuse_overflow(found: Tensor, rows: RaggedRows) -> None:
    """Refuse rows that are too large if the result is not finite."""
    if not bool(torch.isfinite(found.sum())) and not bool(torch.isfinite(found).all()):
        coerce.refuse_overflow(rows)


def _per_sample(packed: torch.Tensor, rows: RaggedRows) -> list[np.ndarray]:
    return np.split(packed.cpu().numpy(), rows.offsets[1:-1])
