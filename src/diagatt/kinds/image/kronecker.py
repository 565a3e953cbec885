r"""The map R of the paper's Example 2 between images and patch matrices, and Kronecker products.

An image ``X̃`` of ``p₁d₁ × p₂d₂`` pixels consists of blocks ``X̃_{jl}`` of ``d₁ × d₂``. R makes each
block a row, blocks and pixels both taken column by column:

.. math:: R(X̃) = [\mathrm{vec}(X̃_{11}), …, \mathrm{vec}(X̃_{p_1 1}), …, \mathrm{vec}(X̃_{p_1p_2})]^⊤

R only moves entries, so it keeps inner products, and Kronecker products become rank one:

.. math:: R(U ⊗ V) = \mathrm{vec}(U)\,\mathrm{vec}(V)^⊤, \qquad
          ⟨X̃, \textstyle\sum_k U_k ⊗ V_k⟩ = ⟨R(X̃), \sum_k \mathrm{vec}(U_k)\mathrm{vec}(V_k)^⊤⟩.

With channels, the vectors of all channels of a block stand one after the other in its row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from diagatt.kinds.image.grid import Grid


def rearrange(image: Any, patch: Any) -> np.ndarray:
    """Apply R: return an image (H, W) or (H, W, C) as its matrix of patches, (p₁p₂, d₁d₂C).

    Examples
    --------
    >>> rearrange(np.arange(8).reshape(2, 4), (2, 2))
    array([[0, 4, 1, 5],
           [2, 6, 3, 7]])
    """
    pixels = np.asarray(image)
    grid = Grid.checked(patch, None, "error")
    pixels = pixels.reshape(1, *pixels.shape[:2], -1)
    grid.counts(pixels.shape[1:3])
    return grid.windows(pixels).reshape(-1, pixels.shape[-1] * grid.patch[0] * grid.patch[1])


def restore(rows: Any, size: tuple[int, int], patch: Any) -> np.ndarray:
    """Invert R: return the image of ``size`` = (H, W) pixels that `rearrange` took apart.

    Its shape is (H, W, C) if rows hold several channels.

    Examples
    --------
    >>> image = np.arange(8).reshape(2, 4)
    >>> restore(rearrange(image, 2), (2, 4), 2)
    array([[0, 1, 2, 3],
           [4, 5, 6, 7]])
    """
    rows = np.asarray(rows)
    grid = Grid.checked(patch, None, "error")
    (d1, d2), (p1, p2) = grid.patch, grid.counts(size)
    if rows.ndim != 2 or len(rows) != p1 * p2 or rows.shape[1] % (d1 * d2) or rows.shape[1] == 0:
        raise ValueError(
            f"rows have shape {rows.shape}; an image of {size[0]}×{size[1]} in patches of "
            f"{d1}×{d2} has {p1 * p2} rows of {d1 * d2} pixels per channel."
        )
    blocks = rows.reshape(p2, p1, -1, d2, d1)  # (p₂, p₁, C, d₂, d₁)
    image = blocks.transpose(1, 4, 0, 3, 2).reshape(p1 * d1, p2 * d2, -1)
    return image[..., 0] if image.shape[2] == 1 else image


def kronecker_sum(indicators: Any, coefficients: Any) -> np.ndarray:
    """Return the image ``C̃ = Σ_k U_k ⊗ V_k`` (equation skpd), (p₁d₁, p₂d₂) or with channels.

    Parameters
    ----------
    indicators : array of shape (s, p₁, p₂)
        U_k: 1 where patch k lies; attention weights in their place give the fitted ``C̃``.
    coefficients : array of shape (s, d₁, d₂) or (s, d₁, d₂, C)
        V_k.

    Examples
    --------
    >>> kronecker_sum([[[0, 1]]], [[[5], [6]]])
    array([[0, 5],
           [0, 6]])
    """
    U, V = np.asarray(indicators), np.asarray(coefficients)
    if U.ndim != 3 or V.ndim not in (3, 4) or len(U) != len(V):
        raise ValueError(
            f"indicators of shape {U.shape} and coefficients of shape {V.shape} do not pair: "
            "pass s matrices of each."
        )
    product = np.einsum("kjl,kab...->jalb...", U, V)
    return product.reshape(U.shape[1] * V.shape[1], U.shape[2] * V.shape[2], *V.shape[3:])


def coefficient_matrices(values: Any, patch: Any) -> np.ndarray:
    """Return V_k of β_k = vec(V_k): the last axis (d₁d₂C) becomes (d₁, d₂) or (d₁, d₂, C).

    Parameters
    ----------
    values : array of shape (…, d₁d₂C)
        ``value_`` of an estimator: (heads, d), or (heads, classes, d).
    patch : (int, int)

    Examples
    --------
    >>> coefficient_matrices([[1, 2, 3, 4]], (2, 2))
    array([[[1, 3],
            [2, 4]]])
    """
    beta = np.asarray(values)
    d1, d2 = Grid.checked(patch, None, "error").patch
    if beta.ndim < 1 or beta.shape[-1] % (d1 * d2) or beta.shape[-1] == 0:
        raise ValueError(
            f"value vectors of shape {beta.shape} do not hold whole patches of {d1}×{d2} pixels."
        )
    blocks = beta.reshape(*beta.shape[:-1], -1, d2, d1)  # (…, C, d₂, d₁)
    matrices = np.moveaxis(blocks, (-1, -2), (-3, -2))  # (…, d₁, d₂, C)
    return matrices[..., 0] if matrices.shape[-1] == 1 else matrices
