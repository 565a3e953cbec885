"""A fitted estimator at a glance, as escaped HTML for notebooks."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

__all__ = ["estimator_html"]


def estimator_html(model: Any) -> str:
    """Facts, criteria and coefficients of a fitted estimator as an HTML fragment.

    Estimators keep scikit-learn's own picture in notebooks; show this beside it with
    ``IPython.display.HTML(estimator_html(model))``.

    Examples
    --------
    >>> from diagatt import DiagAttRegressor, simulate
    >>> data = simulate.regression(200, p=6, d=4, mu=(3,), sigma2=(4,), seed=0)
    >>> model = DiagAttRegressor(solver="likelihood", random_state=0).fit(data.X, data.y)
    >>> "DiagAttRegressor" in estimator_html(model)
    True
    """
    check_is_fitted(model)
    if not hasattr(model, "summary"):
        raise TypeError(f"{type(model).__name__} has no summary to show.")
    return model.summary()._repr_html_()
