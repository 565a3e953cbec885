"""The base class of competitors, with their tuning protocol (supplement S7.2)."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Mapping
from copy import copy
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from diagatt import attributes, coerce
from diagatt.covariates import parted
from diagatt.estimators.base import RowsEstimator
from diagatt.localization import N_LOCATED, top_rows, top_rows_of_heads
from diagatt.parameters import Rule, at_least, count, either, one_of, several, values_to_try
from diagatt.ragged import RaggedRows
from diagatt.selection import select
from diagatt.solvers.gradient.adam import train
from diagatt.solvers.gradient.train import OPTIMIZERS, Training, in_blocks
from diagatt.solvers.problem import Samples

# Most steps of L-BFGS, and how many of them it remembers: with ten, it stops short of the optimum
# of these modules.
LBFGS_STEPS, LBFGS_MEMORY = 2000, 50


class Competitor(RowsEstimator):
    """An estimator that is trained for given settings, and tunes those that are left open.

    A parameter named in `grids` is open if it is "auto" (then its grid is tried) or a list (then
    its items are). The value in use is the fitted attribute of the same name with an underscore,
    ``alpha_`` for ``alpha``.

    Parameters
    ----------
    n_located : int
        How many rows `locate` names per sample, the paper's R̃.
    selection : "holdout" or int
        How candidates are compared: on one held-out part of n/8 samples, or by this many folds.
    random_state : int, RandomState or None
        Seeds the choice of held-out samples, and whatever is random in the method.
    """

    grids: ClassVar[Mapping[str, tuple]] = {}
    rules: ClassVar[Mapping[str, Rule]] = {
        "n_located": count(1),
        "selection": either(one_of("holdout"), count(2)),
    }
    fitted_rules: ClassVar[attributes.Rules] = {"selection_": attributes.report()}
    n_located: int
    random_state: Any
    selection: str | int = "holdout"
    # Whether only the loss of a fit is wanted, which may then end a little short of the optimum.
    _is_trial: ClassVar[bool] = False

    # ------------------------------------------------------------------ for subclasses

    @abstractmethod
    def _train(self, problem: Samples, seed: int, memo: dict) -> None:
        """Fit with the settings in use; `memo` is shared by candidates on the same samples."""

    @abstractmethod
    def _predictor(self, values: Tensor, offsets: Tensor) -> Tensor:
        """Return linear predictors of packed samples, (n, K)."""

    @abstractmethod
    def _row_scores(self, values: Tensor, offsets: Tensor) -> Tensor:
        """Return the scores by which `locate` ranks rows, (N,), or (N, R) for R heads."""

    def _from_all(self, problem: Samples) -> dict[str, Any]:
        """Return attributes computed from all samples before any are held out for tuning."""
        return {}

    def _held_out_predictor(self, problem: Samples) -> Tensor:
        return self._predictor(problem.values, problem.offsets)

    def _n_outputs(self) -> int:
        """Return K of the fitted model."""
        return self._fitted_family()[1]

    # ------------------------------------------------------------------ fitting

    def _fit_problem(self, problem: Samples) -> None:
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        shared = self._from_all(problem)
        chosen, self.selection_ = self._tune(problem, seed, shared)
        self._use(shared | chosen)
        self._train(problem, seed, {})

    def _tune(self, problem: Samples, seed: int, shared: dict) -> tuple[dict, list[dict]]:
        """Hold samples out, compare the candidates by their loss, and return the best."""
        grid = {
            f"{name}_": values_to_try(getattr(self, name), grid)
            for name, grid in self.grids.items()
        }
        candidates = [dict(zip(grid, v, strict=True)) for v in itertools.product(*grid.values())]
        if len(candidates) == 1:
            return candidates[0], []
        fold: dict[str, Any] = {}  # whose candidates are compared at the moment

        def held_out_loss(values: dict, train: np.ndarray, held_out: np.ndarray) -> float:
            if fold.get("train") is not train:
                places = (torch.from_numpy(s).to(problem.y.device) for s in (train, held_out))
                part, rest = (problem.take(samples) for samples in places)
                fold.update(train=train, part=part, rest=rest, memo={})
            candidate = copy(self)
            candidate._use(shared | values | {"_is_trial": True})
            candidate._train(fold["part"], seed, fold["memo"])
            return float(fold["rest"].mean_loss(candidate._held_out_predictor(fold["rest"])))

        chosen, report = select(candidates, held_out_loss, problem.n_samples, self.selection, seed)
        return chosen, [{**r.pop("candidate"), **r} for r in report]

    def _use(self, fitted: Mapping[str, Any]) -> None:
        for name, value in fitted.items():
            setattr(self, name, value)

    # ------------------------------------------------------------------ predicting

    def _packed(self, X: Any) -> tuple[Tensor, Tensor]:
        """Return rows and offsets of new samples."""
        check_is_fitted(self)
        rows = self._validate_rows(X, reset=False)
        return rows.to_torch(self.device)

    @torch.no_grad()
    def _linear_predictor(self, X: Any, covariates: Any = None) -> np.ndarray:
        X, covariates = parted(X, covariates)
        values, offsets = self._packed(X)
        self._covariates(covariates, len(offsets) - 1)  # refuses any
        z = self._predictor(values, offsets)
        if not bool(torch.isfinite(z).all()):  # the rows are
            coerce.refuse_overflow(RaggedRows(values.cpu(), offsets.cpu()))
        return z.cpu().numpy()

    @torch.no_grad()
    def locate(self, X: Any) -> np.ndarray:
        """Return the rows of interest of each sample, most important first.

        Parameters
        ----------
        X : samples

        Returns
        -------
        array of shape (n_samples, n_located), int
            Indices of rows; a line ends with -1 where a sample has fewer rows.
        """
        values, offsets = self._packed(X)
        scores = self._row_scores(values, offsets).cpu().numpy()
        rank = top_rows if scores.ndim == 1 else top_rows_of_heads
        return rank(scores, offsets.cpu().numpy(), self.n_located)


@dataclass(eq=False, repr=False)
class TrainedCompetitor(Competitor):
    """A competitor that trains a torch module, by mini-batch Adam or full-batch L-BFGS."""

    _: KW_ONLY
    family: str = "auto"
    optimizer: str = "auto"
    learning_rate: float = 3e-3
    batch_size: int = 32
    max_epochs: Any = 20
    tolerance: float = 1e-6
    ridge: Any = 1.0
    score_ridge: float = 1.0
    init_scale: float = 1.0
    n_located: int = N_LOCATED
    selection: str | int = "holdout"
    random_state: Any = None
    device: str = "cpu"
    verbose: bool = False

    rules: ClassVar[Mapping[str, Rule]] = {
        "optimizer": one_of(*OPTIMIZERS),
        "batch_size": count(1),
        "max_epochs": several(count(1)),
        **dict.fromkeys(("learning_rate", "tolerance", "score_ridge", "init_scale"), at_least(0)),
    }
    fitted_rules: ClassVar[attributes.Rules] = {
        "history_": attributes.report(),
        "n_iter_": count(),
        "max_epochs_": count(1),
    }

    @abstractmethod
    def to_module(self) -> Any:
        """Return the fitted model as a torch module."""

    def _fit_module(self, module: Any, problem: Samples, seed: int) -> Any:
        """Train the module from a random start, and return it."""
        module.to(problem.values)
        module.reset_parameters(self.init_scale, torch.Generator().manual_seed(seed))
        names = set(Training.__dataclass_fields__) & set(self.get_params(deep=False))
        used = {n: getattr(self, f"{n}_", getattr(self, n)) for n in names}  # tuned or given
        how = Training(**used, max_steps=LBFGS_STEPS, memory=LBFGS_MEMORY)
        self.history_ = train(module, problem, how, seed)
        self.n_iter_ = len(self.history_)
        return module

    def _predictor(self, values: Tensor, offsets: Tensor) -> Tensor:
        return self._from_module("forward", values, offsets)

    def _from_module(self, method: str, values: Tensor, offsets: Tensor) -> Tensor:
        """Return what a method of the fitted module returns for packed samples."""
        module = self.to_module()
        values = values.to(module.value.dtype)
        return in_blocks(module, values, offsets, getattr(module, method))
