"""Standard attention, the paper's StdAtt, with the interface of scikit-learn."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from diagatt import attributes
from diagatt.attention.standard import StandardAttention
from diagatt.competitors.shared import Padded
from diagatt.estimators.competitor import TrainedCompetitor
from diagatt.estimators.response import Classification, Regression
from diagatt.parameters import at_least, count, positive, several
from diagatt.solvers.problem import Samples


@dataclass(eq=False, repr=False)
class _StdAtt(TrainedCompetitor, Padded):
    """What regression and classification share."""

    n_heads: Any = 1
    _: KW_ONLY
    learning_rate: float = 1e-3
    max_epochs: Any = 4
    ridge: float = 1.0
    memory_limit: float = 2**30

    grids: ClassVar = {"n_heads": (1, 2, 3), "max_epochs": (1, 2, 4, 8)}
    rules: ClassVar = {
        "n_heads": several(count(1)),
        "ridge": at_least(0),
        "memory_limit": positive(),
    }
    fitted_rules: ClassVar[attributes.Rules] = {
        **dict.fromkeys(("query_key_", "value_", "intercept_"), attributes.floats()),
        "n_heads_": count(1),
    }
    per_position: ClassVar = "one line of its value matrix"
    n_heads_: int = field(init=False)

    def _train(self, problem: Samples, seed: int, memo: dict) -> None:
        sizes = (problem.n_features, self.n_rows_, self.n_heads_, problem.n_outputs)
        module = StandardAttention(*sizes, memory_limit=self.memory_limit)
        self._fit_module(module, problem, seed)
        self.query_key_ = module.matrix().detach().cpu().numpy()  # (R, d, d)
        self.value_ = module.value.detach().cpu().numpy()  # (R, p, d, K)
        self.intercept_ = module.intercept.detach().cpu().numpy()  # (K,)

    def _fitted_shapes(self) -> dict[str, tuple[int, ...]]:
        R, d, K = self.n_heads_, self.n_features_in_, self._n_outputs()
        heads = {"query_key_": (R, d, d), "value_": (R, self.n_rows_, d, K)}
        return {**super()._fitted_shapes(), **heads, "intercept_": (K,)}

    def to_module(self) -> StandardAttention:
        """Return the fitted model as a torch module."""
        arrays = (self.query_key_, self.value_, self.intercept_)
        W, V, b = (torch.from_numpy(array).to(self.device) for array in arrays)
        return StandardAttention.from_arrays(W, V, b, self.memory_limit)

    def _row_scores(self, values: Tensor, offsets: Tensor) -> Tensor:
        """Return the norms of the rows of C_r, (N, R); each head names ⌊n_located/R⌋ rows."""
        return self._from_module("row_effects", values, offsets)


class StdAttRegressor(Regression, _StdAtt):
    r"""Regression by standard attention (equations single1 and multi1).

    .. math:: g(\mathrm E\, y) = \sum_r ⟨\mathrm{softmax}_{row}(X W_r X^\top/\sqrt d)\, X, V_r⟩ + b

    There is one value row for each of p positions: samples are padded with zero rows to the
    longest training sample, and longer samples cannot be predicted. Samples go through in blocks,
    so that their p×p matrices never stand in memory together.

    Parameters
    ----------
    n_heads : int, "auto" or sequence
        R; "auto" tries 1, 2 and 3.
    family, optimizer, learning_rate, batch_size, tolerance, device, verbose
        As in `GatedAttentionRegressor`; the paper trains by Adam.
    max_epochs : int, "auto" or sequence
        Passes of Adam; "auto" tries 1, 2, 4 and 8.
    ridge, score_ridge : float
        Penalties ½λ‖V‖² and ½λσ²(‖W_Q‖² + ‖W_K‖²), added to the summed loss; σ² is the variance
        of y (1 unless gaussian). The paper has none.
    init_scale : float
        Entries of W_Q and W_K start from N(0, init_scale²/d).
    memory_limit : float
        Bytes for attention matrices and their gradients; see `StandardAttention`.
    n_located, selection, random_state
        See `Competitor`; located is the union over heads of the rows with the largest norms in
        C_r (supplement S7.3).

    Attributes
    ----------
    query_key_ : array of shape (n_heads, d, d)
        W.
    value_, intercept_ : arrays of shape (n_heads, p, d, 1) and (1,)
        V and b.
    n_rows_ : int
        p, rows of the longest training sample.
    n_heads_, max_epochs_, n_iter_, history_, selection_
        Values in use, epochs done, loss after each, and held-out loss of every candidate.

    Examples
    --------
    >>> from diagatt import StdAttRegressor, simulate
    >>> data = simulate.regression(100, p=6, d=4, mu=(3,), sigma2=(4,), seed=0)
    >>> model = StdAttRegressor(n_located=2, random_state=0).fit(data.X, data.y)
    >>> model.locate(data.X[:3]).shape
    (3, 2)
    """


class StdAttClassifier(Classification, _StdAtt):
    """Classification by standard attention.

    Parameters and attributes are those of `StdAttRegressor`, and ``classes_``. More than two
    classes have value matrices of their own, along the last axis of ``value_``.

    Examples
    --------
    >>> from diagatt import StdAttClassifier, simulate
    >>> data = simulate.classification(100, p=6, d=4, seed=0)
    >>> model = StdAttClassifier(random_state=0).fit(data.X, data.y)
    >>> model.predict_proba(data.X[:2]).shape
    (2, 2)
    """
