"""What the competitors share: responses, one tuning protocol (supplement S7.2), predictions."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from diagatt.estimators.base import RowsEstimator, validate_weights
from diagatt.estimators.competitor_parameters import at_least, open_values
from diagatt.families import Family, check_response, get_family
from diagatt.ragged import RaggedRows
from diagatt.selection import select
from diagatt.solvers.gradient.train import Training
from diagatt.solvers.problem import Samples


class Competitor(RowsEstimator):
    """An estimator that trains once for given settings and tunes those that are left open.

    A parameter named in `_grids` is open if it is "auto" (then the grid is tried) or a list or
    tuple (then its items are). The value in use is the fitted attribute of the same name with an
    underscore, ``alpha_`` for ``alpha``.
    """

    _grids: ClassVar[Mapping[str, tuple]] = {}
    n_located: int
    random_state: Any
    selection: str | int = "holdout"
    device: str = "cpu"

    # ------------------------------------------------------------------ for subclasses

    def _check_parameters(self) -> None:
        """Refuse impossible settings."""
        at_least(self, 1, "n_located")

    def _from_all(self, problem: Samples) -> dict[str, Any]:
        """Fitted attributes that all training samples decide, whether held out or not."""
        return {}

    def _train(self, problem: Samples, seed: int, memo: dict) -> None:
        """Fit with the settings in use; `memo` is shared by candidates on the same samples."""
        raise NotImplementedError

    def _predictor(self, values: Tensor, offsets: Tensor) -> Tensor:
        """Linear predictors of packed samples, (n, K)."""
        raise NotImplementedError

    def _held_out_predictor(self, problem: Samples) -> Tensor:
        return self._predictor(problem.values, problem.offsets)

    def _read_response(self, y: Any, weights: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _response_model(self) -> tuple[Family, int]:
        """Family and number of linear predictors."""
        raise NotImplementedError

    # ------------------------------------------------------------------ fitting

    def _fit(self, X: Any, y: Any, sample_weight: Any = None) -> None:
        rows = self._validate_rows(X, reset=True)
        weights = validate_weights(sample_weight, len(rows))
        response = self._read_response(y, weights)
        self._check_parameters()
        problem = self._problem(rows, response, weights)
        check_response(problem.family, problem.y)
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        fixed = self._from_all(problem)
        chosen, self.selection_ = self._tune(problem, seed, fixed)
        self._use(fixed | chosen)
        self._train(problem, seed, {})

    def _tune(self, problem: Samples, seed: int, fixed: dict) -> tuple[dict, list[dict]]:
        """Hold out, compare the candidates by loss, and say which is best."""
        grid = {f"{name}_": open_values(self, name, grid) for name, grid in self._grids.items()}
        candidates = [dict(zip(grid, v, strict=True)) for v in itertools.product(*grid.values())]
        if len(candidates) == 1:
            return candidates[0], []
        memos: dict[bytes, dict] = {}

        def held_out_loss(values: dict, train: np.ndarray, held_out: np.ndarray) -> float:
            candidate = clone(self)
            candidate._use(fixed | values)
            device = problem.y.device
            part, rest = (problem.take(torch.from_numpy(s).to(device)) for s in (train, held_out))
            candidate._train(part, seed, memos.setdefault(train.tobytes(), {}))
            return float(rest.mean_loss(candidate._held_out_predictor(rest)))

        chosen, report = select(candidates, held_out_loss, problem.n_samples, self.selection, seed)
        return chosen, [{**r.pop("candidate"), **r} for r in report]

    def _use(self, fitted: Mapping[str, Any]) -> None:
        for name, value in fitted.items():
            setattr(self, name, value)

    def _problem(self, rows: RaggedRows, y: np.ndarray, weights: np.ndarray) -> Samples:
        family, n_outputs = self._response_model()
        counted = weights > 0
        if not counted.all():
            rows, y, weights = rows[counted], y[counted], weights[counted]
        values, offsets = rows.to_torch(self.device)
        response, weight = (torch.as_tensor(a).to(values) for a in (y, weights))
        none = values.new_empty(len(response), 0)  # no covariates
        return Samples(family, values, offsets, response, weight, none, n_outputs)

    def _training(self) -> Training:
        """Return how to train a module: parameters, or the values in use where they were tuned."""
        names = set(Training.__dataclass_fields__) & set(self.get_params(deep=False))
        return Training(**{n: getattr(self, f"{n}_", getattr(self, n)) for n in names})

    # ------------------------------------------------------------------ predicting

    def _packed(self, X: Any) -> tuple[Tensor, Tensor]:
        check_is_fitted(self)
        return self._validate_rows(X, reset=False).to_torch(self.device)

    @torch.no_grad()
    def _linear_predictor(self, X: Any) -> Tensor:
        return self._predictor(*self._packed(X)).cpu()


class CompetitorRegressor(RegressorMixin, Competitor):
    """The face of regression; `family` is a parameter of those that have it."""

    def _read_response(self, y: Any, weights: np.ndarray) -> np.ndarray:
        return self._validate_response(y, len(weights))

    def _response_model(self) -> tuple[Family, int]:
        name = getattr(self, "family", "auto")
        family = get_family("gaussian" if name == "auto" else name)
        if family.classifies:
            raise ValueError(
                f"family {name!r} is for classes: use the classifier, or one of 'gaussian', "
                "'poisson', 'gamma'."
            )
        return family, 1

    def predict(self, X: Any) -> np.ndarray:
        """Expected responses g⁻¹(z), (n_samples,)."""
        z = self._linear_predictor(X)
        return self._response_model()[0].inverse_link(z)[:, 0].numpy()


class CompetitorClassifier(ClassifierMixin, Competitor):
    """The face of classification: logit link for two classes, softmax link for more."""

    classes_: np.ndarray

    def _read_response(self, y: Any, weights: np.ndarray) -> np.ndarray:
        labels = self._validate_classes(y, len(weights))
        counted = weights > 0
        self.classes_ = np.unique(labels[counted])
        if len(self.classes_) < 2:
            raise ValueError(
                f"y holds one class only ({self.classes_[0]!r}): a classifier needs at least two."
            )
        codes = np.zeros(len(labels))
        codes[counted] = np.searchsorted(self.classes_, labels[counted])
        return codes

    def _response_model(self) -> tuple[Family, int]:
        if len(self.classes_) == 2:
            return get_family("bernoulli"), 1
        return get_family("multinomial"), len(self.classes_)

    def _probabilities(self, z: Tensor) -> np.ndarray:
        mean = self._response_model()[0].inverse_link(z.double())
        return (torch.cat([1 - mean, mean], dim=1) if mean.shape[1] == 1 else mean).numpy()

    def _labels(self, z: Tensor) -> np.ndarray:
        codes = (z[:, 0] > 0).long() if z.shape[1] == 1 else z.argmax(dim=1)
        return self.classes_[codes.numpy()]

    def decision_function(self, X: Any) -> np.ndarray:
        """Linear predictors z: (n_samples,) for two classes, else (n_samples, n_classes)."""
        z = self._linear_predictor(X).numpy()
        return z[:, 0] if z.shape[1] == 1 else z

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities, (n_samples, n_classes)."""
        return self._probabilities(self._linear_predictor(X))

    def predict(self, X: Any) -> np.ndarray:
        """Most probable classes, (n_samples,)."""
        return self._labels(self._linear_predictor(X))
