"""Where the patches of an image lie, in the paper's order: down the first column of blocks first.

Patch ``(j, l)`` (from 0) begins at pixel ``(j·s₁, l·s₂)`` and is row ``l·p₁ + j`` of the sample.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

PADDINGS = ("error", "crop", "edge", "zero")


@dataclass(frozen=True)
class Grid:
    """Patches of ``patch`` pixels every ``stride`` pixels, and what happens at the far edges."""

    patch: tuple[int, int]
    stride: tuple[int, int]
    padding: str

    @classmethod
    def checked(cls, patch: Any, stride: Any, padding: str) -> Grid:
        """Check a user's values; an int holds for both directions, and the stride may be None."""
        sides = _pair(patch, "patch")
        steps = sides if stride is None else _pair(stride, "stride")
        if any(step > side for step, side in zip(steps, sides, strict=True)):
            raise ValueError(
                f"stride {steps} is larger than patch {sides}: pixels between patches would be "
                "lost; choose a stride of at most the patch."
            )
        if padding not in PADDINGS:
            raise ValueError(f"padding={padding!r} is unknown: choose one of {PADDINGS}.")
        return cls(sides, steps, padding)

    def counts(self, size: tuple[int, int], name: str = "the image") -> tuple[int, int]:
        """Count the patches down and across, the paper's p₁ and p₂."""
        pairs = list(zip(size, self.patch, self.stride, strict=True))
        if any(length < side for length, side, _ in pairs):
            raise ValueError(
                f"{name} has {size[0]}×{size[1]} pixels, less than one patch of "
                f"{self.patch[0]}×{self.patch[1]}: choose a smaller patch or drop the image."
            )
        if self.padding == "error" and any((length - d) % step for length, d, step in pairs):
            raise ValueError(
                f"{name} has {size[0]}×{size[1]} pixels, which patches of {self.patch[0]}×"
                f"{self.patch[1]} with stride {self.stride[0]}×{self.stride[1]} do not fill: pass "
                'padding="crop" to leave the rest out, "edge" or "zero" to extend the image.'
            )
        extra = 0 if self.padding in ("error", "crop") else 1
        down, across = ((n - d + extra * (s - 1)) // s + 1 for n, d, s in pairs)
        return down, across

    def covered(self, size: tuple[int, int], name: str = "the image") -> tuple[int, int]:
        """Return height and width that the patches cover together: cropped or extended."""
        counts = self.counts(size, name)
        triples = zip(counts, self.stride, self.patch, strict=True)
        down, across = ((count - 1) * step + side for count, step, side in triples)
        return down, across

    def corners(self, size: tuple[int, int], name: str = "the image") -> np.ndarray:
        """Return the top left pixel of every patch in the order of rows, (p₁p₂, 2)."""
        p1, p2 = self.counts(size, name)
        across, down = np.meshgrid(np.arange(p2), np.arange(p1), indexing="ij")
        return np.stack([down.ravel(), across.ravel()], axis=1) * self.stride

    def windows(self, images: np.ndarray) -> np.ndarray:
        """View every patch, (n, p₂, p₁, C, d₂, d₁), of images (n, H, W, C) that fit."""
        view = np.lib.stride_tricks.sliding_window_view(images, self.patch, axis=(1, 2))
        view = view[:, :: self.stride[0], :: self.stride[1]]  # (n, p₁, p₂, C, d₁, d₂)
        return view.transpose(0, 2, 1, 3, 5, 4)

    def fit_image(self, images: np.ndarray, name: str = "the image") -> np.ndarray:
        """Crop or extend images (n, H, W, C) to what the patches cover."""
        size = images.shape[1:3]
        covered = self.covered(size, name)
        images = images[:, : covered[0], : covered[1]]
        missing = [max(c - n, 0) for c, n in zip(covered, size, strict=True)]
        if not any(missing):
            return images
        widths = [(0, 0), (0, missing[0]), (0, missing[1]), (0, 0)]
        return np.pad(images, widths, mode="edge" if self.padding == "edge" else "constant")


def _pair(value: Any, what: str) -> tuple[int, int]:
    try:
        sides = tuple(operator.index(v) for v in np.broadcast_to(value, 2))
    except (TypeError, ValueError):
        raise ValueError(f"{what}={value!r} must be one or two whole numbers of pixels.") from None
    if min(sides) < 1:
        raise ValueError(f"{what}={value!r} must be at least one pixel in both directions.")
    return sides[0], sides[1]
