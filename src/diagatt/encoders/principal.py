"""The principal subspace of sparse rows, found without a dense copy of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from diagatt.parameters import Rule, check, count

BLOCK = 4096  # rows that are multiplied in one go
OVERSAMPLED, PASSES = 16, 8  # directions beyond those that are kept, and multiplications by XᵀX


class Principal(TransformerMixin, BaseEstimator):
    r"""Principal components of sparse rows, which are never actually centred.

    Directions Z of the covariance of rows are found by subspace iteration,

    .. math:: Z ← \mathrm{orth}((X - 1μ^\top)^\top (X - 1μ^\top) Z),

    one block of rows after the other: the products need only the stored entries, the centring is
    a correction of rank one, and no array of the size of X is made.

    Parameters
    ----------
    n_components : int
        Largest count of dimensions to keep.
    random_state : int
        Seed of the first directions.

    Attributes
    ----------
    mean_ : array of shape (d,)
    components_ : array of shape (d, n_components)
        Orthonormal columns, the first with the largest variance.
    explained_variance_ : array of shape (n_components,)
    explained_variance_ratio_ : array of shape (n_components,)
    n_features_in_ : int

    Examples
    --------
    >>> from scipy.sparse import random
    >>> X = random(500, 2000, density=0.01, random_state=0, format="csr")
    >>> Principal(5).fit_transform(X).shape
    (500, 5)
    """

    rules: ClassVar[Mapping[str, Rule]] = {"n_components": count(1), "random_state": count()}

    def __init__(self, n_components: int = 64, random_state: int = 0) -> None:
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the directions.

        Parameters
        ----------
        X : CSR matrix or array of shape (N, d)
        y : ignored
        """
        check(self)
        N, d = X.shape
        kept = min(self.n_components, d, max(1, N - 1))
        width = min(kept + OVERSAMPLED, d)
        self.n_features_in_, self.mean_ = d, np.zeros(d)
        squares = np.zeros(d)
        for block in _blocks(X):
            self.mean_ += np.asarray(block.sum(axis=0, dtype=np.float64)).ravel() / N
            squares += np.asarray(_squares(block).sum(axis=0, dtype=np.float64)).ravel() / N
        total = float((squares - self.mean_**2).clip(min=0).sum())
        rng = np.random.default_rng(self.random_state)
        Z = np.linalg.qr(rng.standard_normal((d, width)))[0]
        for _ in range(PASSES):
            moved = np.zeros((d, width))
            for block in _blocks(X):
                Y = self._centred(block, Z)  # (B, width)
                moved += block.T @ Y
                moved -= np.outer(self.mean_, Y.sum(axis=0))
            Z = np.linalg.qr(moved)[0]
        gram = np.zeros((width, width))
        for block in _blocks(X):
            Y = self._centred(block, Z)
            gram += Y.T @ Y
        variance, turn = np.linalg.eigh(gram / N)
        order = np.argsort(-variance)[:kept]
        components = Z @ turn[:, order]
        largest = np.abs(components).argmax(axis=0)
        components *= np.sign(components[largest, np.arange(kept)])  # the same on every machine
        self.components_ = components
        self.explained_variance_ = variance[order].clip(min=0)
        self.explained_variance_ratio_ = self.explained_variance_ / (total or 1.0)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the components of rows, (N, n_components)."""
        return self._centred(X, self.components_)

    def _centred(self, X: Any, Z: np.ndarray) -> np.ndarray:
        return np.asarray(X @ Z) - self.mean_ @ Z


def _blocks(X: Any) -> Iterator[Any]:
    for start in range(0, X.shape[0], BLOCK):
        yield X[start : start + BLOCK]


def _squares(block: Any) -> Any:
    return block.multiply(block) if hasattr(block, "toarray") else block**2
