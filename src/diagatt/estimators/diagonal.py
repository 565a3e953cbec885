"""Diagonalized attention with scikit-learn's face."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from diagatt.estimators.diagonal_base import _DiagAtt
from diagatt.estimators.response import Classification, Regression
from diagatt.estimators.stored import stored_classes
from diagatt.stores import RowStore


class DiagAttRegressor(Regression, _DiagAtt):
    r"""Individualized sparse regression by diagonalized attention.

    Every sample is a matrix of rows; a few rows decide its response. Head r scores each row,
    a softmax over the sample's rows finds the row of interest, a shared vector predicts:

    .. math:: g(\mathrm E\, y) = \sum_r ⟨v_r, X^\top κ_r⟩ + b, \qquad
              κ_r = \mathrm{softmax}(\mathrm{diag}(X W_r X^\top) / (τ\sqrt d)).

    Parameters
    ----------
    n_heads : int, "auto" or list of int
        Rows of interest a sample, R. "auto" tries 1, 2 and 3, a list its items (see `selection`).
    family : {"auto", "gaussian", "poisson", "gamma"}
        Response distribution; "auto" is gaussian. Poisson and gamma have a log link.
    solver : {"auto", "likelihood", "gradient"}
        "gradient" minimizes the empirical risk of equation (obj). "likelihood" fits the same
        model by maximum likelihood, taking active and background rows as Gaussian (EM over the
        unknown rows). "auto" lets both, the likelihood fit trained on by gradients, and uniform
        attention compete on a held-out part (by BIC below 500 samples) and refits the winner.
    score_form : {"quadratic", "affine", "contextual"}
        Score the row x; (x, 1), which adds a linear term; or (x, 1, mean row of the sample).
    coupling : {"distinct", "independent"}
        Whether heads know that their rows are distinct, or have separate softmaxes as in the
        paper. Distinct rows are searched among the best 20 of each of two heads, 10 of three.
    covariance : {"full", "tied", "diagonal", "low_rank"}
        Of active rows in the likelihood solver, relative to the background: any, proportional,
        diagonal, or different in `rank` directions (2 by default).
    shrinkage : float, optional
        Pull of a "full" covariance towards the proportional one, in [0, 1]; by default chosen
        by oracle-approximating shrinkage.
    parameterization : {"full", "factored", "psd"}
        Of the gradient solver: W free, W = W_Q W_Kᵀ, or W = L Lᵀ.
    rank : int, optional
        Columns of the factors; for "full", the rank kept after each step.
    temperature : float
        τ; divides scores before the softmax in the gradient solver. Likelihood scores are
        log density ratios and need none.
    ridge, score_ridge : float
        Penalties ½λ‖V‖² and ½λσ²Σ‖W_r‖² beside the summed loss, as in scikit-learn's Ridge
        (``alpha``) and LogisticRegression (``1/C``); σ² is the variance of y (1 unless gaussian).
    value_bound, score_bound : float, optional
        The paper's bounded parameter space, ‖V‖_F ≤ R₁ and ‖W_r‖_op ≤ R₂, by projection.
    optimizer : {"auto", "adam", "lbfgs"}
        Mini-batch Adam, or full-batch L-BFGS with a Newton finish of the convex part; "auto"
        takes L-BFGS for small data.
    learning_rate, batch_size, max_epochs : float, int, int
        Of Adam. ``batch_size=None`` uses all samples at every step. `max_epochs` also limits
        L-BFGS; by default 20 epochs of Adam or 2000 of L-BFGS.
    tolerance : float
        L-BFGS stops when no entry of the gradient is larger.
    row_dropout : float
        Share of rows left out at every step of Adam.
    value_dropout : float
        Share of rows left out at a second step on other samples, which trains the values only:
        they learn from rows beside the active one, while scores go on looking for that one.
    validation_fraction, patience : float, int
        Hold this share of samples out; stop Adam when their loss has not fallen for `patience`
        epochs, and keep the best epoch.
    init : {"pooled", "zero"}
        Start values at the GLM of mean-pooled rows, or at zero.
    init_scale : float
        Spread of the random entries of W_Q and W_K.
    n_restarts : int
        Gradient fits from different starts that are averaged.
    selection : "holdout", "bic" or int
        How numbers of heads are compared: one held-out part of n/8, the Bayesian information
        criterion, or this many folds.
    warm_start : bool
        Continue from the previous fit.
    checkpoint : path, optional
        File in which Adam keeps its state every `checkpoint_every` epochs; `fit` resumes from it
        with the same result as an undisturbed run.
    checkpoint_every : int
    random_state : int, RandomState or None
    device : str
        Torch device.
    dtype : {"float32", "float64"}, optional
        Type to compute in; that of X by default.
    verbose : bool
        Show a progress bar.

    Attributes
    ----------
    query_key_ : array of shape (n_restarts · n_heads, D, D)
        W; D = d, d + 1 ("affine") or 2d + 1 ("contextual").
    query_, key_ : arrays of shape (n_restarts · n_heads, D, rank)
        W_Q and W_K with W = W_Q W_Kᵀ if they are smaller than W; else W and None.
    value_ : array of shape (n_restarts · n_heads, n_features)
        v, divided by the number of restarts.
    intercept_ : float
    covariate_coef_ : array of shape (n_covariates,)
    n_heads_, n_restarts_, n_features_in_, n_iter_ : int
    history_ : list of lists of dicts
        Loss of every epoch of every restart.
    selection_ : list of dicts
        Report of the contests: numbers of heads, solvers, starts of the likelihood solver.
    solver_ : str
        What won: "likelihood", "polish", "gradient", "uniform", or "glm" for one-row samples.
    criteria_ : list of dicts
        Log-likelihood, AIC and BIC by number of heads.
    value_se_ : array or None
        Standard errors of values, intercept and covariate coefficients (likelihood solver).
    unevenness_ : list of float
        Of each head's attention: 0 uniform, 1 one row.

    Examples
    --------
    >>> from diagatt import DiagAttRegressor, simulate
    >>> data = simulate.regression(300, p=6, d=4, mu=(3,), sigma2=(4,), seed=0)
    >>> model = DiagAttRegressor(random_state=0).fit(data.X, data.y)
    >>> model.locate(data.X[:3]).shape
    (3, 1)
    >>> model.attention(data.X[:1])[0].sum(axis=0).round(6)
    array([1.], dtype=float32)
    """

    @classmethod
    def _estimator_type_name(cls) -> str:
        return "regressor"

    def _stored_encoder(self, store: RowStore) -> Callable[[np.ndarray], np.ndarray]:
        if store.response_type == "string":
            raise ValueError(f"{store.path} holds words as responses: use DiagAttClassifier.")
        return lambda y: np.asarray(y, dtype=np.float64)


class DiagAttClassifier(Classification, _DiagAtt):
    """Individualized sparse classification by diagonalized attention.

    The model and the parameters of `DiagAttRegressor`, with a logit link for two classes and a
    softmax link for more; each class then has its own value vectors and all share the attention.

    Parameters
    ----------
    n_heads : int, "auto" or list of int
        Rows of interest a sample, R.
    family : {"auto", "bernoulli", "multinomial"}
        "auto" is bernoulli for two classes and multinomial for more.
    solver, score_form, coupling, covariance, shrinkage, parameterization, rank, temperature, \
