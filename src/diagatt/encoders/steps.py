"""Steps of an encoder: functions of rows that are a few arrays, which a model file can hold."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

#: Every kind of step by its name in files.
STEPS: dict[str, type[Step]] = {}


class Step(ABC):
    """A function of rows, (N, d) → (N, d'), made of float arrays.

    `names` are its arrays; `sizes` says how they fit together, or raises a ValueError.
    """

    kind: ClassVar[str]
    names: ClassVar[tuple[str, ...]]
    arrays: dict[str, np.ndarray]

    def __init_subclass__(cls) -> None:
        """Register the step by its name."""
        STEPS[cls.kind] = cls

    def __init__(self, **arrays: Any) -> None:
        if set(arrays) != set(self.names):
            raise ValueError(f"the step {self.kind} of the encoder has {sorted(arrays)}")
        self.arrays = {name: np.asarray(array) for name, array in arrays.items()}
        for name, array in self.arrays.items():
            if array.dtype.kind != "f" or not np.isfinite(array).all():
                raise ValueError(f"{name} of the encoder must hold finite floats")
        self.n_in, self.n_out = self.sizes(**{n: a.shape for n, a in self.arrays.items()})

    @abstractmethod
    def sizes(self, **shapes: tuple[int, ...]) -> tuple[int, int]:
        """Return d and d'; the arrays must have shapes that fit together."""

    @abstractmethod
    def __call__(self, rows: Any) -> np.ndarray:
        """Return encoded rows, in float64 or the type of the rows."""

    @classmethod
    def of(cls, arrays: Mapping[str, np.ndarray]) -> Step:
        """Return the step whose arrays these are."""
        return cls(**arrays)


class Affine(Step):
    """x ↦ (x − shift) M, where M is a matrix (d, d') or the diagonal of one (d,)."""

    kind = "affine"
    names = ("shift", "matrix")

    def sizes(self, **shapes: tuple[int, ...]) -> tuple[int, int]:  # noqa: D102
        shift, matrix = shapes["shift"], shapes["matrix"]
        if len(shift) != 1 or len(matrix) not in (1, 2) or matrix[0] != shift[0]:
            raise ValueError(f"an affine encoder has shift {shift} and matrix {matrix}")
        return shift[0], matrix[-1]

    def __call__(self, rows: Any) -> np.ndarray:
        """Return (x − shift) M; sparse rows are multiplied as they are."""
        shift, matrix = self.arrays["shift"], self.arrays["matrix"]
        if matrix.ndim == 1:
            rows = rows.toarray() if hasattr(rows, "toarray") else rows
            return (rows - shift) * matrix
        if hasattr(rows, "toarray"):
            moved = shift @ matrix
            matrix = matrix.astype(rows.dtype, copy=False)  # or the product would copy the rows
            return np.asarray(rows @ matrix) - moved.astype(rows.dtype)
        return (rows - shift) @ matrix


class Kernel(Step):
    """x ↦ k(x, C) N with the Gaussian kernel: Nyström's approximation."""

    kind = "kernel"
    names = ("components", "normalization", "gamma")

    def sizes(self, **shapes: tuple[int, ...]) -> tuple[int, int]:  # noqa: D102
        components, normalization = shapes["components"], shapes["normalization"]
        m = components[:1]
        if len(components) != 2 or normalization != m + m or shapes["gamma"] != ():
            raise ValueError(f"a kernel encoder has {components} and {normalization}")
        return components[1], components[0]

    def __call__(self, rows: Any) -> np.ndarray:
        """Return exp(−γ‖x − c‖²) of all components, normalized."""
        from sklearn.metrics.pairwise import rbf_kernel

        near = rbf_kernel(rows, self.arrays["components"], float(self.arrays["gamma"]))
        return near @ self.arrays["normalization"].T


class Waves(Step):
    """x ↦ √(2/m) cos(xW + b): random Fourier features of the Gaussian kernel."""

    kind = "waves"
    names = ("weights", "phases")

    def sizes(self, **shapes: tuple[int, ...]) -> tuple[int, int]:  # noqa: D102
        if len(shapes["weights"]) != 2 or shapes["phases"] != shapes["weights"][1:]:
            raise ValueError(f"an encoder of waves has {shapes['weights']} and {shapes['phases']}")
        d, m = shapes["weights"]
        return d, m

    def __call__(self, rows: Any) -> np.ndarray:
        """Return the cosines."""
        waves = np.asarray(rows @ self.arrays["weights"]) + self.arrays["phases"]
        return np.sqrt(2.0 / waves.shape[1]) * np.cos(waves)


class Dense(Step):
    """x ↦ σ(xA + b), a layer of a perceptron; σ is the identity here."""

    kind = "dense"
    names = ("weights", "bias")

    def sizes(self, **shapes: tuple[int, ...]) -> tuple[int, int]:  # noqa: D102
        weights, bias = shapes["weights"], shapes["bias"]
        if len(weights) != 2 or bias != weights[1:]:
            raise ValueError(f"a layer of an encoder has weights {weights} and bias {bias}")
        return weights[0], weights[1]

    def __call__(self, rows: Any) -> np.ndarray:
        """Return the layer's outputs."""
        return self.activated(np.asarray(rows @ self.arrays["weights"]) + self.arrays["bias"])

    def activated(self, z: np.ndarray) -> np.ndarray:
        """Return σ(z)."""
        return z


class Relu(Dense):
    """A layer with σ(z) = max(z, 0)."""

    kind = "relu"

    def activated(self, z: np.ndarray) -> np.ndarray:  # noqa: D102
        return np.maximum(z, 0)


class Tanh(Dense):
    """A layer with σ = tanh."""

    kind = "tanh"

    def activated(self, z: np.ndarray) -> np.ndarray:  # noqa: D102
        return np.tanh(z)


class Gelu(Dense):
    """A layer with σ(z) = z Φ(z)."""

    kind = "gelu"

    def activated(self, z: np.ndarray) -> np.ndarray:  # noqa: D102
        from scipy.special import ndtr

        return z * ndtr(z)
