"""The contestants of the default: combinations of row map, objective and penalties."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from diagatt.families import Family
from diagatt.rowmaps import MOST_FULL
from diagatt.solvers.auto.many import Penalties
from diagatt.solvers.base import Model, Solver
from diagatt.solvers.gradient import Gradient
from diagatt.solvers.likelihood import Likelihood
from diagatt.solvers.mixture import Mixture
from diagatt.solvers.uniform import Uniform

LINEAR = math.inf  # penalty of W under which a score is linear
LARGE_RIDGE = 1e6  # stands for it where solvers need a number


class Extreme(NamedTuple):
    """The row of a sample in which one feature is largest or smallest."""

    feature: int  # of the original rows
    column: int  # of the mapped rows
    sign: int  # 1 for the largest entry, −1 for the smallest

    def __str__(self) -> str:
        return f"{'largest' if self.sign > 0 else 'smallest'} x{self.feature}"


@dataclass(frozen=True)
class Contestant:
    """One way to fit: a row map and an objective.

    Attributes
    ----------
    rows : str
        Name of a row map.
    readout : {"uniform", "pooled", "mixture"}
        Regression without attention, the loss of the pooled row, or the likelihood of the mixture
        over rows.
    penalties : Penalties, optional
        Set for contestants that are fitted together with others.
    features : tuple of str
        Features of whole samples that enter as covariates.
    solver : Solver, optional
        The solver that fits this contestant alone.
    extreme : Extreme, optional
        The score is fixed, not fitted: attention goes to the row in which this feature is extreme.
    """

    rows: str
    readout: str = "pooled"
    penalties: Penalties | None = None
    features: tuple[str, ...] = ()
    solver: Solver | None = None
    extreme: Extreme | None = None

    @property
    def attends(self) -> bool:
        """Whether it attends to single rows."""
        if self.extreme is not None:
            return True
        return self.readout != "uniform" if self.solver is None else self.solver.attends

    @property
    def is_given(self) -> bool:
        """Whether the user named it; its rows are then not mapped."""
        return self.rows == "given"

    @property
    def is_affine(self) -> bool:
        """Whether its rows are an affine map of the original ones."""
        return SHAPES.get(self.rows, "affine") == "affine"

    @property
    def is_witness(self) -> bool:
        """Whether the existence test uses it, even after it has been dropped from the contest."""
        if self.penalties is None or self.features or self.rows != "unit":
            return False
        return (self.readout, *self.penalties[:2]) in _WITNESSES

    @property
    def is_batched(self) -> bool:
        """Whether it is fitted together with others."""
        return self.solver is None

    def as_solver(self) -> Solver:
        """Return the solver that minimizes the same objective."""
        if self.solver is not None:
            return self.solver
        if self.penalties is None or self.readout == "uniform":
            return Uniform()
        quadratic, linear, _ = self.penalties
        ridges = {"score_ridge": min(quadratic, LARGE_RIDGE), "linear_ridge": linear}
        kind: Any = Mixture if self.readout == "mixture" else Gradient
        return kind(**ridges)

    @property
    def method(self) -> str:
        """Name of the solver that minimizes the same objective."""
        return self.as_solver().name

    @property
    def label(self) -> str:
        """What distinguishes this contestant from others with the same solver."""
        words = [f"{self.rows} rows"]
        if self.extreme is not None:
            words = [f"the row with the {self.extreme}"]
        if self.penalties is not None:
            used = self.penalties[2:] if self.readout == "uniform" else self.penalties
            words.append("ridges " + ", ".join(f"{ridge:g}" for ridge in used))
        if self.features:
            words.append("with " + " and ".join(self.features))
        return "; ".join(words)


# From flexible to stiff. Grids are coarse: what lies between two contestants is their average.
_Grid = dict[str, list[tuple[float, float, float]]]
_POOLED: _Grid = {
    "affine": [(1, 0.5, 1), (10, 5, 1), (100, 50, 1), (10, 50, 10), (100, 50, 10), (LINEAR, 5, 1)],
    "bent": [(10, 5, 1), (100, 0.5, 1), (100, 50, 1), (100, 50, 10), (LINEAR, 5, 1)],
    "coarse": [(10, 5, 1), (LINEAR, 5, 1)],
}
_MIXTURE: _Grid = {
    "affine": [(1, 50, 0.1), (1, 5, 1), (10, 0.5, 1), (100, 5, 0.1), (LINEAR, 5, 1)],
    "bent": [(1, 50, 1), (10, 5, 1), (100, 5, 0.1), (LINEAR, 5, 1)],
    "coarse": [(10, 0.5, 1), (LINEAR, 5, 1)],
}
_UNIFORM: dict[str, tuple[float, ...]] = {
    "affine": (0.1, 1, 10, 100, 1000),
    "bent": (1, 10, 100),
    "means": (0.01, 0.1, 1, 10, 100, 1000),
}
_SEVERAL_HEADS = [(1, 0.5, 1), (10, 5, 1), (100, 50, 1), (LINEAR, 5, 1)]
# The most steps of a mixture of several heads, which stops early as batched fits do, and the most
# heads: three have a thousand joint assignments per sample, whose gradients take minutes.
_MIXTURE_STEPS, _MIXED_HEADS = 60, 2
# Gain of log-likelihood per sample at which EM stops on wide rows: out of fold, the many small
# gains after it are worth nothing.
_TOLERANCE_OF_WIDE_ROWS = 1e-3
# Ridge of the values of "extreme" contestants, which have no other parameters.
_EXTREME = 3.0
SHAPES = {
    **dict.fromkeys(("range", "unit", "common"), "affine"),
    **dict.fromkeys(("ranks", "squares", "kernel", "range kernel", "common kernel"), "bent"),
    **dict.fromkeys(("unit means", "range means", "common means"), "means"),
}
# The kernel of rows of each scale.
_KERNELS = {"range": "range kernel", "unit": "kernel", "common": "common kernel"}
# Features of whole samples that fits without attention try in addition to the mean row.
SAMPLE_FEATURES = (
    ("size",),
    ("size", "sum"),
    ("max",),
    ("min", "max"),
    ("spread",),
    ("min", "max", "spread"),
    ("size", "sum", "max"),
)
# The same in addition to the mean kernel features, whose extremes mean little.
_BESIDE_KERNELS = ((), ("size",), ("size", "sum"))


# (readout, ridge of W, ridge of u) of the contestants whose out-of-fold predictions enter the
# existence test. They are fixed beforehand: a test of the best contestant would find rows in noise.
_WITNESSES = {("pooled", 10, 5), ("pooled", 100, 50), ("mixture", 10, 0.5), ("mixture", 100, 5)}


def uniform_contestants(rows: str, features: tuple[str, ...] = ()) -> list[Contestant]:
    """Return the fits without attention on one map."""
    ridges: tuple[float, ...] = (1, 10, 100) if features else _UNIFORM[SHAPES[rows]]
    return [
        Contestant(rows, "uniform", Penalties(LINEAR, LINEAR, ridge), features) for ridge in ridges
    ]


def kernel_contestants(maps: Sequence[str], sizes_vary: bool) -> list[Contestant]:
    """Return regressions on mean kernel features, which describe how a sample's rows are spread."""
    kernels = [_KERNELS[rows] for rows in maps if rows in _KERNELS]
    beside = _BESIDE_KERNELS if sizes_vary else _BESIDE_KERNELS[:1]
    return [
        c for rows in kernels for features in beside for c in uniform_contestants(rows, features)
    ]


