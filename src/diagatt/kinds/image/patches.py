"""Images to rows, one row per patch, and weights of rows back onto pixels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set, ValuesView
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from diagatt.coerce import offsets_from
from diagatt.coerce.alignment import index_of
from diagatt.kinds.image.grid import PADDINGS, Grid
from diagatt.kinds.image.reading import (
    CHANNELS,
    MAX_PIXELS,
    as_source,
    check_finite_pixels,
    described,
    image_size,
    read_image,
    refuse_mask,
)
from diagatt.parameters import Rule, check, count, one_of, optional
from diagatt.ragged import RaggedRows


def _sides() -> Rule:
    """Allow a whole number of pixels, or two: down and right."""
    one = count(1)

    def accepts(value: Any) -> bool:
        items = value.tolist() if isinstance(value, np.ndarray) else value
        pair = isinstance(items, list | tuple) and len(items) == 2
        return all(map(one.accepts, items)) if pair else one.accepts(items)

    return Rule("one or two whole numbers of pixels, at least one", accepts)


# Parameters of PatchRows, which estimators of images have as well.
PATCH_RULES: Mapping[str, Rule] = {
    "patch": _sides(),
    "stride": optional(_sides()),
    "padding": one_of(*PADDINGS),
    "channels": one_of(*CHANNELS),
    "max_pixels": count(1, 2**63 - 1),
}


@dataclass(eq=False, repr=False)
class PatchRows(TransformerMixin, BaseEstimator):
    r"""Turn every patch of an image into one row, the map R of the paper's Example 2.

    .. math:: R(X̃) = [\mathrm{vec}(X̃_{11}), …, \mathrm{vec}(X̃_{p_1 1}), …,
              \mathrm{vec}(X̃_{p_1 p_2})]^⊤

    Blocks go down the first column of blocks, then down the second; pixels of a block likewise
    (vec is column-wise). Colour channels of a block stand one after the other. Values stay as
    they are: floats keep their type, 8- and 16-bit integers become float32.

    Parameters
    ----------
    patch : (int, int) or int
        Height and width d₁, d₂ of a patch.
    stride : (int, int) or int, optional
        Steps down and right from patch to patch; by default the patch itself, so that patches
        tile the image. Smaller steps make patches overlap.
    padding : {"error", "crop", "edge", "zero"}
        If patches do not fill the image exactly: refuse it, leave out the last lines and columns,
        or extend it at the bottom and on the right by its last line and column or by zeros. An
        image smaller than one patch is always refused.
    channels : {None, "grey", "colour"}
        Whether images keep their channels (None; all must have the same) or are turned into one
        or three.
    max_pixels : int
        Larger images are refused, files before they are decoded.

    Attributes
    ----------
    n_channels_ : int
        Channels of the images, 1 for grey.
    n_features_out_ : int
        d₁ d₂ times channels, the paper's d.

    Examples
    --------
    >>> import numpy as np
    >>> patches = PatchRows(2)
    >>> patches.fit_transform([np.arange(8).reshape(2, 4)])[0]
    array([[0., 4., 1., 5.],
           [2., 6., 3., 7.]])
    >>> patches.inverse([[0.25, 0.75]], [(2, 4)])[0]
    array([[0.25, 0.25, 0.75, 0.75],
           [0.25, 0.25, 0.75, 0.75]])
    """

    patch: Any = (8, 8)
    stride: Any = None
    _: KW_ONLY
    padding: str = "error"
    channels: str | None = None
    max_pixels: int = MAX_PIXELS

    rules: ClassVar[Mapping[str, Rule]] = PATCH_RULES

    def fit(self, images: Any, y: Any = None) -> Self:
        """Learn the count of channels from the first image.

        Parameters
        ----------
        images : array of shape (n, H, W) or (n, H, W, C), or sequence of arrays, paths, PIL images
        y : ignored
        """
        check(self)
        first = _collection(images)[0]
        pixels = read_image(first, self.channels, self.max_pixels, "image 0")
        return self.set_channels(1 if pixels.ndim == 2 else pixels.shape[2])

    def set_channels(self, n_channels: int) -> Self:
        """Fit without images: the count of their channels is all there is to learn."""
        d1, d2 = self._grid.patch
        self.n_channels_, self.n_features_out_ = n_channels, d1 * d2 * n_channels
        return self

    def transform(self, images: Any) -> RaggedRows:
        """Return the rows of all images.

        A whole (n, H, W) or (n, H, W, C) array is not copied if its memory is in the order of
        rows already: patches of full height on Fortran-ordered images, or 1×1 patches of
        transposed ones.
        """
        check_is_fitted(self)
        ids, images = index_of(images), _collection(images)
        whole = isinstance(images, np.ndarray) and images.dtype != object and self.channels is None
        return self._rows_of_array(images) if whole else self._rows_of_sequence(images, ids)

    def inverse(self, weights: Any, images: Any) -> list[np.ndarray]:
        r"""Return heat maps: the weights of patches on the original pixels.

        A pixel's heat is the sum of the weights of the patches that hold it; for attention that
        is the probability that the pixel lies in the patch of interest. For patches that tile the
        image and U = unvec(κ) the map is ``U ⊗ 1``. Pixels that were cropped away have heat 0.

        Parameters
        ----------
        weights : sequence of arrays of shape (p_i,) or (p_i, n_heads)
            Such as `attention` of an estimator returns.
        images : the images, or their (height, width)
        """
        if len(weights) != len(images):
            raise ValueError(f"{len(weights)} sets of weights for {len(images)} images.")
        pairs = zip(weights, images, strict=True)
        return [self._heat(np.asarray(w), x, i) for i, (w, x) in enumerate(pairs)]

    def corners(self, size: tuple[int, int]) -> np.ndarray:
        """Return the top left pixel of every row's patch, (p, 2), in an image of this size."""
        return self._grid.corners(size)

    @property
    def patch_size(self) -> tuple[int, int]:
        """Height and width of a patch."""
        return self._grid.patch

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return names ``pixel_0_0, pixel_1_0, …`` (line, column, channel if there are more)."""
        check_is_fitted(self)
        d1, d2 = self._grid.patch
        ends = [""] if self.n_channels_ == 1 else [f"_{c}" for c in range(self.n_channels_)]
        names = [f"pixel_{a}_{b}{end}" for end in ends for b in range(d2) for a in range(d1)]
        return np.array(names, dtype=object)

    @property
    def _grid(self) -> Grid:
        return Grid.checked(self.patch, self.stride, self.padding)

    def _rows_of_array(self, images: np.ndarray) -> RaggedRows:
        pixels = images if images.ndim == 4 else images[..., None]  # (n, H, W, C)
        read_image(pixels[0], None, self.max_pixels, "image 0")
        self._check_channels(pixels.shape[3], "image 0")
        for i, image in enumerate(pixels):
            check_finite_pixels(image, f"image {i}")
        grid = self._grid
        rows_each = int(np.prod(grid.counts(pixels.shape[1:3], "image 0")))
        # The reshape copies only if the strides ask for it.
        values = grid.windows(grid.fit_image(pixels)).reshape(-1, self.n_features_out_)
        dtype = np.result_type(np.float32, values.dtype)
        offsets = np.arange(len(pixels) + 1) * rows_each
        return RaggedRows(values.astype(dtype, copy=False), offsets)

    def _rows_of_sequence(self, images: Sequence, ids: list[str] | None) -> RaggedRows:
        grid = self._grid
        images = [as_source(image, f"image {i}") for i, image in enumerate(images)]
        names = [described(image, f"image {i}") for i, image in enumerate(images)]
        limit, counts = self.max_pixels, []
        for i, image in enumerate(images):
            size = image_size(image, f"image {i}", limit)
            counts.append(int(np.prod(grid.counts(size, names[i]))))
        offsets = offsets_from(counts)
        types = {np.dtype(getattr(image, "dtype", np.uint8)) for image in images}
        dtype = np.result_type(np.float32, *types)
        values = np.empty((offsets[-1], self.n_features_out_), dtype)
        for i, (image, name) in enumerate(zip(images, names, strict=True)):
            pixels = read_image(image, self.channels, limit, f"image {i}")
            pixels = pixels[..., None] if pixels.ndim == 2 else pixels
            self._check_channels(pixels.shape[2], name)
            check_finite_pixels(pixels, name)
            windows = grid.windows(grid.fit_image(pixels[None], name))
            values[offsets[i] : offsets[i + 1]].reshape(windows.shape)[...] = windows
        return RaggedRows(values, offsets, sample_ids=ids)

    def _check_channels(self, found: int, name: str) -> None:
        if found != self.n_channels_:
            raise ValueError(
                f"{name} has {found} channels, the first training image has {self.n_channels_}: "
                'pass channels="grey" or channels="colour" to turn all images into one kind.'
            )

    def _heat(self, weights: np.ndarray, image: Any, number: int) -> np.ndarray:
        size = image if _is_size(image) else image_size(image, f"image {number}")
        name, grid = described(image, f"image {number}"), self._grid
        p1, p2 = grid.counts(size, name)
        if weights.ndim not in (1, 2) or len(weights) != p1 * p2:
            raise ValueError(
                f"{name} has {p1 * p2} patches, its weights have shape {weights.shape}."
            )
        U = weights.reshape(p2, p1, *weights.shape[1:]).swapaxes(0, 1)  # (p₁, p₂[, R])
        shape = np.maximum(grid.covered(size, name), size)
        heat = np.zeros((*shape, *weights.shape[1:]), np.result_type(np.float32, weights))
        (d1, d2), (s1, s2) = grid.patch, grid.stride
        for a, b in np.ndindex(d1, d2):  # pixel (a, b) of all patches at once
            heat[a : a + s1 * (p1 - 1) + 1 : s1, b : b + s2 * (p2 - 1) + 1 : s2] += U
        return heat[: size[0], : size[1]]


def columns_as_rows(images: Any) -> RaggedRows:
    """Turn every column of an image into one row, to find the column that matters.

    This is R with patches of full height and one pixel's width. Fortran-ordered images, or
    transposed views of an (n, W, H) array, are not copied.

    Parameters
    ----------
    images : array of shape (n, H, W), or sequence of (H, W_i) arrays, paths or PIL images
        All of one height.

    Examples
    --------
    >>> columns_as_rows([np.array([[1, 2, 3], [4, 5, 6]])])[0]
    array([[1., 4.],
           [2., 5.],
           [3., 6.]])
    """
    images = _collection(images)
    height = image_size(images[0], "image 0")[0]
    for i, image in enumerate(images):
        found = image_size(image, f"image {i}")[0]
        if found != height:
            raise ValueError(
                f"{described(image, f'image {i}')} has {found} lines, image 0 has {height}: "
                "columns become rows only if they all have one length; crop or scale the images."
            )
    return PatchRows((height, 1)).fit_transform(images)


def _collection(images: Any) -> Any:
    """Return images as an array of three or four axes, or as a list."""
    if np.ma.isMaskedArray(images):
        refuse_mask(images, "the array of images")
    if isinstance(images, np.ndarray) and images.dtype != object:
        if images.ndim not in (3, 4):
            raise ValueError(
                f"images have shape {images.shape}: pass (n, height, width) or (n, height, width, "
                "channels); a single image as a list, [image]."
            )
    elif isinstance(images, str | bytes | Set | ValuesView) or not hasattr(images, "__len__"):
        raise TypeError(
            f"images must be an array or a sequence of images, got {type(images).__name__}; a "
            "single image as a list, [image]."
        )
    if len(images) == 0:
        raise ValueError("there are no images: pass at least one.")
    return images if isinstance(images, np.ndarray) else list(images)


def _is_size(image: Any) -> bool:
    return isinstance(image, tuple) and all(isinstance(n, int | np.integer) for n in image)
