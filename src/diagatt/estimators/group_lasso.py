"""Group lasso over rows with scikit-learn's face."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from diagatt.estimators.competitor import Competitor, CompetitorClassifier, CompetitorRegressor
from diagatt.estimators.competitor_parameters import at_least, check_lengths
from diagatt.localization import N_LOCATED, row_positions, top_rows
from diagatt.solvers.group_lasso import fit_group_lasso, row_design, uncentred
from diagatt.solvers.problem import Samples


class _GroupLasso(Competitor):
    """Everything that regression and classification share."""

    # From large to small: each solution is a good start for the next.
    _grids: ClassVar = {"alpha": (1.0, 0.1, 0.01)}
    n_rows_: int

    def __init__(
        self,
        alpha: Any = 0.01,
        *,
        tolerance: float | None = None,
        n_located: int = N_LOCATED,
        selection: str | int = "holdout",
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.tolerance = tolerance
        self.n_located = n_located
        self.selection = selection
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to samples and their responses.

        Parameters
        ----------
        X : RaggedRows, list of (p_i, d) arrays, (n, p, d) array, or (n, d) array
            Samples; the longest sets p, the others are padded with zero rows.
        y : array of shape (n,)
        sample_weight : array of shape (n,), optional
        """
        self._fit(X, y, sample_weight)
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        at_least(self, 0, "alpha")
        if self.tolerance is not None:
            at_least(self, 0, "tolerance")

    def _from_all(self, problem: Samples) -> dict[str, Any]:
        return {"n_rows_": int(problem.offsets.diff().max())}

    def _train(self, problem: Samples, seed: int, memo: dict) -> None:
        values, offsets = problem.values.numpy(), problem.offsets.numpy()
        design = row_design(values, offsets, problem.weights.numpy(), self.n_rows_)
        y = problem.y.numpy()
        if problem.family.name == "gaussian":
            loss, responses = "quadratic", [y]
        else:  # one class against the rest; of two classes the second
            codes = [1] if problem.n_outputs == 1 else range(problem.n_outputs)
            loss, responses = "logistic", [np.where(y == code, 1.0, -1.0) for code in codes]
        fits = []
        for k, response in enumerate(responses):
            memo[k] = fit_group_lasso(
                design, response, self.alpha_, loss, self.tolerance, start=memo.get(k)
            )
            fits.append(uncentred(memo[k], design))
        self.coef_ = np.stack([coef for coef, _ in fits])  # (K, p, d)
        self.intercept_ = np.array([intercept for _, intercept in fits])  # (K,)

    def _predictor(self, values: Tensor, offsets: Tensor) -> Tensor:
        check_lengths(self, offsets, self.n_rows_, "one line of coefficients")
        coef = torch.from_numpy(self.coef_).permute(1, 2, 0)  # (p, d, K)
        lengths = offsets.diff()
        z = torch.from_numpy(self.intercept_).repeat(len(lengths), 1)  # (n, K)
        for j in range(int(lengths.max())):
            has = torch.nonzero(lengths > j)[:, 0]
            z[has] += values[offsets[has] + j].double() @ coef[j]
        if len(self.coef_) == 1:
            return z
        log_sigmoid = F.logsigmoid(z)  # classes against the rest: normalize their probabilities
        return log_sigmoid - torch.logsumexp(log_sigmoid, dim=1, keepdim=True)

    def locate(self, X: Any) -> np.ndarray:
        """Rows whose coefficients have the largest norms (equation localization_grouplasso).

        Returns
        -------
        array of shape (n_samples, n_located), int
            The same for all samples of p rows; -1 where a sample has fewer rows.
        """
        _, offsets = self._packed(X)
        check_lengths(self, offsets, self.n_rows_, "one line of coefficients")
        norms = np.sqrt((self.coef_**2).sum(axis=(0, 2)))  # (p,)
        cuts = offsets.numpy()
        return top_rows(norms[row_positions(cuts)], cuts, self.n_located)


class GroupLassoRegressor(_GroupLasso, CompetitorRegressor):
    r"""Group lasso regression with rows as groups (Yuan and Lin 2006), the paper's GroupLasso.

    .. math:: \min_{C, b} \frac1{2n} \sum_i (y_i - ⟨X_i, C⟩ - b)^2 + λ \sum_{j=1}^p ‖C_{j·}‖_2

    One coefficient matrix C ∈ R^{p×d} for all samples, padded with zero rows to the longest
    training sample: it ignores that signals sit elsewhere in every sample. Solved by skglm, in
    the extra ``baselines``.

    Parameters
    ----------
    alpha : float, "auto" or sequence
        λ; "auto" tries 1, 0.1 and 0.01 on held-out samples.
    tolerance : float, optional
        Distance to optimality at which to stop, relative to that of C = 0; by default 1e-10 for
        small data and 1e-4 beyond.
    n_located : int
        Rows that `locate` names, the paper's R̃.
    selection : "holdout" or int
        How open parameters are compared: one held-out part of n/8, or this many folds.
    random_state : int, RandomState or None
        Of the held-out part.

    Attributes
    ----------
    coef_ : array of shape (1, p, d)
        C.
    intercept_ : array of shape (1,)
    alpha_ : float
        The value in use.
    n_rows_ : int
        p, rows of the longest training sample.
    selection_ : list of dicts
        Held-out loss of every value tried.

    Examples
    --------
    >>> from diagatt import simulate
    >>> from diagatt.estimators.group_lasso import GroupLassoRegressor
    >>> data = simulate.regression(200, p=6, d=4, mu=(3,), sigma2=(4,), seed=0)
    >>> model = GroupLassoRegressor(alpha="auto", n_located=2, random_state=0)
    >>> model.fit(data.X, data.y).coef_.shape
    (1, 6, 4)
    """


class GroupLassoClassifier(_GroupLasso, CompetitorClassifier):
    """Group lasso logistic regression with rows as groups; see `GroupLassoRegressor`.

    More than two classes are each fitted against the rest, and their probabilities normalized.

    Parameters
    ----------
    alpha, tolerance, n_located, selection, random_state
        As in `GroupLassoRegressor`; the loss is the mean logistic loss.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    coef_ : array of shape (1, p, d), or (n_classes, p, d)
    intercept_ : array of shape (1,), or (n_classes,)
    alpha_, n_rows_, selection_
        As in `GroupLassoRegressor`.

    Examples
    --------
    >>> from diagatt import simulate
    >>> from diagatt.estimators.group_lasso import GroupLassoClassifier
    >>> data = simulate.classification(200, p=6, d=4, seed=0)
    >>> model = GroupLassoClassifier(alpha=0.01).fit(data.X, data.y)
    >>> model.predict_proba(data.X[:2]).shape
    (2, 2)
    """
