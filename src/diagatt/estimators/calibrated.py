"""What fits that have not seen a sample say: is there a row, how sure is it, what may be named."""

from __future__ import annotations

import warnings
from dataclasses import asdict, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from diagatt import attributes, coerce, parameters
from diagatt.attention.coupling import best_rows
from diagatt.attention.nonerow import given_some, none_probability
from diagatt.attention.rowterms import row_terms
from diagatt.certainty import Certainty, Discoveries, NotAPosteriorWarning
from diagatt.certainty.conformal import Conformity, conformity_of
from diagatt.certainty.discoveries import discovered, labelled_cut, mean_cut
from diagatt.certainty.rowsets import (
    LEVELS,
    labelled_threshold,
    sets_above,
    sets_of_mass,
    threshold_at,
    thresholds,
)
from diagatt.certainty.temperature import WORST_TEMPERATURE, row_temperature
from diagatt.encoders.trained import is_trained
from diagatt.estimators.diagonal_reading import DiagonalReading
from diagatt.estimators.stored import by_shard
from diagatt.ragged import RaggedRows
from diagatt.scores import get_score_form
from diagatt.segments import map_blocks, segment_sum
from diagatt.solvers import Model, Solver, get_solver
from diagatt.solvers.crossfit import cross_fit, head_test
from diagatt.solvers.existence import Existence
from diagatt.solvers.out_of_fold import OutOfFold

_NO_FOLDS = (
    "this fit made no predictions out of fold: call calibrate(X, y) with the samples of the fit, "
    "which costs five fits, or fit with solver='auto', which has them."
)


