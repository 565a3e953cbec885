"""Two-Step: cluster all rows, then regress on those of one cluster."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn import config_context
from sklearn.mixture import GaussianMixture
from torch import Tensor

from diagatt import attributes
from diagatt.competitors.shared import Unweighted
from diagatt.estimators.response import Classification, Regression
from diagatt.localization import N_LOCATED, top_rows
from diagatt.parameters import at_least, count, one_of, several
from diagatt.segments import BLOCK_ROWS
from diagatt.solvers.glm import fit_linear
from diagatt.solvers.problem import Samples


def fit_mixture(values: np.ndarray, covariance_type: str, max_iter: int, seed: int):
    """Fit scikit-learn's mixture of two Gaussians to all rows and return it as arrays.

    The order of scikit-learn's components is arbitrary and differs between fits to a part of the
    samples and to all samples; here the rarer component comes first, so that an index means the
    same in both.

    Returns
    -------
    weights (2,), means (2, d), roots of the precisions (2, d, d) with Σ⁻¹ = P Pᵀ, iterations
    """
    mixture = GaussianMixture(
        2, covariance_type=covariance_type, max_iter=max_iter, random_state=seed
    )
    with config_context(array_api_dispatch=False):  # its k-means start is for NumPy alone
        try:
            mixture.fit(values)
        except ValueError as error:  # rows were checked: a component has collapsed
            raise ArithmeticError(str(error)) from error
    d, root = values.shape[1], mixture.precisions_cholesky_
    if covariance_type == "tied":
        root = np.stack([root, root])
    elif covariance_type != "full":  # (2, d), or (2,) if spherical
        root = root.reshape(2, -1, 1) * np.eye(d)
    order = np.argsort(mixture.weights_, kind="stable")
    return mixture.weights_[order], mixture.means_[order], root[order], mixture.n_iter_


def log_odds(
    values: Tensor, weights: np.ndarray, means: np.ndarray, precision_root: np.ndarray
) -> Tensor:
    """Return the log odds that a row belongs to component 1 rather than 0, (N,).

    They rank rows as posterior probabilities do, also where those have all become 1.
    """
    log_density = values.new_empty(2, len(values), dtype=torch.float64)
    for c in range(2):
        root = torch.as_tensor(precision_root[c]).double()
        shift = torch.as_tensor(means[c]).double() @ root
        constant = float(np.log(weights[c])) + float(root.diagonal().log().sum())
        for start in range(0, len(values), BLOCK_ROWS):
            block = values[start : start + BLOCK_ROWS].double() @ root - shift  # (B, d)
            log_density[c, start : start + len(block)] = constant - 0.5 * block.square().sum(1)
    return log_density[1] - log_density[0]


@dataclass(eq=False, repr=False)
class _TwoStep(Unweighted):
    """What regression and classification share."""

    ridge: Any = 1.0
    _: KW_ONLY
    active_component: Any = "auto"
    covariance_type: str = "full"
    max_iter: int = 100
    n_located: int = N_LOCATED
    selection: str | int = "holdout"
    random_state: Any = None

    grids: ClassVar = {"ridge": (0.01, 0.1, 1.0), "active_component": (0, 1)}
    rules: ClassVar = {
        "ridge": several(at_least(0)),
        "active_component": several(one_of(0, 1)),
        "covariance_type": one_of("full", "tied", "diag", "spherical"),
        "max_iter": count(1),
    }
    fitted_rules: ClassVar[attributes.Rules] = {
        "coef_": attributes.floats("float64"),
        "intercept_": attributes.floats("float64"),
        "mixture_weights_": attributes.floats(),
        "mixture_means_": attributes.floats(),
        "precision_root_": attributes.floats(),
        "n_iter_": count(),
        "ridge_": at_least(0),
        "active_component_": one_of(0, 1),
    }
    ridge_: float = field(init=False)
    active_component_: int = field(init=False)

    def _train(self, problem: Samples, seed: int, memo: dict) -> None:
        if "mixture" not in memo:  # it does not depend on what is tuned
            memo["mixture"] = fit_mixture(
                problem.values.numpy(), self.covariance_type, self.max_iter, seed
            )
        self.mixture_weights_, self.mixture_means_, self.precision_root_ = memo["mixture"][:3]
        self.n_iter_ = memo["mixture"][3]
        coef, intercept = fit_linear(
            *(problem.family, self._chosen_rows(problem.values, problem.offsets)),
            *(problem.y, problem.weights),
            ridge=self.ridge_,
            n_outputs=problem.n_outputs,
        )
        self.coef_, self.intercept_ = coef.T.numpy(), intercept.numpy()  # (K, R̃d), (K,)

    def _fitted_shapes(self) -> dict[str, tuple[int, ...]]:
        K, d = self._n_outputs(), self.n_features_in_
        mixture = {"mixture_weights_": (2,), "mixture_means_": (2, d), "precision_root_": (2, d, d)}
        glm = {"coef_": (K, self.n_located * d), "intercept_": (K,)}
        return {**super()._fitted_shapes(), **mixture, **glm}

    def _row_scores(self, values: Tensor, offsets: Tensor) -> Tensor:
        """Return the log odds of the active component (equation localization_twostep)."""
        odds = log_odds(values, self.mixture_weights_, self.mixture_means_, self.precision_root_)
        return odds if self.active_component_ == 1 else -odds

    def _chosen_rows(self, values: Tensor, offsets: Tensor) -> Tensor:
        """Return the located rows side by side, best first, with zeros where there are fewer."""
        scores = self._row_scores(values, offsets).numpy()
        located = torch.from_numpy(top_rows(scores, offsets.numpy(), self.n_located))  # (n, R̃)
        rows = values[offsets[:-1, None] + located.clamp(min=0)]  # (n, R̃, d)
        return torch.where(located[:, :, None] < 0, 0, rows).flatten(1)

    def _predictor(self, values: Tensor, offsets: Tensor) -> Tensor:
        rows = self._chosen_rows(values, offsets).double()
        return rows @ torch.from_numpy(self.coef_).T + torch.from_numpy(self.intercept_)


class TwoStepRegressor(Regression, _TwoStep):
    r"""Cluster all rows, then regress on those of one cluster: the paper's Two-Step.

    A mixture of two Gaussians is fitted to the rows of all samples as if they were independent
    (scikit-learn's `GaussianMixture`). In each sample, the R̃ rows with the largest posterior
    probability P_j of the active component, in that order, make one vector of R̃d features:

    .. math:: \mathrm E\, y = ⟨β, (x_{j_1}, …, x_{j_{\tilde R}})⟩ + b, \qquad
              P_{j_1} ≥ P_{j_2} ≥ …

    and a ridge regression predicts from it.

    Parameters
    ----------
    ridge : float, "auto" or sequence
        λ of ½λ‖β‖², added to the summed loss, as ``alpha`` of scikit-learn's Ridge; "auto" tries
        0.01, 0.1 and 1.
    active_component : {"auto", 0, 1}
        Which component is the active one, the rarer (0) or the more frequent (1); "auto" tries
        both.
    covariance_type, max_iter : str, int
        Covariances and iterations of the mixture, as in scikit-learn.
    n_located, selection, random_state
        See `Competitor`; R̃ is `n_located`, and the seed also determines the start of the mixture.

    Attributes
    ----------
    mixture_weights_, mixture_means_ : arrays of shape (2,) and (2, d)
    precision_root_ : array of shape (2, d, d)
        P with Σ⁻¹ = P Pᵀ.
    coef_, intercept_ : arrays of shape (1, R̃d) and (1,)
        β and b.
    ridge_, active_component_, n_iter_, selection_
        Values in use, iterations of the mixture, and held-out loss of every candidate.

    Examples
    --------
    >>> from diagatt import TwoStepRegressor, simulate
    >>> data = simulate.regression(200, p=6, d=4, mu=(3,), sigma2=(4,), seed=0)
    >>> model = TwoStepRegressor(n_located=2, random_state=0).fit(data.X, data.y)
    >>> model.locate(data.X[:3]).shape
    (3, 2)
    """


class TwoStepClassifier(Classification, _TwoStep):
    """Cluster all rows, then logistic regression on those of one cluster.

    Parameters and attributes are those of `TwoStepRegressor`, and ``classes_``. ``ridge`` is
    ``1/C`` of scikit-learn's LogisticRegression; with more than two classes, ``coef_`` and
    ``intercept_`` have one line per class.

    Examples
    --------
    >>> from diagatt import TwoStepClassifier, simulate
    >>> data = simulate.classification(200, p=6, d=4, seed=0)
    >>> model = TwoStepClassifier(n_located=2, random_state=0).fit(data.X, data.y)
    >>> model.predict_proba(data.X[:2]).shape
    (2, 2)
    """
