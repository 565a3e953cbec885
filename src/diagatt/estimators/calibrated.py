"""The existence test and calibration, by predictions of samples that were held out."""

from __future__ import annotations

import warnings
from dataclasses import asdict, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from diagatt import attributes, coerce, parameters
from diagatt.attention.none_row import given_some
from diagatt.attention.row_terms import row_terms
from diagatt.certainty.conformal import Conformity, conformity_of
from diagatt.certainty.recalibration import (
    WORST_TEMPERATURE,
    Recalibration,
    recalibration,
    row_evidence,
    row_temperature,
)
from diagatt.certainty.rows import LEVELS, thresholds
from diagatt.covariates import parted
from diagatt.encoders.trained import is_trained
from diagatt.estimators.diagonal_reading import DiagonalReading
from diagatt.names import order
from diagatt.ragged import RaggedRows
from diagatt.scores import get_score_form
from diagatt.solvers import Model, Solver, get_solver
from diagatt.solvers.crossfit import cross_fit, head_test
from diagatt.solvers.existence import Existence
from diagatt.solvers.folds import OutOfFold
from diagatt.solvers.problem import Samples
from diagatt.solvers.shape import with_started_family

_NOT_CALIBRATED = (
    "this fit made no predictions out of fold: call calibrate(X, y) with the samples of the fit"
)
_NO_FOLDS = f"{_NOT_CALIBRATED}, which costs five fits, or fit with solver='auto', which has them."


