"""Diagonalized attention with the interface of scikit-learn."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import torch

from diagatt import coerce
from diagatt.certainty.conformal import class_thresholds, interval, row_entropy, row_spread
from diagatt.estimators.containers import by_shard, from_sources
from diagatt.estimators.diagonal_base import _DiagAtt
from diagatt.estimators.outcomes import ClassificationOutcomes, RegressionOutcomes
from diagatt.parameters import check_share


class DiagAttRegressor(RegressionOutcomes, _DiagAtt):
    r"""Individualized sparse regression by diagonalized attention.

    Every sample is a matrix of rows, and a few rows decide its response. Head r scores each row, a
    softmax over the sample's rows finds the row of interest, and a shared vector predicts from it:

    .. math:: g(\mathrm E\, y) = \sum_r ⟨v_r, X^\top κ_r⟩ + b, \qquad
              κ_r = \mathrm{softmax}(\mathrm{diag}(X W_r X^\top) / (τ\sqrt d)).

    Parameters
    ----------
    n_heads : int, "auto" or list of int
        Count of rows of interest per sample, R. "auto" tries 1, 2 and 3, and a list tries its items
        (see `selection`).
    solver : {"auto", "likelihood", "mixture", "gradient", "refined", "uniform"} or solver object
        How the model is fitted; `diagatt.solvers` has the objects with their parameters, for
        example ``Gradient(rank=2)``. "gradient" minimizes the empirical risk of equation (obj).
        "likelihood" fits the same model by maximum likelihood, taking active and background rows
        as Gaussian. "mixture" maximizes the likelihood of the responses and assumes nothing about
        rows. "auto" brings rows to common scales, compares these solvers and uniform attention out
        of fold, and blends those that predict best (`diagatt.solvers.Auto`).
    family : {"auto", "gaussian", "poisson", "negative_binomial", "gamma", "tweedie", "binomial", \
"quantile", "huber"}
        Response distribution; "auto" is gaussian. Counts and amounts have a log link. Some families
        take a number: "quantile(0.9)", "tweedie(1.6)", "huber(1.35)". The responses of "binomial"
        are two columns, successes and failures.
    score_form : {"quadratic", "affine", "contextual"}
        What scores are quadratic forms of: the row x; (x, 1), which adds a linear term; or (x, 1,
        mean row of the sample).
    coupling : {"distinct", "independent"}
        "distinct": the heads choose different rows; their joint distribution is computed over the
        best 20 rows of each of two heads, or the best 10 of each of three. "independent": every
        head has its own softmax, as in the paper.
    ridge : float
        λ of the penalty ½λ‖V‖², added to the summed loss, as ``alpha`` in scikit-learn's Ridge and
        ``1/C`` in its LogisticRegression.
    selection : "auto", "holdout", "bic", "test" or int
        How counts of heads are compared: by an eighth of the samples that is held out, by the
        Bayesian information criterion, by a test at level 5 % of whether a further head adds
        anything (see `existence_test`), or by cross-validation with this count of folds. "auto" is
        "holdout" for most solvers. The default solver predicts samples out of fold anyway, and
        takes more heads if their loss there is smaller by a standard error.
    warm_start : bool
        Start from the previous fit.
    checkpoint : path or Checkpoint, optional
        File in which the solver keeps its state; `fit` resumes from it with the same result as an
        undisturbed run. ``diagatt.solvers.Checkpoint(path, every=5)`` writes every fifth pass.
    random_state : int, RandomState or None
        Seed of everything that is random: starts, batches and folds.
    device : str
        Torch device.
    verbose : bool
        Show progress bars.
    encoder : transformer of scikit-learn, MLP or torch module, optional
        Fitted to all rows before the model, which takes encoded rows: ``StandardScaler()``,
        ``PCA(20)``, ``Nystroem(n_components=100)`` or a pipeline of these. It is saved with the
        model, as arrays. Sparse rows are always encoded, by `diagatt.encoders.Principal` if no
        encoder is given. A `diagatt.encoders.MLP` or a torch module is trained together with the
        model, by the gradient or the mixture solver.
    missing : {"refuse", "marginalize"}
        What is done about entries of rows that are NaN or masked, in the fit and in new samples.
        "marginalize" integrates them out in the likelihood solver (with one head, one predictor,
        scores without context and no encoder); elsewhere a Gaussian of all rows imputes them by
        their conditional means.

    Attributes
    ----------
    query_key_ : array of shape (n_restarts · n_heads, D, D)
        W; D = d, d + 1 ("affine") or 2d + 1 ("contextual").
    query_, key_ : arrays of shape (n_restarts · n_heads, D, rank)
        W_Q and W_K with W = W_Q W_Kᵀ if they are smaller than W; else W and None.
    value_ : array of shape (n_restarts · n_heads, n_features)
        v, divided by the count of restarts.
    intercept_ : float
    covariate_coef_ : array of shape (n_covariates,)
    none_score_, none_value_ : arrays of shape (n_restarts,), or None
        Score ν and value a of the none-row, if the solver has ``none=True``.
    prevalence_ : float or None
        π̂, the estimated share of samples that have a row of interest, if the solver has
        ``none=True``. Two classes, counts and amounts may hold little information about it:
        the share that the mixture solver reports is then no finding.
    prevalence_interval_ : array of shape (2,), or None
        95 % interval for the share by the likelihood ratio, of the likelihood solver for up to
        5000 samples.
    shape_ : array
        Estimated parameters of the family besides the predictor: α of "negative_binomial", σ of
        "huber"; empty for most.
    n_heads_, n_restarts_, n_features_in_, n_iter_ : int
    n_outputs_ : int
        Count of columns of y. If there are several, `value_`, `intercept_` and `covariate_coef_`
        have an axis of outcomes, with shapes (…, n_outputs, n_features), (n_outputs,) and
        (n_outputs, n_covariates).
    history_ : list of lists of dicts
        Loss of every epoch of every restart.
    report_ : ContestReport
        The ways to fit that "auto" compared, with their scores out of fold and their weights; it
        is made to be printed.
    has_row_of_interest_ : bool or None
        Whether single rows predict more than their mean. "auto" and `calibrate` test this out of
        fold. Other solvers do not: it is False if attention is even, and None otherwise, as it is
        for one-row samples.
    members_ : list
        Fits that "auto" blends; empty for other solvers. `query_key_`, `value_`, `intercept_` and
        `summary` then describe the best one whose rows are an affine map of the original ones.
    selection_ : list of dicts
        The counts of heads that were compared, and the starts that the likelihood solver tried.
    readout_ : {"pooled", "mixture"}
        Whether a sample is predicted from its pooled row, or by the mean over its rows of what each
        row predicts.
    solver_ : str
        Name of the solver. For "auto" it is the solver of the fit that the coefficients describe,
        and for one-row samples it is "glm".
    criteria_ : list of dicts
        Log-likelihood, AIC and BIC for each count of heads.
    value_se_ : array or None
        Standard errors of values, intercept and covariate coefficients; `errors_note_` says how
        they were found, or why there are none.
    missing_ : dict or None
        Counts of missing "entries" and of "rows" that lack one, if ``missing="marginalize"``.
    row_means_, row_covariances_ : arrays of shapes (k, d) and (k, d, d), or None
        The Gaussians from which missing entries are inferred: one of all rows (k = 1), or one of
        background rows and one of active rows (k = 2) where entries are integrated out.
    unevenness_ : list of float
        How far each head's attention is from uniform: 0 is uniform, 1 is one row.

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

    @from_sources
    def predict(
        self, X: Any, covariates: Any = None, offset: Any = None, exposure: Any = None
    ) -> np.ndarray:
        """Return expected responses g⁻¹(z), (n_samples,); quantiles for family="quantile(…)".

        With several outcomes, the shape is (n_samples, n_outputs).

        Parameters
        ----------
        X : samples
        covariates : array of shape (n, q), optional
        offset, exposure : arrays of shape (n,), optional
            As in `fit`. Without an exposure, predictions are per unit of exposure.
        """
        return self._predicted(self._linear_predictor(X, covariates, offset, exposure))

    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        covariates: Any = None,
        offset: Any = None,
        exposure: Any = None,
    ) -> float:
        """Return R² of the predictions, which are proportions for family="binomial".

        With several outcomes, it is the mean of their R².
        """
        predicted = self.predict(X, covariates, offset, exposure)
        return self._score_of(X, y, predicted, sample_weight)

    @from_sources
    @by_shard
    def predict_interval(
        self,
        X: Any,
        level: float = 0.9,
        covariates: Any = None,
        offset: Any = None,
        exposure: Any = None,
    ) -> np.ndarray:
        """Return intervals that hold new responses with probability `level`, (n_samples, 2).

        With several outcomes, the shape is (n_samples, n_outputs, 2), and every single interval
        holds with this probability.

        The intervals are calibrated on samples that were held out of the fits and that are about as
        ambiguous (in the least, middle or most ambiguous third), and they are wider where rows
        disagree (`diagatt.certainty.conformal`). The default solver calibrates itself; after other
        solvers, call `calibrate` first.

        Parameters
        ----------
        X : samples
        level : float
        covariates : array of shape (n, q), optional
        offset, exposure : arrays of shape (n,), optional
            As in `predict`.

        Examples
        --------
        >>> from diagatt import DiagAttRegressor, simulate
        >>> data = simulate.regression(200, p=6, d=3, mu=(3,), sigma2=(4,), seed=0)
        >>> model = DiagAttRegressor(solver="likelihood", random_state=0).fit(data.X, data.y)
        >>> ends = model.calibrate(data.X, data.y).predict_interval(data.X, level=0.9)
        >>> bool(((ends[:, 0] < data.y) & (data.y < ends[:, 1])).mean() > 0.85)
        True
        """
        check_share(level, "level")
        if self.n_outputs_ > 1:
            given = (X, level, covariates, offset, exposure)
            return np.stack([one.predict_interval(*given) for one in self._each_outcome()], axis=1)
        conformity = self._conformity()
        module, part = self._part(X, covariates, offset, exposure)
        z = self._linear_predictor(X, covariates, offset, exposure)
        mean = torch.from_numpy(self._means(z)).double()
        spread = row_spread(module, part)
        return interval(conformity, level, mean[:, 0], spread, part.family)