class Calibrated(DiagonalReading):
    """Certainty that was checked on samples which the fits had not seen."""

    fitted_rules: ClassVar[attributes.Rules] = {
        "existence_": parameters.optional(
            attributes.numbers("statistic", "p_value", "n_samples", "n_folds")
        ),
        "row_temperature_": parameters.optional(parameters.positive()),
        "row_thresholds_": parameters.optional(attributes.floats()),
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
    row_thresholds_: np.ndarray | None = None  # (99, R)
    conformal_scores_: np.ndarray | None = None  # (n,), of several outcomes (n, q)
    conformal_classes_: np.ndarray | None = None  # (n,), of several outcomes (n, q)
    conformal_dispersion_: float | None = None
    conformal_ambiguity_: np.ndarray | None = None  # (n,)
    conformal_dispersions_: np.ndarray | None = None  # (q,), of several outcomes
    log_score_: float | None = None
    labelled_rows_: np.ndarray | None = None  # (m, R, 3): true row's weight, best weight, a hit

    def _fitted_shapes(self) -> dict[str, tuple[int, ...]]:
        kept: tuple[Any, ...] = (self.labelled_rows_, self.conformal_scores_)
        labelled, scores = (np.shape(array) for array in kept)
        several = getattr(self, "n_outputs_", 1)
        each = scores[:1] or (0,) if several == 1 else (*(scores[:1] or (0,)), several)
        return {
            **super()._fitted_shapes(),
            "row_thresholds_": (len(LEVELS), self.n_heads_),
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
        r"""Test whether there is any row of interest, against mean rows that say all.

        The solver fits without each of five folds, from cold starts, whatever the model was fitted
        to. Its predictions are freed of what mean rows explain and compared with what a regression
        on mean rows leaves of the response (`diagatt.solvers.existence`). Of more than 2000
        samples, so many are drawn.

        Parameters
        ----------
        X, y, covariates, sample_weight, groups, offset, exposure
            As in `fit`. Samples of one group count as one.
        n_heads : int, optional
            Test whether so many heads say more than one head fewer, instead of whether there is
            any row at all. ``selection="test"`` chooses the count of heads so.

        Returns
        -------
        Existence
            `statistic` (standard normal if there is no row of interest), `p_value`, and
            `is_found`, which is True below 5 %.

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
            return self._cross_fit(*given).existence
        if not parameters.count(1).accepts(n_heads):
            raise ValueError(f"n_heads must be a whole number of at least 1, got {n_heads!r}.")
        solver, problem, model, seed = self._problem_to_hold_out(*given)
        return head_test(solver, problem, replace(model, n_heads=n_heads), seed)

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
        """Fit without each of five folds to learn how far this fit can be trusted.

        The default does this in `fit`. Other solvers need five more fits; afterwards
        `predict_interval` or `predict_set`, `certainty` and `summary` rest on samples that fits had
        not seen.

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
    ) -> tuple[Solver, Any, Model, int]:
        """Return solver, problem, model and seed as a fit to these samples would have them."""
        fresh: Any = clone(self)
        parameters.check(fresh)
        if is_trained(fresh.encoder):
            raise ValueError(
                "folds would need an encoder each, as this one is trained with the model: fit to "
                "some samples and test on others, or encode rows before the fit."
            )
        known = {"groups": groups, "offset": offset, "exposure": exposure}
        problem = fresh._problem(X, y, sample_weight, covariates, **known)
        ours: Any = getattr(self, "classes_", None)
        if ours is not None and list(ours) != list(fresh.classes_):
            raise ValueError(f"y must hold the classes of the fit, {list(ours)}.")
        if problem.has_one_row_samples_only:
            raise ValueError("samples of one row each have no row to look for.")
        tried = parameters.values_to_try(fresh.n_heads, (1,))
        n_heads = getattr(self, "n_heads_", int(tried[0]))
        form = get_score_form(fresh.score_form)
        model = Model(n_heads, form, fresh.coupling, fresh.ridge)
        seed = check_random_state(fresh.random_state).randint(2**31 - 1)
        solver = get_solver(fresh.solver)
        reason = solver.refuse(problem, model)
        if reason is not None:
            raise ValueError(reason)
        return solver, problem, model, seed

    def _keep_calibration(self, unseen: OutOfFold | None) -> None:
        """Set what predictions out of fold say, or forget what earlier ones said."""
        for name in Calibrated.fitted_rules:
            setattr(self, name, None)
        if unseen is None:
            return
        self.existence_ = asdict(unseen.existence)
        self.has_row_of_interest_ = unseen.existence.is_found
        self.row_temperature_ = row_temperature(unseen)
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
            given = (part.values, part.offsets, part.covariates, part.offset, part.log_prior)
            terms = row_terms(predictor, *given)
            kappa = terms.weights(self._used_temperature)
            parts.append(given_some(kappa, part.offsets) if terms.has_none else kappa)
            lengths.append(part.offsets.diff())
        offsets = np.concatenate([[0], torch.cat(lengths).cumsum(0).cpu().numpy()])
        return torch.cat(parts).cpu().numpy(), offsets

    @property
    def _used_temperature(self) -> float:
        """T̂ where weights are too sure of themselves to be posteriors, else 1."""
        too_sure = self.row_temperature_ is not None and self.row_temperature_ > WORST_TEMPERATURE
        return float(self.row_temperature_) if too_sure else 1.0  # type: ignore[arg-type]

    def _conformity(self) -> Conformity:
        check_is_fitted(self)
        if self._fitted_family()[0].response_width > 1:
            raise ValueError(
                "intervals and sets are for responses of one number or class, and those of the "
                f"{self.family!r} family have several."
            )
        if self.conformal_scores_ is None or self.conformal_dispersion_ is None:
            raise ValueError(_NO_FOLDS)
        kept = (self.conformal_scores_, self.conformal_classes_, self.conformal_dispersion_)
        return Conformity(*kept, ambiguity=self.conformal_ambiguity_)

    def _out_of_fold_facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = {}
        if self.existence_ is not None:
            facts["row of interest (out of fold)"] = str(Existence(**self.existence_))
        elif self.members_:  # of a file that is older than the test
            facts["row of interest (out of fold)"] = (
                "found" if self.has_row_of_interest_ else "none"
            )
        if self.row_temperature_ is not None:
            sure = self.row_temperature_ > WORST_TEMPERATURE
            verdict = "weights are no posteriors" if sure else "weights may be read as posteriors"
            facts["temperature of row weights"] = f"{self.row_temperature_:.2f} ({verdict})"
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
        """Return how often each located row survives a bootstrap of the samples, (n, n_heads).

        The model is fitted anew to samples that are drawn with replacement, whole groups where
        there are groups; what is returned is the share of these fits that locate the same row.

        Parameters
        ----------
        X, y, covariates, sample_weight, groups
            The samples of the fit, in memory.
        n_bootstraps : int
            Count of fits.
        """
        check_is_fitted(self)
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

    # ------------------------------------------------------------------ rows

    @torch.no_grad()
    def _calibrated_weights(self, X: Any) -> tuple[RaggedRows, Tensor, Tensor]:
        """Return samples, weights of rows after recalibration (N, R), and offsets."""
        if self._used_temperature == 1.0:
            rows, kappa, _, offsets = self._mean_attention(X)
            return rows, kappa, offsets
        rows, module, values, offsets = self._packed(X)
        none = values.new_zeros(len(rows), self.n_covariates_)

        def weights(
            values: Tensor,
            offsets: Tensor,
            covariates: Tensor,
            log_prior: Tensor | None = None,
        ) -> Tensor:
            terms = row_terms(module, values, offsets, covariates, None, log_prior)
            return terms.weights(self._used_temperature)

        prior = self._log_prior(rows)
        return rows, map_blocks(weights, values, offsets, none, log_prior=prior), offsets

    @by_shard
    def certainty(self, X: Any, level: float = 0.9) -> Certainty:
        """Return rows of interest with their posterior and entropy, and sets that hold the row.

        Where held-out responses say that attention is too sure of itself (T̂ > 1.5, see `summary`),
        weights are recalibrated, a warning says so, and they should not be called posteriors.

        Parameters
        ----------
        X : samples
        level : float
            Probability with which `row_sets` hold the active row. After `calibrate_rows` it is
            guaranteed; else it is as good as the weights are posteriors.
        """
        check_is_fitted(self)
        parameters.check_share(level, "level")
        rows, kappa, offsets = self._calibrated_weights(X)
        located = best_rows(kappa, offsets, self.coupling_)
        posterior = kappa[offsets[:-1, None] + located, torch.arange(self.n_heads_)]
        entropy = segment_sum(-torch.special.xlogy(kappa, kappa), offsets)
        none = None
        if self.none_score_ is not None:
            none = none_probability(kappa, offsets)
            entropy = entropy - torch.special.xlogy(none, none)
            kappa = given_some(kappa, offsets)
        if self._used_temperature != 1.0:
            self._warn_of_temperature()
        sets = self._row_sets(kappa.double().cpu().numpy(), rows.offsets, level)
        return Certainty(
            located.cpu().numpy(),
            posterior.cpu().numpy(),
            entropy.cpu().numpy(),
            (posterior < 0.5).cpu().numpy(),
            sets,
            self.row_temperature_,
            None if none is None else none.cpu().numpy(),
        )

    def _warn_of_temperature(self) -> None:
        warnings.warn(
            f"attention is too sure of itself (out-of-fold temperature {self.row_temperature_:.1f})"
            ": weights were recalibrated, and are no posteriors; label some samples and call "
            "calibrate_rows for sets that hold.",
            NotAPosteriorWarning,
            stacklevel=4,
        )

    def _row_sets(self, kappa: np.ndarray, offsets: np.ndarray, level: float) -> list:
        by_head = []
        for r in range(self.n_heads_):
            weights = np.split(kappa[:, r], offsets[1:-1])
            if self.labelled_rows_ is not None:
                cut = labelled_threshold(self.labelled_rows_[:, r, 0], level)
                by_head.append(sets_above(weights, cut))
            elif self.row_thresholds_ is not None:
                cut = threshold_at(self.row_thresholds_[:, r], level)
                by_head.append(sets_above(weights, cut))
            else:
                by_head.append(sets_of_mass(weights, level))
        if self.n_heads_ == 1:
            return by_head[0]
        return [list(sets) for sets in zip(*by_head, strict=True)]

    def calibrate_rows(self, X: Any, row_labels: Any) -> Self:
        """Learn from a few samples whose active rows are known; 50 are enough.

        The samples must be new: rows of the fit are located better than others. `certainty` then
        gives row sets, and `discoveries` rows, whose error rates hold in finite samples.

        Parameters
        ----------
        X : samples
        row_labels : int array of shape (n,) or (n, n_heads)
            The active row of each sample, from 0.
        """
        check_is_fitted(self)
        rows, kappa, offsets = self._calibrated_weights(X)
        labels = check_row_labels(row_labels, rows, self.n_heads_, unknown=False)
        places = rows.offsets[:-1, None] + labels  # (n, R)
        weights = kappa.double().cpu().numpy()
        located = best_rows(kappa, offsets, self.coupling_).cpu().numpy()
        heads = np.arange(self.n_heads_)
        best = weights[rows.offsets[:-1, None] + located, heads]
        if self.none_score_ is not None:  # sets are about samples that have a row
            weights = given_some(kappa, offsets).double().cpu().numpy()
        parts = [weights[places, heads], best, (located == labels).astype(float)]
        self.labelled_rows_ = np.stack(parts, axis=2)
        return self

    def discoveries(self, X: Any, fdr: float = 0.1) -> Discoveries:
        """Return rows that may be named so that at most a share `fdr` of them is wrong.

        After `calibrate_rows` the threshold is the least λ with (1 + wrong)/count ≤ fdr among
        labelled samples. Without labels it rests on weights being posteriors; where they are not
        known to be (T̂ above 1.5 or unknown), `is_trusted` is False and a warning says so.

        Parameters
        ----------
        X : samples
        fdr : float
            Allowed share of wrong rows.
        """
        check_is_fitted(self)
        parameters.check_share(fdr, "fdr")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotAPosteriorWarning)
            found = self.certainty(X)
        if self.labelled_rows_ is not None:
            flat = self.labelled_rows_.reshape(-1, 3)
            cut = labelled_cut(flat[:, 1], flat[:, 2] > 0, fdr)
            note = f"by {len(self.labelled_rows_)} labelled samples"
            return Discoveries(discovered(found.rows, found.posterior, cut), fdr, True, note)
        cut = mean_cut(found.posterior.ravel(), fdr)
        temperature = self.row_temperature_
        trusted = temperature is not None and temperature <= WORST_TEMPERATURE
        known = "unknown" if temperature is None else f"{temperature:.2f}"
        note = f"by weights alone (out-of-fold temperature {known})"
        if not trusted:
            warnings.warn(
                f"the false discovery rate rests on weights that are no posteriors ({note}): label "
                "some samples and call calibrate_rows.",
                NotAPosteriorWarning,
                stacklevel=2,
            )
        return Discoveries(discovered(found.rows, found.posterior, cut), fdr, trusted, note)


def check_row_labels(
    row_labels: Any, rows: RaggedRows, n_heads: int, unknown: bool = True
) -> np.ndarray:
    """Return labels as whole numbers, (n, R); refuse rows that samples do not have."""
    labels = np.asarray(row_labels)
    if labels.dtype.kind not in "iu":
        raise ValueError(f"row_labels must be whole numbers, got an array of {labels.dtype}.")
    labels = labels.astype(np.int64)
    if labels.ndim == 1 and n_heads == 1:
        labels = labels[:, None]
    if labels.shape != (len(rows), n_heads):
        raise ValueError(
            f"row_labels must have the shape ({len(rows)}, {n_heads}): one row per sample and "
            f"head, got {labels.shape}."
        )
    least = -1 if unknown else 0
    wrong = np.argwhere((labels < least) | (labels >= np.diff(rows.offsets)[:, None]))
    if len(wrong):
        i, r = wrong[0]
        raise ValueError(
            f"row_labels[{i}] = {labels[i, r]}, but sample {i} has {np.diff(rows.offsets)[i]} "
            "rows, which are counted from 0."
        )
    return labels
