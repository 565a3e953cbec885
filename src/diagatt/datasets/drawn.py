"""Bags of digits, wines and tumours, drawn from scikit-learn's data sets; key rows are known."""

from __future__ import annotations

from typing import Any

import numpy as np

from diagatt.datasets.bags import Bags, provides
from diagatt.datasets.pools import draw_from_pools

_SOURCE = "scikit-learn's {}, from the UCI archive"
_LICENCE = "CC BY 4.0 (UCI)"
NINE = 9


@provides("digits")
def digit_bags(name: str, n: int = 300, seed: int = 0) -> Bags:
    """Draw bags of 8 to 12 handwritten digits; half of them hold one nine, the others none."""
    rows, kinds = _digits()
    y, counts = _with_one_key(n, 8, 12, 0.5, seed)
    X, roles, pools = draw_from_pools(rows, kinds, [_is(NINE), _is_not(NINE)], counts, seed)
    text = "Handwritten digits, 8×8 pixels as a row; positive bags hold one nine."
    return _bags(name, X, y, "binary", pools, roles == 0, text, "digits")


@provides("digits_count")
def counted_digit_bags(name: str, n: int = 300, seed: int = 0) -> Bags:
    """Draw bags of 8 to 12 handwritten digits; the response counts the nines, 0 to 4."""
    rows, kinds = _digits()
    rng = np.random.default_rng((seed, 1))
    y = rng.integers(0, 4, n, endpoint=True)
    counts = np.column_stack([y, rng.integers(8, 12, n, endpoint=True) - y])
    X, roles, pools = draw_from_pools(rows, kinds, [_is(NINE), _is_not(NINE)], counts, seed)
    text = "Handwritten digits, 8×8 pixels as a row; the response is the number of nines."
    return _bags(name, X, y.astype(float), "regression", pools, roles == 0, text, "digits")


@provides("digits_which")
def named_digit_bags(name: str, n: int = 300, seed: int = 0) -> Bags:
    """Draw bags of 8 to 12 handwritten digits: one 7, 8 or 9, which is the class, and others."""
    rows, kinds = _digits()
    rng = np.random.default_rng((seed, 1))
    y = rng.integers(7, 9, n, endpoint=True)
    length = rng.integers(8, 12, n, endpoint=True)
    counts = np.column_stack([*(y == k for k in (7, 8, 9)), length - 1])
    roles = [_is(7), _is(8), _is(9), lambda kinds: kinds < 7]
    X, role, pools = draw_from_pools(rows, kinds, roles, counts, seed)
    text = "Handwritten digits, 8×8 pixels as a row; the class is the one digit above six."
    return _bags(name, X, y, "multiclass", pools, role < 3, text, "digits")


@provides("wine")
def wine_bags(name: str, n: int = 100, seed: int = 0) -> Bags:
    """Draw bags of 3 to 6 wines; half of them hold one wine of the third cultivar."""
    from sklearn.datasets import load_wine

    source = load_wine()
    y, counts = _with_one_key(n, 3, 6, 0.5, seed)
    roles = [_is(2), _is_not(2)]
    X, role, pools = draw_from_pools(source.data, source.target, roles, counts, seed)
    text = "Wines, 13 chemical measurements as a row; positive bags hold one of cultivar 3."
    return _bags(name, X, y, "binary", pools, role == 0, text, "wine data")


@provides("breast_cancer")
def tumour_bags(name: str, n: int = 200, seed: int = 0) -> Bags:
    """Draw bags of 6 to 12 breast tumours; three in ten bags hold one malignant tumour."""
    from sklearn.datasets import load_breast_cancer

    source = load_breast_cancer()
    y, counts = _with_one_key(n, 6, 12, 0.3, seed)
    roles = [_is(0), _is_not(0)]  # scikit-learn calls malignant 0
    X, role, pools = draw_from_pools(source.data, source.target, roles, counts, seed)
    text = "Breast tumours, 30 measurements of cell nuclei as a row; positive bags hold a malignant"
    return _bags(name, X, y, "binary", pools, role == 0, f"{text} one.", "breast cancer data")


def _with_one_key(
    n: int, low: int, high: int, share: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return responses, and counts of key and other rows, (n, 2); a share of bags holds one key."""
    rng = np.random.default_rng((seed, 1))
    y = rng.permutation((np.arange(n) < round(share * n)).astype(np.int64))
    length = rng.integers(low, high, n, endpoint=True)
    return y, np.column_stack([y, length - y])


def _digits() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    source = load_digits()
    return source.data / 16 - 0.5, source.target


def _is(kind: int) -> Any:
    return lambda kinds: kinds == kind


def _is_not(kind: int) -> Any:
    return lambda kinds: kinds != kind


def _bags(
    name: str, X: Any, y: Any, task: str, pools: Any, keys: Any, description: str, source: str
) -> Bags:
    return Bags(
        name,
        X,
        y,
        task,
        groups=pools,
        row_labels=keys,
        description=description,
        licence=_LICENCE,
        source=_SOURCE.format(source),
    )
