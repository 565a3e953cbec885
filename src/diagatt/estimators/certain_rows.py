"""Certainty about single rows: posteriors, sets that hold the active row, and discoveries."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from diagatt import coerce, parameters
from diagatt.attention.coupling import best_rows
from diagatt.attention.none_row import given_some, none_probability
from diagatt.attention.row_terms import row_terms
from diagatt.certainty import Certainty, Discoveries, NotAPosteriorWarning
from diagatt.certainty.discoveries import discovered, is_confirmed, labelled_cut, mean_cut
from diagatt.certainty.recalibration import WORST_TEMPERATURE
from diagatt.certainty.rows import labelled_threshold, sets_above, sets_of_mass, threshold_at
from diagatt.estimators.calibrated import Calibrated
from diagatt.estimators.containers import by_shard
from diagatt.ragged import RaggedRows
from diagatt.segments import map_blocks, segment_sum
from diagatt.user_warnings import warn


class CertainRows(Calibrated):
    """Certainty of single rows, recalibrated by predictions out of fold."""

    @torch.no_grad()
    def _calibrated_weights(self, X: Any) -> tuple[RaggedRows, Tensor, Tensor]:
        """Return samples, weights of rows after recalibration (N, R), and offsets."""
        change = self._recalibration
        if change.is_none:
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
            return change.weights(terms, offsets, log_prior).to(values.dtype)

        prior = self._log_prior(rows)
        return rows, map_blocks(weights, values, offsets, none, log_prior=prior), offsets

    @by_shard
    def certainty(self, X: Any, level: float = 0.9) -> Certainty:
        """Return rows of interest with their posterior and entropy, and sets that hold the row.

        If held-out responses contradict attention weights, these are recalibrated
        (`diagatt.certainty.recalibration`). If they were too sure of themselves (T̂ > 1.5, see
        `summary`, or flatter ones explain responses better), a warning says so.

        Parameters
        ----------
        X : samples
        level : float
            Probability with which `row_sets` hold the active row. It is guaranteed after
            `calibrate_rows`; otherwise it holds as far as recalibrated weights are posteriors.
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
        if self._is_overconfident:
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
        warn(
            "attention is too sure of itself (out-of-fold temperature "
            f"{self.row_temperature_:.1f}): weights were recalibrated ({self._recalibration}), and "
            "are not posteriors; label some samples and call calibrate_rows for sets that are sure "
            "to hold.",
            NotAPosteriorWarning,
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
        """Learn error rates from a few samples whose active rows are known; 50 are enough.

        The samples must not be those of the fit, whose rows are located better than others.
        Afterwards, the error rates of the row sets of `certainty` and of the rows of `discoveries`
        hold in finite samples.

        Parameters
        ----------
        X : samples
        row_labels : int array of shape (n,) or (n, n_heads)
            Index of the active row of each sample, counted from 0.
        """
        check_is_fitted(self)
        rows, kappa, offsets = self._calibrated_weights(X)
        labels = check_row_labels(row_labels, rows, self.n_heads_)
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
        """Return rows that can be named as active, of which at most a share `fdr` is wrong.

        Rows are named if their weight reaches a threshold. After `calibrate_rows`, it is the least
        λ with (1 + wrong)/count ≤ fdr among the labelled samples. Without labels, the mean of
        1 − weight over named rows is at most fdr, with weights as in `certainty`. If these were
        recalibrated much, `is_trusted` is False and a warning is given. Nothing is named if there
        were no held-out samples, or if their responses contradict the attention (T̂ > 1.5): large
        weights are then often those of wrong rows, which no recalibration repairs. Nor is anything
        named if responses of held-out samples whose rows would be named do not reject at 5 % that
        half of these rows are wrong (one head, without ``none=True``).

        Parameters
        ----------
        X : samples
        fdr : float
            Largest allowed share of wrong rows.
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
        reason = self._reason_to_name_none(cut, fdr)
        if reason:
            warn(
                f"no rows are named, because {reason}: label some samples and call calibrate_rows.",
                NotAPosteriorWarning,
            )
            return Discoveries([], fdr, False, f"none, because {reason}")
        note = f"by weights alone (out-of-fold temperature {self.row_temperature_:.2f})"
        if self._is_overconfident:
            warn(
                f"the false discovery rate rests on weights that were recalibrated much ({note}): "
                "label some samples and call calibrate_rows.",
                NotAPosteriorWarning,
            )
        named = discovered(found.rows, found.posterior, cut)
        return Discoveries(named, fdr, not self._is_overconfident, note)

    def _reason_to_name_none(self, cut: float, fdr: float) -> str:
        """Return why weights without labels name no rows; "" if they do."""
        temperature = self.row_temperature_
        if temperature is None:
            return "weights were never compared with held-out responses (see calibrate)"
        if temperature > WORST_TEMPERATURE:
            return f"held-out responses contradict the weights (temperature {temperature:.2f})"
        held_out = self.held_out_rows_
        if held_out is not None and np.isfinite(cut) and not is_confirmed(held_out, cut, fdr):
            return "held-out responses do not confirm that most of them would be right"
        return ""


def check_row_labels(row_labels: Any, rows: RaggedRows, n_heads: int) -> np.ndarray:
    """Return labels as whole numbers, (n, R); refuse rows that samples do not have."""
    coerce.refuse_other_order(rows, row_labels=row_labels)
    labels = coerce.whole_labels(row_labels)
    if labels.ndim == 1 and n_heads == 1:
        labels = labels[:, None]
    if labels.shape != (len(rows), n_heads):
        raise ValueError(
            f"row_labels must have the shape ({len(rows)}, {n_heads}): one row per sample and "
            f"head, got {labels.shape}."
        )
    wrong = np.argwhere((labels < 0) | (labels >= np.diff(rows.offsets)[:, None]))
    if len(wrong):
        i, r = wrong[0]
        raise ValueError(
            f"row_labels[{i}] = {labels[i, r]}, but sample {i} has {np.diff(rows.offsets)[i]} "
            "rows, which are counted from 0."
        )
    return labels
