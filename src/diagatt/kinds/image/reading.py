"""Images from arrays, files and Pillow, with limits: sizes are known before a pixel is decoded."""

from __future__ import annotations

import os
import struct
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

MAX_PIXELS = 50_000_000
CHANNELS = (None, "grey", "colour")

# Plain raster formats. Others that Pillow knows start programs (EPS) or render vectors (WMF).
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")

# ITU-R BT.601, the weights of Pillow's own conversion.
_LUMINANCE = np.array([0.299, 0.587, 0.114])
_KEPT_MODES = {"L", "I", "F", "I;16", "RGB", "RGBA"}
_MODE_OF = {"1": "L", "LA": "RGBA", "La": "RGBA", "PA": "RGBA", "RGBa": "RGBA"}
_ORIENTATION = 0x0112  # EXIF tag


def read_image(
    source: Any, channels: str | None = None, max_pixels: int = MAX_PIXELS, name: str = "the image"
) -> np.ndarray:
    """Return the pixels of one image, (H, W) or (H, W, C).

    Parameters
    ----------
    source : array of shape (H, W) or (H, W, C), path, or PIL image
        The first frame is read of a file with several; a camera's orientation mark is obeyed.
    channels : {None, "grey", "colour"}
        Whether channels are kept (None; palettes become colours) or turned into one or three.
    max_pixels : int
        A larger image is refused, a file before it is decoded.
    name : str
        Name of the image in error messages.

    Examples
    --------
    >>> read_image(np.ones((2, 2, 3)), "grey").shape
    (2, 2)
    >>> read_image(np.ones((2000, 3000)), max_pixels=1_000_000)
    Traceback (most recent call last):
    ValueError: the image has 2000×3000 pixels, more than max_pixels=1000000: ...
    """
    if channels not in CHANNELS:
        raise ValueError(f"channels={channels!r} is unknown: choose one of {CHANNELS}.")
    name = described(source, name)
    if _is_path(source):
        with _opened(source, name) as image:
            return _pixels(image, channels, max_pixels, name)
    if _is_pillow(source):
        return _pixels(source, channels, max_pixels, name)
    array = _checked_array(source, name)
    _check_size(array.shape[:2], max_pixels, name)
    return _with_channels(array, channels, name)


def image_size(
    source: Any, name: str = "the image", max_pixels: int | None = None
) -> tuple[int, int]:
    """Return height and width; of a file only the header is read. A larger image is refused.

    Examples
    --------
    >>> image_size(np.zeros((4, 6, 3)))
    (4, 6)
    """
    name = described(source, name)
    if _is_path(source):
        with _opened(source, name) as image:
            size = _upright_size(image)
    elif _is_pillow(source):
        size = _upright_size(source)
    else:
        size = _checked_array(source, name).shape[:2]
    _check_size(size, max_pixels, name)
    return size


def check_finite_pixels(pixels: np.ndarray, name: str) -> None:
    """Refuse NaN and infinity."""
    with np.errstate(over="ignore", invalid="ignore"):
        if pixels.dtype.kind != "f" or np.isfinite(pixels.sum()):  # one pass, no temporary
            return
    wrong = np.argwhere(~np.isfinite(pixels))
    if len(wrong):
        line, column = wrong[0][:2]
        kind = "NaN" if np.isnan(pixels[tuple(wrong[0])]) else "infinity"
        raise ValueError(
            f"{name} contains {kind} at pixel ({line}, {column}): repair the pixel or drop the "
            "image."
        )


def refuse_mask(pixels: Any, name: str) -> None:
    """Refuse masked pixels: the value behind a mask is not a pixel."""
    hidden = np.argwhere(np.ma.getmaskarray(pixels))
    if len(hidden):
        at = ", ".join(str(i) for i in hidden[0])
        raise ValueError(f"{name} is masked at ({at}): fill the pixel in, or drop the image.")


def as_source(source: Any, name: str) -> Any:
    """Return paths and PIL images as they are, everything else as an array."""
    return source if _is_path(source) or _is_pillow(source) else _checked_array(source, name)


def described(source: Any, name: str) -> str:
    """Return the image as error messages call it: its name, and its path if it is a file."""
    return f"{name} ({os.fspath(source)})" if _is_path(source) else name


def _is_path(source: Any) -> bool:
    return isinstance(source, str | os.PathLike)


