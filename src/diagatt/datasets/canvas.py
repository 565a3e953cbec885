"""Handwritten digits at random places on large canvases: the true row of interest is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter

SIDE = 8  # scikit-learn's digits have 8×8 pixels
BACKGROUNDS = ("noise", "texture")
TASKS = ("classification", "regression")


@dataclass(frozen=True)
class DigitCanvas:
    """Images with one digit each, and the truth about it.

    Attributes
    ----------
    images : array of shape (n, H, W), or list of n arrays, float32
        One array if all canvases have the same size.
    y : array of shape (n,)
        The digit (classification), or a number that depends on its pixels (regression).
    corners : array of shape (n, 2)
        Pixel (line, column) of the digit's top left corner.
    digits : array of shape (n,)
        The digit.
    sources : array of shape (n,)
        Its index in scikit-learn's data set; training and test images share none.
    coefficient : array of shape (8, 8) or None
        B of the regression task.
    """

    images: Any
    y: np.ndarray
    corners: np.ndarray
    digits: np.ndarray
    sources: np.ndarray
    coefficient: np.ndarray | None = None

    @property
    def boxes(self) -> np.ndarray:
        """Boxes of the digits, (n, 4): top, left, bottom, right; bottom and right exclusive."""
        return np.hstack([self.corners, self.corners + SIDE])

    def true_rows(self, patches: Any, share: float = 1.0) -> list[np.ndarray]:
        r"""Return the rows of interest of every image, for the rows that `patches` makes.

        With ``o_j`` the count of pixels that patch j shares with the digit's 8×8 square,

        .. math:: S_i = \{ j : o_j ≥ \text{share} · \max_k o_k \}.

        For 8×8 patches on the grid this is the one patch that contains the digit. Off the grid it
        is the patch nearest to the digit, or several if they are equally near.

        Parameters
        ----------
        patches : PatchRows
        share : float
            Below 1, patches that contain nearly as much of the digit count, too.
        """
        truth = []
        for image, corner in zip(self.images, self.corners, strict=True):
            begin = patches.corners(image.shape[:2])  # (p, 2)
            end = np.minimum(begin + patches.patch_size, corner + SIDE)
            overlap = np.clip(end - np.maximum(begin, corner), 0, None).prod(axis=1)
            truth.append(np.flatnonzero(overlap >= share * overlap.max()))
        return truth

    def hit_rate(self, patches: Any, located: Any, share: float = 1.0) -> float:
        """Return the share of images with a located row in `true_rows`; on the grid, the CRLR.

        Parameters
        ----------
        patches : PatchRows
        located : array of shape (n, n_heads)
            From `locate`.
        share : float
            As in `true_rows`.
        """
        truth = self.true_rows(patches, share)
        pairs = zip(np.asarray(located), truth, strict=True)
        return float(np.mean([np.isin(rows, true).any() for rows, true in pairs]))


def digit_canvas(
    n_train: int = 4000,
    n_test: int = 1000,
    *,
    digits: Sequence[int] = (4, 9),
    task: str = "classification",
    size: Any = 64,
    background: str = "noise",
    noise: float = 0.2,
    on_grid: bool = True,
    seed: int = 0,
) -> tuple[DigitCanvas, DigitCanvas]:
    r"""Return training and test images with one handwritten digit each, somewhere on a canvas.

    A digit (one of scikit-learn's 8×8 digits, ink from 0 to 1) is added to a background that covers
    the whole canvas. A third of the handwritten digits of each kind is reserved for the test
    images.

    Parameters
    ----------
    n_train, n_test : int
        Counts of images; digits are reused at other places on other backgrounds.
    digits : sequence of int
        The digits to use; two digits make two classes.
    task : {"classification", "regression"}
        y is the digit, or ``⟨B, P⟩ + ε`` with P the 8×8 pixels where the digit stands, B fixed
        with entries from N(0, 1), and ε from N(0, 0.1²).
    size : int, (int, int), or ((int, int), (int, int))
        Side of square canvases; height and width; or ranges (ends included) from which height and
        width of each canvas are drawn. On the grid they are multiples of 8.
    background : {"noise", "texture"}
        White noise, or smooth random stripes and blobs of the same variance: noise averaged over
        a random count of pixels, which differs between the two directions.
    noise : float
        Standard deviation of the background.
    on_grid : bool
        Put corners at multiples of 8, so that one 8×8 patch contains exactly the digit; or
        anywhere, which calls for overlapping patches.
    seed : int

    Returns
    -------
    train, test : DigitCanvas

    Examples
    --------
    >>> from diagatt.datasets.canvas import digit_canvas
    >>> train, test = digit_canvas(20, 10, seed=1)
    >>> train.images.shape, sorted(set(train.y.tolist()))
    ((20, 64, 64), [4, 9])
    >>> set(train.sources) & set(test.sources)
    set()
    """
    _check(digits, task, background, noise)
    ranges = _ranges(size, on_grid)
    streams = np.random.default_rng(seed).spawn(4)
    drawings, labels, pools = _split_digits(digits, streams[0])
    coefficient = streams[1].standard_normal((SIDE, SIDE)) if task == "regression" else None
    parts = []
    for n, pool, rng in zip((n_train, n_test), pools, streams[2:], strict=True):
        if n < 1:
            raise ValueError("n_train and n_test must be at least 1.")
        sizes = np.stack([rng.integers(low, high, n, endpoint=True) for low, high in ranges], 1)
        step = SIDE if on_grid else 1
        sizes *= step
        corners = rng.integers(0, (sizes - SIDE) // step, endpoint=True) * step
        sources = rng.choice(pool, n)
        images = _canvases(sizes, background, noise, rng)
        for image, (top, left), source in zip(images, corners, sources, strict=True):
            image[top : top + SIDE, left : left + SIDE] += drawings[source]
        y = labels[sources]
        if coefficient is not None:
            y = _values(images, corners, coefficient) + 0.1 * rng.standard_normal(n)
        parts.append(DigitCanvas(images, y, corners, labels[sources], sources, coefficient))
    return parts[0], parts[1]


def _check(digits: Sequence[int], task: str, background: str, noise: float) -> None:
    if not set(digits) <= set(range(10)) or len(set(digits)) != len(digits) or not digits:
        raise ValueError(f"digits={digits!r} must be distinct numbers from 0 to 9.")
    if task not in TASKS:
        raise ValueError(f"task={task!r} is unknown: choose one of {TASKS}.")
    if task == "classification" and len(digits) < 2:
        raise ValueError("classification needs at least two digits.")
    if background not in BACKGROUNDS:
        raise ValueError(f"background={background!r} is unknown: choose one of {BACKGROUNDS}.")
    if not noise >= 0:
        raise ValueError(f"noise={noise!r} must be 0 or more.")


def _ranges(size: Any, on_grid: bool) -> np.ndarray:
    """Return the ranges of height and width, (2, 2); in units of 8 pixels on the grid."""
    limits = np.asarray(size)
    if limits.ndim < 2:
        limits = np.broadcast_to(limits, 2)[:, None].repeat(2, axis=1)
    if limits.shape != (2, 2) or limits.dtype.kind not in "iu" or (limits < SIDE).any():
        raise ValueError(
            f"size={size!r} must be one side, (height, width), or two ranges, each of at least "
            f"{SIDE} pixels."
        )
    if (limits[:, 0] > limits[:, 1]).any():
        raise ValueError(f"size={size!r}: a range starts above its end.")
    if on_grid and (limits % SIDE).any():
        raise ValueError(f"size={size!r} must consist of multiples of {SIDE}, or on_grid=False.")
    return limits // SIDE if on_grid else limits


def _split_digits(
    digits: Sequence[int], rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Return all drawings (1797, 8, 8), their labels, and the indices for training and test."""
    from sklearn.datasets import load_digits

    bundled = load_digits()
    train, test = [], []
    for digit in digits:
        members = rng.permutation(np.flatnonzero(bundled.target == digit))
        cut = len(members) // 3
        test.append(members[:cut])
        train.append(members[cut:])
    drawings = (bundled.images / 16).astype(np.float32)
    return drawings, bundled.target, (np.concatenate(train), np.concatenate(test))


def _canvases(sizes: np.ndarray, background: str, noise: float, rng: np.random.Generator) -> Any:
    """Return the backgrounds, in one array if all sizes are equal."""
    images = []
    for size in sizes.tolist():
        image = rng.standard_normal(size, dtype=np.float32)
        if background == "texture":
            image = gaussian_filter(image, rng.uniform(0.5, 3.0, 2), mode="wrap")
            image /= image.std()
        images.append(noise * image)
    return np.stack(images) if (sizes == sizes[0]).all() else images


def _values(images: Any, corners: np.ndarray, coefficient: np.ndarray) -> np.ndarray:
    places = zip(images, corners, strict=True)
    squares = [image[i : i + SIDE, j : j + SIDE] for image, (i, j) in places]
    return np.tensordot(np.stack(squares), coefficient)