ridge, score_ridge, value_bound, score_bound, optimizer, learning_rate, batch_size, max_epochs, \
tolerance, row_dropout, value_dropout, validation_fraction, patience, init, init_scale, \
n_restarts, selection, warm_start, checkpoint, checkpoint_every, random_state, device, dtype, \
verbose
        As in `DiagAttRegressor`.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    value_ : array of shape (n_restarts · n_heads, n_features), or (…, n_classes, n_features)
    intercept_ : float, or array of shape (n_classes,)
    query_key_, covariate_coef_, n_heads_, n_restarts_, history_, selection_
        As in `DiagAttRegressor`.

    Examples
    --------
    >>> from diagatt import DiagAttClassifier, simulate
    >>> data = simulate.classification(300, p=6, d=4, seed=0)
    >>> model = DiagAttClassifier(random_state=0).fit(data.X, data.y)
    >>> model.predict_proba(data.X[:2]).shape
    (2, 2)
    """

    @classmethod
    def _estimator_type_name(cls) -> str:
        return "classifier"

    def _stored_encoder(self, store: RowStore) -> Callable[[np.ndarray], np.ndarray]:
        self._set_classes(stored_classes(store))
        classes = self.classes_
        return lambda labels: np.searchsorted(classes, labels.astype(classes.dtype))
