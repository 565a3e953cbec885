"""scikit-learn's scores by name, for models whose predictions need covariates."""

from __future__ import annotations

from copy import copy
from functools import partial, update_wrapper
from typing import Any, Self

from sklearn.metrics import get_scorer
from sklearn.utils.metadata_routing import MetadataRequest

__all__ = ["Scorer", "scorer"]

PREDICTIONS = ("predict", "predict_proba", "decision_function")


class Scorer:
    """A score of scikit-learn that passes covariates on to the model's predictions.

    Scores that are given by name predict from X alone. With metadata routing, this one gets the
    covariates of the samples that it scores; weights reach it after
    ``set_score_request(sample_weight=True)``.

    Parameters
    ----------
    name : str
        One of ``sklearn.metrics.get_scorer_names()``.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.requests: dict[str, bool | str | None] = {"covariates": True, "sample_weight": None}

    def __call__(
        self, estimator: Any, X: Any, y: Any, covariates: Any = None, sample_weight: Any = None
    ) -> float:
        """Return the score of a fitted estimator; larger is better."""
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        if covariates is not None:
            estimator = _with_covariates(estimator, covariates)
        return float(get_scorer(self.name)(estimator, X, y, **weights))

    def __repr__(self) -> str:
        return f"scorer({self.name!r})"

    def set_score_request(self, **requests: bool | str | None) -> Self:
        """Say which of `covariates` and `sample_weight` the score asks for."""
        for name in requests:
            if name not in self.requests:
                raise TypeError(f"{self!r} takes {' and '.join(self.requests)}, not {name}.")
        self.requests = {**self.requests, **requests}
        return self

    def get_metadata_routing(self) -> MetadataRequest:
        """Return the requests, as scikit-learn reads them."""
        asked = MetadataRequest(owner=self)
        for name, request in self.requests.items():
            asked.score.add_request(param=name, alias=request)
        return asked


def scorer(name: str) -> Scorer:
    """Return a score of scikit-learn that passes covariates on to the model's predictions.

    Parameters
    ----------
    name : str
        One of ``sklearn.metrics.get_scorer_names()``, such as "roc_auc" or "neg_log_loss".

    Examples
    --------
    >>> import numpy as np
    >>> import sklearn
    >>> from sklearn.model_selection import cross_val_score
    >>> from diagatt import DiagAttClassifier, simulate
    >>> data = simulate.classification(90, p=4, d=3, seed=0)
    >>> age = np.random.default_rng(0).normal(size=(90, 1))
    >>> model = DiagAttClassifier(solver="likelihood", random_state=0)
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     scores = cross_val_score(
    ...         model, data.X, data.y, cv=3, scoring=scorer("roc_auc"), params={"covariates": age}
    ...     )
    >>> scores.shape
    (3,)
    """
    get_scorer(name)  # an unknown name is refused here, not after the first fit
    return Scorer(name)


def _with_covariates(estimator: Any, covariates: Any) -> Any:
    """Return a copy whose predictions know the covariates."""
    same = copy(estimator)
    for name in PREDICTIONS:
        if hasattr(estimator, name):
            method = getattr(estimator, name)
            bound = update_wrapper(partial(method, covariates=covariates), method)
            setattr(same, name, bound)
    return same