class DiagAttClassifier(ClassificationOutcomes, _DiagAtt):
    """Individualized sparse classification by diagonalized attention.

    It has the model and the parameters of `DiagAttRegressor`, with a logit link for two classes and
    a softmax link for more. With more than two classes, each has its own value vectors, and all
    share the attention. If y has several columns of 0 and 1, these are labels that share the
    attention.

    Parameters
    ----------
    family : {"auto", "bernoulli", "multinomial", "ordinal"}
        "auto" means "bernoulli" for two classes and "multinomial" for more. "ordinal" is for
        ordered classes that are encoded as numbers; it is the model of proportional odds, with one
        predictor for all classes.
    n_heads, solver, score_form, coupling, ridge, selection, warm_start, checkpoint, \
random_state, device, verbose, encoder, missing
        As in `DiagAttRegressor`.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        With several labels, their columns 0, 1, ….
    value_ : array of shape (n_restarts · n_heads, n_features), or (…, n_classes, n_features)
    intercept_ : float, or array of shape (n_classes,)
    shape_ : array of shape (n_classes − 2,)
        Gaps between the thresholds of ordered classes; empty for other families.
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

    _papers_temperature: ClassVar[float] = 1000.0

    @from_sources
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        covariates: Any = None,
        groups: Any = None,
        offset: Any = None,
        exposure: Any = None,
        row_labels: Any = None,
        class_weight: Any = None,
    ) -> Self:
        """Fit to samples and their classes.

        Parameters
        ----------
        X, y, sample_weight, covariates, groups, offset, exposure, row_labels
            As in `DiagAttRegressor.fit`; classes have no exposure.
        class_weight : "balanced" or dict from classes to weights, optional
            The weight of each sample is multiplied by the weight of its class, as in scikit-learn.

        Examples
        --------
        >>> from diagatt import DiagAttClassifier, simulate
        >>> data = simulate.classification(100, p=4, d=3, seed=0)
        >>> model = DiagAttClassifier(solver="likelihood", random_state=0)
        >>> model.fit(data.X, data.y, class_weight="balanced").classes_
        array([0, 1])
        """
        if class_weight is not None:
            if y is None:  # as for a store
                raise ValueError(
                    "class_weight is for samples in memory and needs their y: a RowStore contains "
                    "its own weights; write them into the store."
                )
            sample_weight = coerce.class_weights(class_weight, y, sample_weight, len(X))
        known = {"groups": groups, "offset": offset, "exposure": exposure, "row_labels": row_labels}
        return self._fit(X, y, sample_weight, covariates, **known)

    @from_sources
    def decision_function(self, X: Any, covariates: Any = None, offset: Any = None) -> np.ndarray:
        """Return linear predictors z: (n_samples,) for two classes, else (n_samples, n_classes).

        With several labels, the shape is (n_samples, n_labels).
        """
        return self._decision(self._linear_predictor(X, covariates, offset))

    @from_sources
    def predict_proba(self, X: Any, covariates: Any = None, offset: Any = None) -> np.ndarray:
        """Return class probabilities, (n_samples, n_classes).

        With several labels, these are the probabilities of each, (n_samples, n_labels), as in
        scikit-learn's MLPClassifier and OneVsRestClassifier.
        """
        return self._probabilities(self._linear_predictor(X, covariates, offset))

    @from_sources
    def predict(self, X: Any, covariates: Any = None, offset: Any = None) -> np.ndarray:
        """Return the most probable classes, (n_samples,), or 0 and 1 for each of several labels."""
        return self._labels(self._linear_predictor(X, covariates, offset))

    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        covariates: Any = None,
        offset: Any = None,
    ) -> float:
        """Return the share of samples whose class, or all of whose labels, are predicted right."""
        return self._score_of(X, y, self.predict(X, covariates, offset), sample_weight)

    @from_sources
    @by_shard
    def predict_set(
        self, X: Any, level: float = 0.9, covariates: Any = None, offset: Any = None
    ) -> list[Any]:
        """Return sets of classes that hold the true class with probability `level`.

        This probability holds within every class, including rare ones: a set may leave out the most
        probable class where that class is frequent and usually more probable still. It also holds
        within the least, the middle and the most ambiguous third of samples, as far as a class has
        20 samples in each. There is one array of classes per sample, or, with several labels, a
        list of such arrays. The sets are calibrated on samples that were held out of the fits. The
        default solver calibrates itself; after other solvers, call `calibrate` first.

        Parameters
        ----------
        X : samples
        level : float
        covariates : array of shape (n, q), optional

        Examples
        --------
        >>> from diagatt import DiagAttClassifier, simulate
        >>> data = simulate.classification(200, p=6, d=4, seed=0)
        >>> model = DiagAttClassifier(solver="likelihood", random_state=0).fit(data.X, data.y)
        >>> sets = model.calibrate(data.X, data.y).predict_set(data.X, level=0.9)
        >>> len(sets)
        200
        """
        check_share(level, "level")
        if self.n_outputs_ > 1:
            each = [one.predict_set(X, level, covariates, offset) for one in self._each_outcome()]
            return [list(sets) for sets in zip(*each, strict=True)]
        conformity = self._conformity()
        probabilities = self._probabilities(self._linear_predictor(X, covariates, offset))
        ambiguity = row_entropy(*self._part(X, covariates, offset)).numpy()
        held = probabilities >= class_thresholds(conformity, level, len(self.classes_), ambiguity)
        best = probabilities == probabilities.max(axis=1, keepdims=True)
        return [self.classes_[line] for line in held | (best & ~held.any(axis=1, keepdims=True))]
