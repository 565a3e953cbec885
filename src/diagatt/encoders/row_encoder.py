"""A fitted encoder: a transformer of scikit-learn as its arrays, so that a model file holds it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import clone

from diagatt.encoders.principal import Principal
from diagatt.encoders.steps import STEPS, Affine, Kernel, Step, Waves
from diagatt.parameters import shown

BLOCK = 65536  # rows that are encoded in one go


class RowEncoder:
    """A chain of steps from rows to the rows that the model sees.

    Parameters
    ----------
    steps : list of Step
    other : fitted transformer, optional
        A transformer that is unknown here, instead of steps; it cannot be saved.
    """

    def __init__(self, steps: Sequence[Step], other: Any = None) -> None:
        self.steps, self.other = list(steps), other
        for first, second in zip(self.steps, self.steps[1:], strict=False):
            if first.n_out != second.n_in:
                raise ValueError(
                    f"a step of the encoder gives {first.n_out} features, the next takes "
                    f"{second.n_in}"
                )

    def __call__(self, values: Any) -> np.ndarray:
        """Return encoded rows in the type of the rows, (N, d) → (N, d')."""
        kind = np.float32 if values.dtype == np.float32 else np.float64
        parts = [
            self._encoded(values[start : start + BLOCK]).astype(kind, copy=False)
            for start in range(0, values.shape[0], BLOCK)
        ]
        return np.ascontiguousarray(parts[0] if len(parts) == 1 else np.concatenate(parts))

    def _encoded(self, rows: Any) -> np.ndarray:
        if self.other is not None:
            found = self.other.transform(rows)
            return found.toarray() if hasattr(found, "toarray") else np.asarray(found)
        for step in self.steps:
            rows = step(rows)
        return rows

    # ------------------------------------------------------------------ files

    def to_document(self) -> tuple[dict[str, np.ndarray], list[str]]:
        """Return arrays by name, and the kinds of the steps."""
        if self.other is not None:
            label = getattr(self.other, "label", type(self.other).__name__)
            raise TypeError(
                f"the encoder {label} cannot be saved with the model: known are "
                f"{', '.join(KNOWN)} and pipelines of them, MLP, and a torch Sequential of Linear, "
                "ReLU, Tanh and GELU. Use one of these, or encode the rows before the fit."
            )
        arrays = {
            f"{k}.{name}": array
            for k, step in enumerate(self.steps)
            for name, array in step.arrays.items()
        }
        return arrays, [step.kind for step in self.steps]

    @classmethod
    def from_document(cls, arrays: Mapping[str, np.ndarray], kinds: Any) -> RowEncoder:
        """Return the encoder that `to_document` took apart; nonsense is a ValueError."""
        if not isinstance(kinds, list) or not kinds or len(kinds) > 100:
            raise ValueError(f"the steps of the encoder are {shown(kinds)}")
        steps = []
        for k, kind in enumerate(kinds):
            if not isinstance(kind, str) or kind not in STEPS:
                raise ValueError(f"the encoder has a step {shown(kind)}")
            prefix = f"{k}."
            own = {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
            steps.append(STEPS[kind].of(own))
        return cls(steps)


def fit_encoder(transformer: Any, values: Any) -> RowEncoder:
    """Fit a copy of a transformer to rows, and return it as its arrays where they are known.

    Parameters
    ----------
    transformer : transformer of scikit-learn, or None for `Principal`
    values : array or CSR matrix of shape (N, d)

    Examples
    --------
    >>> from sklearn.decomposition import PCA
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> encoder = fit_encoder(PCA(2), X)
    >>> bool(np.allclose(encoder(X), PCA(2).fit_transform(X)))
    True
    """
    fitted = clone(Principal() if transformer is None else transformer).fit(values)
    steps = steps_of(fitted)
    return RowEncoder([], fitted) if steps is None else RowEncoder(steps)


def steps_of(fitted: Any) -> list[Step] | None:
    """Return a fitted transformer as steps; None if it is not known here."""
    if is_pipeline(fitted):
        steps: list[Step] = []
        for _, part in fitted.steps:
            own = [] if part in ("passthrough", None) else steps_of(part)
            if own is None:
                return None
            steps += own
        return steps or None
    name = type(fitted).__name__
    if name not in KNOWN or type(fitted) is not class_named(name):
        return None
    made = KNOWN[name](fitted)
    return None if made is None else [made]


def is_pipeline(transformer: Any) -> bool:
    """Whether this is a pipeline of scikit-learn, and nothing derived from it."""
    from sklearn.pipeline import Pipeline  # here, because it takes 0.1 s

    return type(transformer) is Pipeline


def class_named(name: str) -> Any:
    """Return the class of a known transformer; few models have one, and importing takes 0.4 s."""
    return Principal if name == "Principal" else getattr(import_module(_HOMES[name]), name)


def _affine(shift: Any, matrix: Any) -> Affine:
    return Affine(shift=np.asarray(shift, float), matrix=np.asarray(matrix, float))


def _of_standard(fitted: Any) -> Step:
    zero = np.zeros(fitted.n_features_in_)
    scale = zero + 1 if fitted.scale_ is None else fitted.scale_
    return _affine(fitted.mean_ if fitted.with_mean else zero, 1 / scale)


def _of_robust(fitted: Any) -> Step:
    zero = np.zeros(fitted.n_features_in_)
    shift = zero if getattr(fitted, "center_", None) is None else fitted.center_
    scale = zero + 1 if getattr(fitted, "scale_", None) is None else fitted.scale_
    return _affine(shift, 1 / scale)


def _of_range(fitted: Any) -> Step | None:
    if fitted.clip:
        return None
    return _affine(-fitted.min_ / fitted.scale_, fitted.scale_)


def _of_pca(fitted: Any) -> Step:
    matrix = fitted.components_.T
    if fitted.whiten:
        matrix = matrix / np.sqrt(np.maximum(fitted.explained_variance_, np.finfo(float).eps))
    return _affine(fitted.mean_, matrix)


def _of_nystroem(fitted: Any) -> Step | None:
    if fitted.kernel != "rbf" or fitted.kernel_params:
        return None
    gamma = 1 / fitted.n_features_in_ if fitted.gamma is None else fitted.gamma
    components = fitted.components_
    components = components.toarray() if hasattr(components, "toarray") else components
    arrays = np.asarray(components, float), np.asarray(fitted.normalization_, float)
    return Kernel(components=arrays[0], normalization=arrays[1], gamma=np.asarray(float(gamma)))


#: Transformers that a model file can hold, besides pipelines of them, and what makes steps of them.
KNOWN: dict[str, Callable[[Any], Step | None]] = {
    "Principal": lambda f: _affine(f.mean_, f.components_),
    "StandardScaler": _of_standard,
    "RobustScaler": _of_robust,
    "MinMaxScaler": _of_range,
    "MaxAbsScaler": lambda f: _affine(np.zeros(f.n_features_in_), 1 / f.scale_),
    "PCA": _of_pca,
    "TruncatedSVD": lambda f: _affine(np.zeros(f.n_features_in_), f.components_.T),
    "Nystroem": _of_nystroem,
    "RBFSampler": lambda f: Waves(
        weights=np.asarray(f.random_weights_, float), phases=np.asarray(f.random_offset_, float)
    ),
}
_HOMES = {
    **dict.fromkeys(("PCA", "TruncatedSVD"), "sklearn.decomposition"),
    **dict.fromkeys(("Nystroem", "RBFSampler"), "sklearn.kernel_approximation"),
    **{name: "sklearn.preprocessing" for name in KNOWN if name.endswith("Scaler")},
}
