"""From images to predictions in one estimator: patches, attention, and back onto pixels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from diagatt.estimators import DiagAttClassifier, DiagAttRegressor
from diagatt.estimators.routing import Scored
from diagatt.kinds.certainty import inner_has
from diagatt.kinds.estimator import KindClassifier, KindEstimator
from diagatt.kinds.image.kronecker import coefficient_matrices
from diagatt.kinds.image.patches import PATCH_RULES, PatchRows
from diagatt.kinds.image.reading import MAX_PIXELS, image_size
from diagatt.parameters import Rule, at_least, count, positive, shown
from diagatt.ragged import RaggedRows


@dataclass(frozen=True)
class PatchedImages:
    """Images with the rows of their patches, and where these lie."""

    images: Any
    rows: RaggedRows
    patches: PatchRows

    @property
    def side(self) -> tuple[int, int]:
        """Height and width of a patch."""
        return self.patches.patch_size

    def corners(self) -> list[np.ndarray]:
        """Return the top left pixel of every row's patch, one (p_i, 2) array per image."""
        sizes = [image_size(image, f"image {i}") for i, image in enumerate(self.images)]
        return [self.patches.corners(size) for size in sizes]

    def boxes(self, located: np.ndarray) -> np.ndarray:
        """Return located rows (n, R) as boxes (n, R, 4): top, left, bottom, right; -1 if none."""
        result = np.full((*located.shape, 4), -1)
        for box, corners, rows in zip(result, self.corners(), located, strict=True):
            there = rows >= 0
            box[there] = np.hstack([corners[rows[there]], corners[rows[there]] + self.side])
        return result


@dataclass(eq=False, repr=False)
class _ImageEstimator(KindEstimator):
    """What the classifier and the regressor share."""

    patch: Any = (8, 8)
    stride: Any = None
    _: KW_ONLY
    padding: str = "error"
    channels: str | None = None
    max_pixels: int = MAX_PIXELS
    estimator: Any = None
    random_state: Any = None

    rules: ClassVar[Mapping[str, Rule]] = PATCH_RULES
    kind = "image"
    _inner: ClassVar[type]

    def prepare(self, inputs: Any) -> PatchedImages:
        """Return the images with their patches, minus `pixel_mean_`, over `pixel_scale_`."""
        check_is_fitted(self)
        rows = self._standardized(self.patches_.transform(inputs))
        return PatchedImages(inputs, rows, self.patches_)

    def _fit_rows(self, inputs: Any) -> RaggedRows:
        self.patches_ = self._new_patches().fit(inputs)
        rows = self.patches_.transform(inputs)
        self.pixel_mean_, self.pixel_scale_ = _mean_and_scale(rows.values)
        return self._standardized(rows)

    def _default_estimator(self, n_samples: int) -> Any:
        return self._inner()

    def locate(self, images: Any) -> np.ndarray:
        """Return the row of the patch of interest of each head, (n, n_heads)."""
        rows = self.rows(images)
        return self.estimator_.locate(rows)

    def boxes(self, images: Any) -> np.ndarray:
        """Return the patch of interest of each head, (n, n_heads, 4): top, left, bottom, right.

        ``image[top:bottom, left:right]`` is the patch; -1 where an estimator names fewer rows.
        """
        prepared = self.prepare(images)
        return prepared.boxes(self.estimator_.locate(prepared.rows))

    @inner_has("attention")
    def attention(self, images: Any) -> list[np.ndarray]:
        """Return attention weights of the patches, one (p_i, n_heads) array per image."""
        rows = self.rows(images)
        return self.estimator_.attention(rows)

    @inner_has("attention")
    def heatmap(self, images: Any) -> list[np.ndarray]:
        """Return the attention on the original pixels, one (H_i, W_i, n_heads) array per image.

        It is the probability that a pixel lies in the head's patch of interest; see
        `PatchRows.inverse`.
        """
        return self.patches_.inverse(self.attention(images), images)

    def coefficient_matrices(self) -> np.ndarray:
        """Return V_k of the paper's equation skpd, for pixels as they come.

        The shape is (n_restarts · n_heads, d₁, d₂), with an axis of classes after the first if
        there are more than two, and of channels at the end for colour.
        """
        check_is_fitted(self)
        if not isinstance(self.estimator_, DiagAttClassifier | DiagAttRegressor):
            raise TypeError(f"{type(self.estimator_).__name__} has no value vector per head.")
        return coefficient_matrices(
            self.estimator_.value_ / self.pixel_scale_, self.patches_.patch_size
        )

    def _rows_document(self) -> dict[str, Any]:
        return {
            "n_channels": self.patches_.n_channels_,
            "pixel_mean": self.pixel_mean_,
            "pixel_scale": self.pixel_scale_,
        }

    def _restore_rows(self, document: Mapping[str, Any], path: Any) -> None:
        rules = {"n_channels": count(1), "pixel_mean": at_least(-np.inf), "pixel_scale": positive()}
        if set(document) != set(rules):
            raise ValueError(f"its facts about pixels are {shown(sorted(document))}")
        for name, rule in rules.items():
            if not rule.accepts(document[name]):
                raise ValueError(f"{name} must be {rule.allowed}, got {shown(document[name])}")
        self.pixel_mean_, self.pixel_scale_ = document["pixel_mean"], document["pixel_scale"]
        self.patches_ = self._new_patches().set_channels(document["n_channels"])

    def _new_patches(self) -> PatchRows:
        names = ("patch", "stride", "padding", "channels", "max_pixels")
        return PatchRows(**{name: getattr(self, name) for name in names})

    def _standardized(self, rows: RaggedRows) -> RaggedRows:
        """Shift and scale all pixels alike, which changes no model but lets 0…255 train well."""
        mean, scale = (rows.dtype.type(v) for v in (self.pixel_mean_, self.pixel_scale_))
        values = rows.values - mean
        values /= scale
        return rows.with_values(values)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags


class ImageClassifier(KindClassifier, _ImageEstimator):
    """Classify images by the one patch that matters, and show which it is.

    Parameters
    ----------
    patch, stride, padding, channels, max_pixels
        As in `PatchRows`.
    estimator : estimator of samples of rows, optional
        `DiagAttClassifier` by default; any classifier of this library.
    random_state : int, RandomState or None
        Passed to the estimator unless None.

    Attributes
    ----------
    estimator_ : the fitted estimator
    patches_ : PatchRows
    pixel_mean_, pixel_scale_ : float
        Mean and standard deviation of all training pixels, taken out before the estimator.

    Examples
    --------
    >>> from diagatt.datasets.canvas import digit_canvas
    >>> train, test = digit_canvas(300, 3, size=24, seed=0)
    >>> quick = DiagAttClassifier(solver="likelihood")
    >>> model = ImageClassifier((8, 8), estimator=quick, random_state=0)
    >>> model = model.fit(train.images, train.y)
    >>> model.locate(test.images).ravel().tolist() == [int(t[0]) for t in test.true_rows(
    ...     model.patches_)]
    True
    >>> model.heatmap(test.images)[0].shape
    (24, 24, 1)
    """

    _inner = DiagAttClassifier


class ImageRegressor(Scored, RegressorMixin, _ImageEstimator):
    """Predict a number from the one patch that drives it, and show which it is.

    Parameters
    ----------
    patch, stride, padding, channels, max_pixels, estimator, random_state
        As in `ImageClassifier`, with `DiagAttRegressor` by default.

    Attributes
    ----------
    estimator_, patches_, pixel_mean_, pixel_scale_
        As in `ImageClassifier`.

    Examples
    --------
    >>> from diagatt import DiagAttRegressor
    >>> from diagatt.datasets.canvas import digit_canvas
    >>> train, test = digit_canvas(400, 100, task="regression", size=24, seed=0)
    >>> quick = DiagAttRegressor(solver="likelihood")
    >>> model = ImageRegressor((8, 8), estimator=quick, random_state=0).fit(train.images, train.y)
    >>> bool(model.score(test.images, test.y) > 0.9)
    True
    """

    _inner = DiagAttRegressor


def _mean_and_scale(values: np.ndarray) -> tuple[float, float]:
    """Return mean and standard deviation of all pixels; scale 1 if all are equal."""
    mean = float(values.mean(dtype=np.float64))
    scale = float(values.std(dtype=np.float64))
    return mean, scale if scale > 1e-6 * abs(mean) else 1.0  # below that only rounding is left