def mean_contestants(maps: Sequence[str]) -> list[Contestant]:
    """Return regressions on mean rows in all their features, of rows that maps project."""
    means = [f"{rows} means" for rows in maps if rows in _KERNELS]
    return [c for rows in means for c in uniform_contestants(rows)]


def attention_contestants(
    rows: str, family: Family, features: tuple[str, ...] = (), coarse: bool = False
) -> list[Contestant]:
    """Return the fits with attention on one map; a coarse grid has few of them."""
    shape = "coarse" if coarse else SHAPES[rows]
    found = [Contestant(rows, "pooled", Penalties(*p), features) for p in _POOLED[shape]]
    if _mixes(family):
        found += [Contestant(rows, "mixture", Penalties(*p), features) for p in _MIXTURE[shape]]
    return found


def _mixes(family: Family) -> bool:
    """Whether a batched fit has the likelihood of a mixture over rows."""
    return family.is_quadratic or not family.has_dispersion


def extreme_contestants(rows: str, features: Sequence[int]) -> list[Contestant]:
    """Return fits to the row in which one feature is extreme, for all features that vary."""
    return [
        Contestant(
            *(rows, "uniform", Penalties(LINEAR, LINEAR, _EXTREME)),
            extreme=Extreme(feature, column, sign),
        )
        for column, feature in enumerate(features)
        for sign in (1, -1)
    ]


def wide_contestants(family: Family) -> list[Contestant]:
    """Return fits with linear scores, for rows too wide for quadratic scores."""
    found = [Contestant("wide", "pooled", Penalties(LINEAR, linear, value)) for linear, value in
             ((5, 1), (50, 10))]  # fmt: skip
    if _mixes(family):
        found.append(Contestant("wide", "mixture", Penalties(LINEAR, 5, 1)))
    return found


def likelihood_contestant(family: Family, n_features: int = 0) -> Contestant:
    """Return the fit that models rows as Gaussian; it does not depend on scales of features."""
    readout = "mixture" if family.predicts_mixtures else "pooled"
    if n_features <= MOST_FULL:
        return Contestant("full", readout, solver=Likelihood())
    # Both maps treat wider rows alike.
    return Contestant("unit", readout, solver=Likelihood(tolerance=_TOLERANCE_OF_WIDE_ROWS))


def solver_contestants(model: Model, family: Family) -> list[Contestant]:
    """Return the contestants for score forms other than affine: solvers, each fitted alone."""
    rows = "full" if model.score_form.has_constant else "scaled"
    return [*_latent_contestants(rows, family, model.n_heads), Contestant(rows, solver=Gradient())]


def several_heads_contestants(
    maps: Sequence[str], family: Family, n_heads: int
) -> list[Contestant]:
    """Return the contestants for several heads: batched fits to pooled rows, and latent rows."""
    batched = [
        Contestant(rows, "pooled", Penalties(*ridges))
        for rows in maps
        if SHAPES[rows] == "affine"
        for ridges in _SEVERAL_HEADS
    ]
    return [*batched, *_latent_contestants("full", family, n_heads)]


def _latent_contestants(rows: str, family: Family, n_heads: int) -> list[Contestant]:
    """Return the solvers with latent rows of interest, and regression without attention."""
    found = [
        Contestant(rows, "uniform", solver=Uniform()),
        Contestant(rows, likelihood_contestant(family).readout, solver=Likelihood()),
    ]
    if _mixes(family) and n_heads <= _MIXED_HEADS:
        found.append(Contestant(rows, "mixture", solver=Mixture(max_epochs=_MIXTURE_STEPS)))
    return found
