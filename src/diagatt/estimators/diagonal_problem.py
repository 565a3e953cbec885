"""The problem of a fit: its samples in memory or on disk, their encoder, and an earlier fit."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from diagatt import parameters
from diagatt.encoders import RowEncoder
from diagatt.encoders.trained import MLP, is_trained, row_encoder_of, settings_of
from diagatt.estimators.certain_rows import CertainRows
from diagatt.estimators.containers import check_given, counted_samples, is_small
from diagatt.estimators.fitted_diagonal import check_lengths
from diagatt.ragged import RaggedRows
from diagatt.scores import get_score_form
from diagatt.solvers import get_solver
from diagatt.solvers.base import Fitted, Model, Solver
from diagatt.solvers.gradient.adam import train_encoder
from diagatt.solvers.gradient.train import start_at_pooled
from diagatt.solvers.problem import Problem, Samples
from diagatt.solvers.stored import StoredProblem
from diagatt.stores import RowStore

# Samples of a store that an encoder is fitted to, if they fit into its memory.
ENCODED_SAMPLES = 2000


class DiagonalProblem(CertainRows):
    """What a fit needs before its solver: checked samples, encoded rows, and a start."""

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
        self, X: Any, y: Any, sample_weight: Any, covariates: Any, **known: Any
    ) -> Problem:
        if not isinstance(X, RowStore):
            self._check_row_labels(known.get("row_labels"))
            problem = super()._problem(X, y, sample_weight, covariates, **known)
            if problem.missing is None or self._integrates(problem):
                return problem
            return replace(problem, missing=None)  # imputed numbers stand in their places
        if self.missing != "refuse":
            raise ValueError(
                "missing='marginalize' is for samples in memory: a RowStore holds none with "
                "missing entries; leave it out."
            )
        check_given(X, y=y, sample_weight=sample_weight, covariates=covariates, **known)
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

    def _integrates(self, problem: Problem) -> bool:
        """Return whether the solver integrates missing entries of rows out."""
        if not self._marginalizes or self.encoder is not None or self.n_heads != 1:
            return False
        model = Model(1, get_score_form(self.score_form), self.coupling, self.ridge)
        return get_solver(self.solver).integrates(problem, model)

    def _with_encoder(self, problem: StoredProblem) -> StoredProblem:
        """Fit the encoder to some samples of a store; all are encoded when they are read."""
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

    def _with_trained_encoder(
        self, problem: Problem, solver: Solver, model: Model, seed: int
    ) -> tuple[Problem, Fitted | None]:
        """Return the problem behind an encoder that is trained with the model, and the model."""
        if not is_trained(self.encoder):
            return problem, None
        if self.warm_start and self.encoder_ is not None:
            return encode_problem(problem, self.encoder_), None
        if problem.family.couples_samples:
            raise ValueError(
                "an encoder is trained with the model in batches, and the partial likelihood of "
                "'cox' is one of all samples together: choose another family or encoder."
            )
        if self.n_heads != int(np.max(parameters.values_to_try(self.n_heads, (0,)))):
            raise ValueError("an encoder is trained for one count of heads: set n_heads to it.")
        some = problem.sample(problem.most_in_memory, np.random.default_rng(seed))
        given = (some, replace(model, n_heads=self.n_heads), seed, self.verbose)
        self.encoder_, begun = trained_encoder(self.encoder, solver, *given)
        self.n_encoded_ = begun.module.n_features
        return encode_problem(problem, self.encoder_), begun

    def _warm_start(self, problem: Problem) -> Fitted | None:
        """Return the earlier fit from which this one starts, if `warm_start` is set."""
        if not self.warm_start or not hasattr(self, "query_"):
            return None
        shape = (self.n_heads_ * self.n_restarts_, problem.n_outputs, problem.n_features)
        chosen = isinstance(self.n_heads, str | list | tuple)
        if (
            not (chosen or self.n_heads == self.n_heads_)
            or np.size(self.value_) != np.prod(shape)
            or self.score_form_ != self.score_form
            or self.n_covariates_ != problem.n_covariates
        ):
            raise ValueError(
                "warm_start continues a fit of the same n_heads, score_form, features, classes and "
                "covariates: set warm_start=False or the old values."
            )
        state = getattr(self, "_state", None)  # a model that was read from a file has none
        module, units = self._reported_module(), getattr(problem.family, "units", None)
        if units is not None:  # of several outcomes
            with torch.no_grad():
                for effect in module.effects():
                    effect.div_(units.to(effect))
            state = None
        return Fitted(module, get_solver(self.solver), [], state=state)

    @abstractmethod
    def _stored_encoder(self, store: RowStore) -> Callable[[np.ndarray], np.ndarray]:
        """Return the function that turns stored responses into numbers."""


def trained_encoder(
    encoder: Any, solver: Solver, samples: Samples, model: Model, seed: int, verbose: bool
) -> tuple[RowEncoder, Fitted]:
    """Train an encoder with the attention of a solver; return both.

    Parameters
    ----------
    encoder : MLP or torch module
    solver : Solver
        One that has `joint`.
    samples : Samples
    model : Model
        With one count of heads.
    seed : int
    verbose : bool
    """
    shift, scale = samples.values.mean(dim=0), samples.values.std(dim=0, correction=0)
    scale = torch.where(scale > 0, scale, 1.0)
    standard = replace(samples, values=(samples.values - shift) / scale, missing=None)
    torch.manual_seed(seed)  # the caller keeps the user's generator as it is
    maps = encoder.build(samples.n_features) if isinstance(encoder, MLP) else deepcopy(encoder)
    maps = maps.to(samples.device, samples.dtype)
    with torch.no_grad():
        encoded = replace(standard, values=maps(standard.values))
    if encoded.values.ndim != 2 or len(encoded.values) != samples.n_rows:
        raise ValueError(
            f"the encoder must map rows (N, d) to rows (N, d'), and maps {samples.n_rows} rows to "
            f"the shape {tuple(encoded.values.shape)}."
        )
    joint = solver.joint(encoded, model, seed)
    start_at_pooled(joint.attention, encoded, model.ridge, model.n_heads)
    names = ("max_epochs", "learning_rate", "ridge", "validation_fraction")
    settings = {name: getattr(settings_of(encoder), name) for name in names}
    train_encoder(maps, joint, standard, seed=seed, verbose=verbose, **settings)
    return row_encoder_of(maps, shift, scale), Fitted(joint.attention, solver, [])


def encode_problem(problem: Problem, encoder: RowEncoder) -> Problem:
    """Return the problem with encoded rows, part by part."""

    def change(part: Samples) -> Samples:
        values = torch.from_numpy(encoder(np.asarray(part.values.cpu())))
        return replace(part, values=values.to(part.values), missing=None)

    return problem.changed(change)
