"""What the samples of a fit may be, in memory or on disk, and the problem that they make."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from diagatt import parameters
from diagatt.encoders.trained import is_trained
from diagatt.estimators.certain_rows import CertainRows
from diagatt.estimators.fitted_diagonal import check_lengths
from diagatt.estimators.stored import check_given, counted_samples, is_small
from diagatt.estimators.trained_encoder import encode_problem
from diagatt.ragged import RaggedRows
from diagatt.scores import get_score_form
from diagatt.solvers import Model, get_solver
from diagatt.solvers.problem import Problem, Samples
from diagatt.solvers.stored import StoredProblem
from diagatt.stores import RowStore

# Samples of a store that an encoder is fitted to, if they fit into its memory.
ENCODED_SAMPLES = 2000


class DiagonalProblem(CertainRows):
    """Reads samples, refuses what the parameters do not allow, and encodes rows of a store."""

    def _check_rows(self, rows: RaggedRows | RowStore) -> None:
        """Refuse samples with fewer rows than heads that need distinct rows."""
        most = int(np.max(parameters.values_to_try(self.n_heads, (1,))))
        check_lengths(rows, self.coupling, most, "lower n_heads, drop short samples, or set ")
        if get_score_form(self.score_form).has_context and rows.has_row_weights:
            raise ValueError(
                "score_form='contextual' compares rows with the plain mean row of their sample and "
                "takes no weights of rows: set score_form='affine'."
            )

    def _problem(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        covariates: Any,
        groups: Any = None,
        offset: Any = None,
        exposure: Any = None,
        row_labels: Any = None,
    ) -> Problem:
        known = {"groups": groups, "offset": offset, "exposure": exposure}
        if not isinstance(X, RowStore):
            self._check_row_labels(row_labels)
            samples = (X, y, sample_weight, covariates)
            problem = super()._problem(*samples, **known, row_labels=row_labels)
            return self._with_missing(problem)
        if self.missing != "refuse":
            raise ValueError(
                "missing='marginalize' is for samples in memory: a RowStore holds none with "
                "missing entries; leave it out."
            )
        given = {"sample_weight": sample_weight, "covariates": covariates, "row_labels": row_labels}
        check_given(X, y=y, **given, **known)
        encode = self._stored_encoder(X)
        if is_small(X):
            whole = X.take(np.arange(len(X)))
            return super()._problem(whole.X, whole.named_y, whole.weights, whole.named_covariates)
        self._note_features(X)
        self._note_names("covariate_names_in_", X.covariate_names)
        self._check_rows(X)
        family, n_outputs = self._fitted_family()
        kind = torch.float32 if X.dtype == np.float32 else torch.float64
        device = torch.device(self.device)
        problem = StoredProblem(X, family, encode, n_outputs, kind, device)
        if self.encoder is not None and not is_trained(self.encoder):
            problem = self._with_encoder(problem)
        return counted_samples(problem)

    def _with_missing(self, problem: Samples) -> Samples:
        """Return the problem with missing entries to be integrated out, if the solver does that."""
        if problem.missing is None or self._integrates(problem):
            return problem
        return replace(problem, missing=None)

    def _integrates(self, problem: Problem) -> bool:
        """Return whether the solver integrates missing entries of rows out."""
        if not self._marginalizes or self.encoder is not None or self.n_heads != 1:
            return False
        model = Model(1, get_score_form(self.score_form), self.coupling, self.ridge)
        return get_solver(self.solver).integrates(problem, model)

    def _with_encoder(self, problem: StoredProblem) -> StoredProblem:
        """Fit the encoder to some samples of a store, and encode all as they are read."""
        chosen = problem.sample(ENCODED_SAMPLES, np.random.default_rng(0))
        self._fit_encoder(chosen.values.cpu().numpy())
        encoder: Any = self.encoder_
        return encode_problem(problem, encoder)  # type: ignore[return-value]

    def _check_row_labels(self, row_labels: Any) -> None:
        """Refuse labels where they cannot be used."""
        if row_labels is None:
            return
        if not get_solver(self.solver).takes_row_labels:
            raise ValueError(
                "row_labels are for solver='likelihood' and solver='mixture': set one of them."
            )
        if self.n_heads != 1:
            raise ValueError("row_labels are for one head: set n_heads=1.")

    @abstractmethod
    def _stored_encoder(self, store: RowStore) -> Callable[[np.ndarray], np.ndarray]:
        """Return the function that turns stored responses into numbers."""