def _is_pillow(source: Any) -> bool:
    return type(source).__module__.split(".")[0] == "PIL"


def _checked_array(source: Any, name: str) -> np.ndarray:
    try:
        array = np.asarray(source)
    except ValueError as error:
        raise ValueError(f"{name} is not an array of pixels: {error}.") from None
    if np.ma.isMaskedArray(source):
        refuse_mask(source, name)
    if array.dtype.kind not in "fiub":
        raise ValueError(
            f"{name} has dtype {array.dtype}: pass real numbers, a path, or a PIL image."
        )
    if array.ndim not in (2, 3):
        raise ValueError(
            f"{name} has shape {array.shape}: an image is (height, width) or (height, width, "
            "channels)."
        )
    if array.size == 0:
        raise ValueError(f"{name} has no pixels (shape {array.shape}): drop it.")
    return array


def _check_size(size: tuple[int, ...], max_pixels: int | None, name: str) -> None:
    if min(size) == 0:
        raise ValueError(f"{name} has no pixels ({size[0]}×{size[1]}): drop it.")
    if max_pixels is not None and size[0] * size[1] > max_pixels:
        raise ValueError(
            f"{name} has {size[0]}×{size[1]} pixels, more than max_pixels={max_pixels}: shrink "
            "it, or raise max_pixels if you trust it."
        )


@contextmanager
def _opened(path: Any, name: str) -> Iterator[Any]:
    """Open the file, header only; our limit replaces Pillow's own size warnings."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(
            'image files need Pillow: pip install "diagatt[images]", or pass arrays.'
        ) from error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        try:
            image = Image.open(path, formats=FORMATS)
        except FileNotFoundError:
            raise FileNotFoundError(f"{name} does not exist: check the path.") from None
        except Image.DecompressionBombError as error:
            raise ValueError(f"{name} is refused as a decompression bomb: {error}") from None
        except (OSError, SyntaxError, ValueError) as error:
            raise ValueError(
                f"{name} cannot be read as {', '.join(FORMATS)}: {error}; repair or drop it."
            ) from error
    with image:
        yield image


def _upright_size(image: Any) -> tuple[int, int]:
    width, height = image.size
    return (width, height) if _orientation(image) >= 5 else (height, width)


def _orientation(image: Any) -> int:
    """Return a camera's mark: 1 (upright) to 8; from 5 on lines and columns change places."""
    if image.format == "TIFF":
        return 1  # Pillow obeys it itself
    if image.format == "PNG" and "exif" not in image.info:
        return 1  # Pillow would decode the whole image to look for it behind the pixels
    try:
        mark = image.getexif().get(_ORIENTATION, 1)
    except (OSError, SyntaxError, ValueError, struct.error):
        return 1  # a damaged mark is ignored
    return mark if mark in range(1, 9) else 1


def _pixels(image: Any, channels: str | None, max_pixels: int, name: str) -> np.ndarray:
    from PIL import ImageOps

    _check_size(image.size[::-1], max_pixels, name)
    mode = image.mode if image.mode in _KEPT_MODES else _MODE_OF.get(image.mode, "RGB")
    if mode == "RGB" and image.mode == "P" and "transparency" in image.info:
        mode = "RGBA"
    orientation = _orientation(image)
    try:
        upright = image.convert(mode)
    except (OSError, SyntaxError, EOFError) as error:
        raise ValueError(f"{name} is damaged: {error}; repair or drop it.") from error
    if orientation > 1:
        upright = ImageOps.exif_transpose(upright)
    return _with_channels(np.asarray(upright), channels, name)


def _with_channels(array: np.ndarray, channels: str | None, name: str) -> np.ndarray:
    if channels is None:
        return array
    pixels = array[..., None] if array.ndim == 2 else array
    if pixels.shape[2] not in (1, 3, 4):
        raise ValueError(
            f"{name} has {pixels.shape[2]} channels: only 1 (grey), 3 (colour) or 4 (colour and "
            "opacity, which is left out) can be turned into grey or colour."
        )
    if channels == "colour":
        return pixels.repeat(3, axis=2) if pixels.shape[2] == 1 else pixels[..., :3]
    if pixels.shape[2] == 1:
        return pixels[..., 0]
    dtype = np.result_type(np.float32, pixels.dtype)
    return pixels[..., :3].astype(dtype, copy=False) @ _LUMINANCE.astype(dtype)
