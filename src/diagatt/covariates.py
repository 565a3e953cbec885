"""Samples that carry their covariates, for tools that split X alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from diagatt.arrays import InputError
from diagatt.ragged import RaggedRows


class WithCovariates(Sequence):
    """Samples with their covariates, as one X.

    Some of scikit-learn's tools call ``predict(X)`` and pass X alone, with or without
    metadata routing: ``cross_val_predict``, the `predict` of a ``GridSearchCV``, scores by name.
    Where X is of this class, the covariates are split with it and need not be passed.

    Parameters
    ----------
    X : samples
        RaggedRows, a list of matrices, texts, images, …
    covariates : array or frame of shape (n, q)

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import cross_val_predict
    >>> from diagatt import DiagAttRegressor, WithCovariates, simulate
    >>> data = simulate.regression(60, p=4, d=3, mu=(3,), sigma2=(4,), seed=0)
    >>> age = np.linspace(20, 80, 60)[:, None]
    >>> model = DiagAttRegressor(solver="uniform")
    >>> cross_val_predict(model, WithCovariates(data.X, age), data.y, cv=3).shape
    (60,)
    """

    def __init__(self, X: Any, covariates: Any) -> None:
        if not np.ndim(covariates):
            raise InputError(f"covariates are {covariates!r}: pass one line per sample.")
        self.X, self.covariates = X, covariates
        if len(X) != np.shape(covariates)[0]:
            raise InputError(
                f"covariates have {np.shape(covariates)[0]} lines, X has {len(X)} samples."
            )

    @property
    def shape(self) -> tuple[int]:
        """(n_samples,): to scikit-learn's splitters this is a sequence of samples."""
        return (len(self),)

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, key: Any) -> Any:
        """One sample for an int; samples with their covariates for anything else."""
        if isinstance(key, tuple):  # scikit-learn indexes samples as X[key, ...]
            key = key[0]
        chosen = np.arange(len(self))[key]
        if chosen.ndim == 0:
            return self.X[int(chosen)]
        taken = (_safe_indexing(own, chosen) for own in (self.X, self.covariates))
        return WithCovariates(*taken)

    def to_rows(self) -> RaggedRows:
        """Return the samples alone."""
        return RaggedRows.coerce(self.X)

    def __repr__(self) -> str:
        return f"WithCovariates({self.X!r}, {np.shape(self.covariates)[1]} covariates)"


def parted(X: Any, covariates: Any) -> tuple[Any, Any]:
    """Return samples and covariates, which either X carries or the caller has given."""
    if not isinstance(X, WithCovariates):
        return X, covariates
    if covariates is not None:
        raise InputError("X carries covariates, and others were given as well: give one of them.")
    return X.X, X.covariates
