"""From images to predictions in one estimator: patches, attention, and back onto pixels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from diagatt.estimators import DiagAttClassifier, DiagAttRegressor
from diagatt.images.kronecker import coefficient_matrices
from diagatt.images.patches import PatchRows
from diagatt.images.reading import MAX_PIXELS, image_size
from diagatt.pipelines import RowsPipeline, inner_has
from diagatt.ragged import RaggedRows

__all__ = ["ImageClassifier", "ImageRegressor"]


class _ImagePipeline(RowsPipeline):
    """Everything that regression and classification share."""

    _default: type

    def __init__(
        self,
        patch: Any = (8, 8),
        stride: Any = None,
        *,
        padding: str = "error",
        channels: str | None = None,
        max_pixels: int = MAX_PIXELS,
        estimator: Any = None,
        random_state: Any = None,
    ) -> None:
        self.patch = patch
        self.stride = stride
        self.padding = padding
        self.channels = channels
        self.max_pixels = max_pixels
        self.estimator = estimator
        self.random_state = random_state

    def fit(self, images: Any, y: Any, sample_weight: Any = None, covariates: Any = None) -> Self:
        """Fit to images and their responses.

        Parameters
        ----------
        images : array of shape (n, H, W) or (n, H, W, C), or sequence of arrays, paths, PIL images
        y : array of shape (n,)
        sample_weight : array of shape (n,), optional
        covariates : array of shape (n, q), optional
            If the estimator takes them.
        """
        return self._fit(images, y, sample_weight=sample_weight, covariates=covariates)

    def _fit_rows(self, inputs: Any) -> RaggedRows:
        self.patches_ = self._new_patches().fit(inputs)
        rows = self.patches_.transform(inputs)
        self.pixel_mean_ = float(rows.values.mean(dtype=np.float64))
        self.pixel_scale_ = float(rows.values.std(dtype=np.float64)) or 1.0
        return self._standardized(rows)

    def _default_estimator(self, n_samples: int) -> Any:
        return self._default()

    def rows(self, inputs: Any) -> RaggedRows:
        """Rows as the estimator sees them: patches, minus `pixel_mean_`, over `pixel_scale_`."""
        check_is_fitted(self)
        return self._standardized(self.patches_.transform(inputs))

    def predict(self, images: Any, covariates: Any = None) -> np.ndarray:
        """Predicted responses or classes, (n,)."""
        return self._predict("predict", images, covariates)

    def locate(self, images: Any) -> np.ndarray:
        """Row of the patch of interest of each head, (n, n_heads); see `boxes` for pixels."""
        rows = self.rows(images)
        return self.estimator_.locate(rows)

    def boxes(self, images: Any) -> np.ndarray:
        """Patch of interest of each head in pixels, (n, n_heads, 4): top, left, bottom, right.

        Bottom and right are exclusive: ``image[top:bottom, left:right]`` is the patch. -1 where
        an estimator names fewer rows.
        """
        located = self.locate(images)
        result = np.full((*located.shape, 4), -1)
        for i, (image, rows) in enumerate(zip(images, located, strict=True)):
            corners = self.patches_.corners(image_size(image, f"image {i}"))
            there = rows >= 0
            result[i, there, :2] = corners[rows[there]]
            result[i, there, 2:] = corners[rows[there]] + self.patches_.patch_size
        return result

    @inner_has("attention")
    def attention(self, images: Any) -> list[np.ndarray]:
        """Attention weights of the patches, one (p_i, n_heads) array an image."""
        rows = self.rows(images)
        return self.estimator_.attention(rows)

    @inner_has("attention")
    def heatmap(self, images: Any) -> list[np.ndarray]:
        """Attention on the original pixels, one (H_i, W_i, n_heads) array an image.

        The probability that the pixel lies in the head's patch of interest; see
        `PatchRows.inverse`.
        """
        return self.patches_.inverse(self.attention(images), images)

    def coefficient_matrices(self) -> np.ndarray:
        """V_k of the paper's equation skpd, for pixels as they come.

        (n_restarts · n_heads, d₁, d₂), with an axis of classes after the first if there are more
        than two, and of channels at the end for colour.
        """
        check_is_fitted(self)
        if not isinstance(self.estimator_, DiagAttClassifier | DiagAttRegressor):
            raise TypeError(f"{type(self.estimator_).__name__} has no value vector a head.")
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
        self.pixel_mean_, self.pixel_scale_ = document["pixel_mean"], document["pixel_scale"]
        self.patches_ = self._new_patches().set_channels(document["n_channels"])

    def _new_patches(self) -> PatchRows:
        return PatchRows(
            self.patch,
            self.stride,
            padding=self.padding,
            channels=self.channels,
            max_pixels=self.max_pixels,
        )

    def _standardized(self, rows: RaggedRows) -> RaggedRows:
        """Two numbers for all pixels, so that the model's structure stays and 0…255 trains well."""
        mean, scale = (rows.dtype.type(v) for v in (self.pixel_mean_, self.pixel_scale_))
        values = rows.values - mean
        values /= scale
        return rows.with_values(values)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags


class ImageClassifier(ClassifierMixin, _ImagePipeline):
    """Classify images by the one patch that matters, and show which it is.

    Parameters
    ----------
    patch, stride, padding, channels, max_pixels
        As in `PatchRows`.
    estimator : estimator of samples of rows, optional
        `DiagAttClassifier` by default; any classifier of this library.
    random_state : int, RandomState or None
        Handed on to the estimator unless None.

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
    >>> model = ImageClassifier((8, 8), random_state=0).fit(train.images, train.y)
    >>> model.locate(test.images).ravel().tolist() == [int(t[0]) for t in test.true_rows(
    ...     model.patches_)]
    True
    >>> model.heatmap(test.images)[0].shape
    (24, 24, 1)
    """

    _default = DiagAttClassifier

    @property
    def classes_(self) -> np.ndarray:
        """Class labels, in the order of `predict_proba`."""
        return self.estimator_.classes_

    def predict_proba(self, images: Any, covariates: Any = None) -> np.ndarray:
        """Class probabilities, (n, n_classes)."""
        return self._predict("predict_proba", images, covariates)

    def decision_function(self, images: Any, covariates: Any = None) -> np.ndarray:
        """Linear predictors: (n,) for two classes, else (n, n_classes)."""
        return self._predict("decision_function", images, covariates)


class ImageRegressor(RegressorMixin, _ImagePipeline):
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

    _default = DiagAttRegressor


def _mean_and_scale(values: np.ndarray) -> tuple[float, float]:
    """Mean and standard deviation of all pixels, in blocks; scale 1 if all are equal."""
    blocks = [slice(start, start + 8192) for start in range(0, len(values), 8192)]
    mean = sum(float(values[b].sum(dtype=np.float64)) for b in blocks) / values.size
    squares = sum(float(np.square(values[b] - mean, dtype=np.float64).sum()) for b in blocks)
    scale = (squares / values.size) ** 0.5
    return mean, scale if scale > 1e-6 * abs(mean) else 1.0  # below that only rounding is left