class Calibrated(DiagonalReading):
    """Certainty that is calibrated on held-out samples."""

    fitted_rules: ClassVar[attributes.Rules] = {
        "existence_": parameters.optional(
            attributes.numbers("statistic", "p_value", "n_samples", "n_folds")
        ),
        "row_temperature_": parameters.optional(parameters.positive()),
        "row_recalibration_": parameters.optional(attributes.floats()),
        "row_thresholds_": parameters.optional(attributes.floats()),
        "held_out_rows_": parameters.optional(attributes.floats()),
        "conformal_scores_": parameters.optional(attributes.floats()),
        "conformal_classes_": parameters.optional(attributes.whole()),
        "conformal_dispersion_": parameters.optional(attributes.number()),
        "conformal_ambiguity_": parameters.optional(attributes.floats()),
        "conformal_dispersions_": parameters.optional(attributes.floats()),
        "log_score_": parameters.optional(attributes.number()),
        "labelled_rows_": parameters.optional(attributes.floats()),
    }
    existence_: dict[str, Any] | None = None
    row_temperature_: float | None = None
    row_recalibration_: np.ndarray | None = None  # (3,): temperature, doubt, loss
    row_thresholds_: np.ndarray | None = None  # (99, R)
    held_out_rows_: np.ndarray | None = None  # (m, 3): `row_evidence`
    conformal_scores_: np.ndarray | None = None  # (n,), of several outcomes (n, q)
    conformal_classes_: np.ndarray | None = None  # (n,), of several outcomes (n, q)
    conformal_dispersion_: float | None = None
    conformal_ambiguity_: np.ndarray | None = None  # (n,)
    conformal_dispersions_: np.ndarray | None = None  # (q,), of several outcomes
    log_score_: float | None = None
    labelled_rows_: np.ndarray | None = None  # (m, R, 3): true row's weight, best weight, a hit

    def _fitted_shapes(self) -> dict[str, tuple[int, ...]]:
        kept: tuple[Any, ...] = (
            self.labelled_rows_,
            self.conformal_scores_,
            self.held_out_rows_,
        )
        labelled, scores, held_out = (np.shape(array) for array in kept)
        several = getattr(self, "n_outputs_", 1)
        each = scores[:1] or (0,) if several == 1 else (*(scores[:1] or (0,)), several)
        return {
            **super()._fitted_shapes(),
            "row_recalibration_": (3,),
            "row_thresholds_": (len(LEVELS), self.n_heads_),
            "held_out_rows_": (*(held_out[:1] or (0,)), 3),
            "labelled_rows_": (*labelled[:1], self.n_heads_, 3),
            "conformal_scores_": each,
            "conformal_classes_": each,
            "conformal_dispersions_": (several,),
            "conformal_ambiguity_": scores[:1] or (0,),
        }

    # ------------------------------------------------------------------ out of fold

    def existence_test(
        self,
        X: Any,
        y: Any = None,
        covariates: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        n_heads: int | None = None,
        offset: Any = None,
        exposure: Any = None,
    ) -> Existence:
        r"""Test whether there is any row of interest; under the null hypothesis mean rows suffice.

        The solver is fitted without each of five folds, so the model need not be fitted before.
        The part of its predictions for held-out samples that mean rows do not explain is compared
        with the residuals of a regression on mean rows (`diagatt.solvers.existence`).
        Half of the level is for a test by outlying rows, which are found without responses
        (`diagatt.solvers.outlying_rows`). If there are more than 2000 samples, 2000 are drawn at
        random.

        Parameters
        ----------
        X, y, covariates, sample_weight, groups, offset, exposure
            As in `fit`. Samples of one group count as one observation.
        n_heads : int, optional
            Test whether `n_heads` heads explain more than ``n_heads - 1`` do, instead of whether
            there is any row of interest. ``selection="test"`` chooses the count of heads this way.

        Returns
        -------
        Existence
            `statistic` (standard normal if there is no row of interest), `p_value`, and
            `is_found`, which is True if the p-value is below 5 %.

        Examples
        --------
        >>> from diagatt import DiagAttRegressor, simulate
        >>> data = simulate.regression(200, p=6, d=3, mu=(3,), sigma2=(4,), seed=0)
        >>> test = DiagAttRegressor(solver="likelihood", random_state=0).existence_test(
        ...     data.X, data.y
        ... )
        >>> test.is_found
        True
        """
        given = (X, y, covariates, sample_weight, groups, offset, exposure)
        if n_heads is None:
            return self._cross_fit(*given).tested()
        parameters.check_count(n_heads, "n_heads", 1)
        return head_test(*self._problem_to_hold_out(*given, n_heads=n_heads))

    def calibrate(
        self,
        X: Any,
        y: Any = None,
        covariates: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        offset: Any = None,
        exposure: Any = None,
    ) -> Self:
        """Calibrate intervals, sets and row weights by fits that leave out one of five folds each.

        The default solver does this in `fit`; other solvers need five more fits. Afterwards,
        `predict_interval` or `predict_set`, `certainty` and `summary` are based on held-out
        samples.

        Parameters
        ----------
        X, y, covariates, sample_weight, groups, offset, exposure
            The samples of the fit.
        """
        check_is_fitted(self)
        given = (X, y, covariates, sample_weight, groups, offset, exposure)
        self._keep_calibration(self._cross_fit(*given))
        return self

    @torch.random.fork_rng(devices=[])
    def _cross_fit(self, *given: Any) -> OutOfFold:
        return cross_fit(*self._problem_to_hold_out(*given))

    def _problem_to_hold_out(
        self,
        X: Any,
        y: Any,
        covariates: Any,
        sample_weight: Any,
        groups: Any,
        offset: Any = None,
        exposure: Any = None,
        n_heads: int | None = None,
    ) -> tuple[Solver, Any, Model, int]:
        """Return solver, problem, model and seed as a fit to these samples would have them."""
        fresh: Any = clone(self)
        if n_heads is not None:
            fresh.n_heads = n_heads
        parameters.check(fresh)
        if is_trained(fresh.encoder):
            raise ValueError(
                "the encoder is trained with the model, so every fold would need its own: fit to "
                "some samples and test on others, or encode rows before the fit."
            )
        known = {"groups": groups, "offset": offset, "exposure": exposure}
        problem = with_started_family(fresh._problem(X, y, sample_weight, covariates, **known))
        self._refuse_others(fresh, problem)
        if n_heads is None:
            tried = parameters.values_to_try(fresh.n_heads, (1,))
            n_heads = getattr(self, "n_heads_", int(tried[0]))
        form = get_score_form(fresh.score_form)
        model = Model(n_heads, form, fresh.coupling, fresh.ridge)
        seed = check_random_state(fresh.random_state).randint(2**31 - 1)
        solver = get_solver(fresh.solver)
        reason = solver.refuse(problem, model)
        if reason is not None and not problem.has_one_row_samples_only:
            raise ValueError(reason)
        return solver, problem, model, seed

    def _refuse_others(self, fresh: Any, problem: Any) -> None:
        """Refuse samples whose columns or classes (those of `fresh`) differ from the fit's."""
        if not hasattr(self, "n_features_in_"):  # nothing was fitted
            return
        ours: Any = getattr(self, "classes_", None)
        if ours is not None and list(ours) != list(fresh.classes_):
            raise ValueError(f"y must hold the classes of the fit, {list(ours)}.")
        counts = {
            "X has {} features": (fresh.n_features_in_, self.n_features_in_),
            "covariates have {} columns": (problem.n_covariates, self._n_covariates()),
            "y has {} columns": (fresh._fitted_family()[1], self._fitted_family()[1]),
        }
        for words, (found, wanted) in counts.items():
            if found != wanted:
                raise ValueError(f"{words.format(found)}, but the fit had {wanted}: pass the same.")
        for name, what in (("feature_names_in_", "X"), ("covariate_names_in_", "covariates")):
            pair = [getattr(one, name, None) for one in (fresh, self)]
            if pair[0] is not None and pair[1] is not None:
                order(tuple(pair[0]), pair[1], what, f"{what}[list(model.{name})]")

    def _keep_calibration(self, unseen: OutOfFold | None) -> None:
        """Set the attributes that come from predictions out of fold; to None without any."""
        for name in Calibrated.fitted_rules:
            setattr(self, name, None)
        if unseen is None:
            return
        if unseen.existence is not None:
            self.existence_ = asdict(unseen.existence)
            self.has_row_of_interest_ = unseen.existence.is_found
            self.row_temperature_ = row_temperature(unseen)
            self.row_recalibration_ = np.array(recalibration(unseen, self.row_temperature_))
            if self.n_heads_ == 1 and self.none_score_ is None:
                self.held_out_rows_ = row_evidence(unseen, self._recalibration)
        found = conformity_of(unseen)
        self.conformal_scores_, self.conformal_classes_ = found.scores, found.classes
        self.conformal_dispersion_, self.log_score_ = found.dispersion, found.log_score
        self.conformal_ambiguity_, self.conformal_dispersions_ = found.ambiguity, found.dispersions
        kappa, offsets = self._held_out_weights(unseen)
        columns = [thresholds(column, offsets) for column in kappa.T]
        self.row_thresholds_ = np.stack(columns, axis=1)

    def _held_out_weights(self, unseen: OutOfFold) -> tuple[np.ndarray, np.ndarray]:
        """Return weights of all held-out rows as `certainty` gives them, (N, R), with offsets."""
        parts, lengths = [], []
        for _, part, predictor in unseen.parts():
            terms = row_terms(predictor, *part.inputs)
            kappa = self._recalibration.weights(terms, part.offsets, part.log_prior)
            parts.append(given_some(kappa, part.offsets) if terms.has_none else kappa)
            lengths.append(part.offsets.diff())
        offsets = np.concatenate([[0], torch.cat(lengths).cumsum(0).cpu().numpy()])
        return torch.cat(parts).cpu().numpy(), offsets

    @property
    def _recalibration(self) -> Recalibration:
        """How weights are changed so that held-out responses agree with them."""
        if self.row_recalibration_ is not None:
            return Recalibration(*map(float, self.row_recalibration_))
        if self.row_temperature_ is not None and self.row_temperature_ > WORST_TEMPERATURE:
            return Recalibration(float(self.row_temperature_))  # of a file that is older
        return Recalibration()

    @property
    def _is_overconfident(self) -> bool:
        """Whether weights are too concentrated to be posteriors."""
        if self.row_temperature_ is None:
            return False
        return self._recalibration.shows_overconfidence(self.row_temperature_)

    def _verdict_on_weights(self) -> str:
        """Return what T̂ says about weights as posteriors."""
        if self._is_overconfident:
            return "weights are not posteriors"
        if self.row_temperature_ is not None and self.row_temperature_ < 1 / WORST_TEMPERATURE:
            return "weights are flatter than posteriors"
        return "weights may be read as posteriors"

    def _conformity(self) -> Conformity:
        check_is_fitted(self)
        if self._fitted_family()[0].response_width > 1:
            raise ValueError(
                "intervals and sets are for responses of one number or class, and those of the "
                f"{self.family!r} family have several."
            )
        if not self._fitted_family()[0].predicts_mixtures:
            raise ValueError(
                f"the {self.family!r} family predicts a quantile, around which there are no "
                "intervals: fit two of them for the ends of one."
            )
        if self.conformal_scores_ is None or self.conformal_dispersion_ is None:
            raise ValueError(_NOT_CALIBRATED if self.solver_ == "glm" else _NO_FOLDS)
        kept = (self.conformal_scores_, self.conformal_classes_, self.conformal_dispersion_)
        return Conformity(*kept, ambiguity=self.conformal_ambiguity_)

    def _part(
        self, X: Any, covariates: Any = None, offset: Any = None, exposure: Any = None
    ) -> tuple[Any, Samples]:
        """Return the module and new samples in its form, without responses."""
        X, covariates = parted(X, covariates)
        rows, module, values, offsets = self._packed(X)
        coerce.refuse_other_order(rows, covariates=covariates, offset=offset, exposure=exposure)
        Z = torch.as_tensor(self._covariates(covariates, len(rows))).to(values)
        none, known = values.new_zeros(len(rows)), self._offset(offset, exposure, len(rows))
        part = Samples(self._fitted_family()[0], values, offsets, none, none + 1, Z)
        if known is not None:
            part = replace(part, offset=torch.as_tensor(known).to(values))
        return module, replace(part, log_prior=self._log_prior(rows))

    def _out_of_fold_facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = {}
        if self.existence_ is not None:
            facts["row of interest"] = str(Existence(**self.existence_))
        elif self.has_row_of_interest_ is False:  # attention is even
            facts["row of interest"] = "none found"
        elif not self.one_row_samples_:
            facts["row of interest"] = "not tested; existence_test tests it"
        if self.row_temperature_ is not None:
            facts["temperature of row weights"] = f"{self.row_temperature_:.2f}"
            if self.has_row_of_interest_:
                facts["temperature of row weights"] += f" ({self._verdict_on_weights()})"
            if not self._recalibration.is_none:
                facts["recalibrated row weights"] = str(self._recalibration)
        if self.log_score_ is not None:
            facts["log score out of fold"] = f"{self.log_score_:.4f} per sample"
        return facts

    def stability(
        self,
        X: Any,
        y: Any,
        covariates: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        n_bootstraps: int = 20,
    ) -> np.ndarray:
        """Return the share of bootstrap fits that locate the same row, (n, n_heads).

        The model is fitted anew to samples that are drawn with replacement; if there are groups,
        whole groups are drawn.

        Parameters
        ----------
        X, y, covariates, sample_weight, groups
            The samples of the fit, in memory.
        n_bootstraps : int
            Count of bootstrap fits.
        """
        check_is_fitted(self)
        parameters.check_count(n_bootstraps, "n_bootstraps", 1)
        rows = RaggedRows.coerce(X)
        located, n = self.locate(rows), len(rows)
        codes = np.arange(n) if groups is None else coerce.groups(groups, n)
        members = [np.flatnonzero(codes == code) for code in np.unique(codes)]
        weights = coerce.weights(sample_weight, n)
        generator = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        same = np.zeros(located.shape)
        for _ in range(n_bootstraps):
            drawn = generator.integers(len(members), size=len(members))
            counts = np.bincount(np.concatenate([members[k] for k in drawn]), minlength=n)
            again: Any = clone(self).set_params(n_heads=self.n_heads_)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                # Weights, not copies: copies of a sample would share a fold anyway.
                again.fit(rows, y, weights * counts, covariates, groups=groups)
            same += again.locate(rows) == located
        return same / n_bootstraps
