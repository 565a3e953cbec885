"""Gated attention pooling (Ilse, Tomczak and Welling 2018) with the interface of scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from diagatt import attributes
from diagatt.attention.gated import GatedAttention
from diagatt.estimators.competitor import TrainedCompetitor
from diagatt.estimators.response import Classification, Regression
from diagatt.estimators.times import CoxCompetitor
from diagatt.parameters import at_least, count, several
from diagatt.solvers.problem import Samples


@dataclass(eq=False, repr=False)
class _Gated(TrainedCompetitor):
    """What regression and classification share."""

    n_hidden: int = 128

    grids: ClassVar = {"max_epochs": (5, 10, 20, 40), "ridge": (0.1, 1.0, 10.0)}
    rules: ClassVar = {"n_hidden": count(1), "ridge": several(at_least(0))}
    fitted_rules: ClassVar[attributes.Rules] = {
        **dict.fromkeys(
            ("content_", "gate_", "mixing_", "value_", "intercept_"), attributes.floats()
        ),
        "ridge_": at_least(0),
    }

    def _train(self, problem: Samples, seed: int, memo: dict) -> None:
        module = GatedAttention(problem.n_features, self.n_hidden, problem.n_outputs)
        for name, tensor in self._fit_module(module, problem, seed).state_dict().items():
            setattr(self, f"{name}_", tensor.cpu().numpy())

    def _fitted_shapes(self) -> dict[str, tuple[int, ...]]:
        hidden, d, K = self.n_hidden, self.n_features_in_, self._n_outputs()
        layer = {"content_": (hidden, d), "gate_": (hidden, d), "mixing_": (hidden,)}
        return {**super()._fitted_shapes(), **layer, "value_": (d, K), "intercept_": (K,)}

    def to_module(self) -> GatedAttention:
        """Return the fitted model as a torch module."""
        hidden, d = self.content_.shape
        module = GatedAttention(d, hidden, len(self.intercept_))
        names = list(module.state_dict())
        module.to(device=self.device, dtype=torch.from_numpy(self.value_).dtype)
        module.load_state_dict({k: torch.from_numpy(getattr(self, f"{k}_")) for k in names})
        return module

    def _row_scores(self, values: Tensor, offsets: Tensor) -> Tensor:
        """Return the attention weights a_k, (N,)."""
        return self._from_module("attention", values, offsets)[:, 0]

    def attention(self, X: Any) -> list[np.ndarray]:
        """Return the weights a_k of the rows of every sample, arrays (p_i, 1) that sum to 1."""
        values, offsets = self._packed(X)
        weights = self._row_scores(values, offsets).cpu().numpy()
        return np.split(weights[:, None], offsets.cpu().numpy()[1:-1])


class GatedAttentionRegressor(Regression, _Gated):
    r"""Regression by gated attention pooling.

    .. math:: g(\mathrm E\, y) = ⟨β, \textstyle\sum_k a_k x_k⟩ + b, \qquad
              a_k ∝ \exp\{w^\top(\tanh(V x_k) ⊙ \mathrm{sigm}(U x_k))\}

    Parameters
    ----------
    n_hidden : int
        Hidden units of the attention network.
    family : {"auto", "gaussian", "poisson", "gamma"}
        "auto" is gaussian.
    optimizer : {"auto", "adam", "lbfgs"}
        Mini-batch Adam, or full-batch L-BFGS; "auto" takes L-BFGS for small data.
    learning_rate, batch_size : float, int
        Step size of Adam, and its count of samples per step.
    max_epochs : int, "auto" or sequence
        Passes of Adam; "auto" tries 5, 10, 20 and 40.
    tolerance : float
        L-BFGS stops when no entry of the gradient is larger.
    ridge : float, "auto" or sequence
        λ of ½λ‖β‖², added to the summed loss; "auto" tries 0.1, 1 and 10.
    score_ridge : float
        λ of ½λσ²(‖V‖² + ‖U‖² + ‖w‖²); σ² is the variance of y (1 unless gaussian).
    init_scale : float
        V and U start from N(0, init_scale²/d), w starts from N(0, init_scale²/n_hidden).
    n_located, selection, random_state
        See `Competitor`; rows are located by their weights a_k.
    device, verbose : str, bool
        Torch device, and whether to show a progress bar.

    Attributes
    ----------
    content_, gate_, mixing_ : arrays of shape (n_hidden, d), (n_hidden, d) and (n_hidden,)
        V, U and w.
    value_, intercept_ : arrays of shape (d, 1) and (1,)
        β and b.
    max_epochs_, ridge_, n_iter_, history_, selection_
        Values in use, epochs done, loss after each, and held-out loss of every candidate.

    Examples
    --------
    >>> from diagatt import GatedAttentionRegressor, simulate
    >>> data = simulate.regression(100, p=6, d=4, mu=(3,), sigma2=(4,), seed=0)
    >>> model = GatedAttentionRegressor(n_hidden=8, random_state=0).fit(data.X, data.y)
    >>> [weights.shape for weights in model.attention(data.X[:2])]
    [(6, 1), (6, 1)]
    """


class GatedAttentionClassifier(Classification, _Gated):
    """Classification by gated attention pooling.

    Parameters and attributes are those of `GatedAttentionRegressor`, and ``classes_``. With more
    than two classes, ``value_`` and ``intercept_`` have one column per class.

    Examples
    --------
    >>> from diagatt import GatedAttentionClassifier, simulate
    >>> data = simulate.classification(100, p=6, d=4, seed=0)
    >>> model = GatedAttentionClassifier(n_hidden=8, random_state=0).fit(data.X, data.y)
    >>> model.predict_proba(data.X[:2]).shape
    (2, 2)
    """


class GatedAttentionSurvival(CoxCompetitor, _Gated):
    """Cox regression on gated attention pooling, by the partial likelihood of all samples.

    Parameters and attributes are those of `GatedAttentionRegressor`, whose family is "cox" here,
    and ``unique_times_`` and ``shape_`` of `DiagAttSurvival`.

    Examples
    --------
    >>> from diagatt import GatedAttentionSurvival, simulate
    >>> data = simulate.survival(100, p=5, d=4, mu=(3,), sigma2=(4,), seed=0)
    >>> model = GatedAttentionSurvival(n_hidden=4, random_state=0).fit(data.X, data.y)
    >>> [weights.shape for weights in model.attention(data.X[:2])]
    [(5, 1), (5, 1)]
    """
