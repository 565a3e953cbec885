"""The sets of the bench, and a user's own: a file of bags can stand in for a name."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from diagatt.datasets.bags import Bags, load_bags
from diagatt.ragged import RaggedRows

ENDINGS = (".npz", ".parquet")


@dataclass(frozen=True)
class BagSet:
    """A set of bags under the name that results are stored by.

    Attributes
    ----------
    name : str
        "digits-n100", or the stem of a file.
    source : str
        What `load_bags` calls the bags, or the path of a file.
    options : tuple of (str, int) pairs
        Options of the loader: n and seed of drawn bags.
    fixed : bool
        Whether the first half of the samples is for training and the second for testing, because
        they differ on purpose.
    """

    name: str
    source: str
    options: tuple[tuple[str, int], ...] = ()
    fixed: bool = False


def _sized(source: str, *sizes: int) -> list[BagSet]:
    return [BagSet(f"{source}-n{n}", source, (("n", n), ("seed", 0))) for n in sizes]


def _as_they_are(*sources: str) -> list[BagSet]:
    return [BagSet(source, source) for source in sources]


_LISTED = [
    *_as_they_are("musk1", "musk2", "elephant", "ucsb_breast_cancer", "birds_brown_creeper"),
    *_as_they_are("protein", "corel_dogs", "web_recommendation_1"),
    *_as_they_are("japanese_vowels", "basic_motions", "solubility", "solubility_class"),
    *_as_they_are("schools", "schools_sector", "comments"),
    *_sized("cells_cd34", 200),
    *_sized("cells_nk", 200),
    *_sized("digits", 50, 100, 300, 1000, 2000),
    *_sized("digits_count", 300),
    *_sized("digits_which", 300),
    *_sized("wine", 100),
    *_sized("breast_cancer", 200),
    *_sized("simulated", 50, 100, 200, 400, 1000),
    *_sized("simulated_classes", 200),
    *_sized("simulated_counts", 200),
    *_sized("simulated_times", 200),
]

#: The sets of the bench by name.
SETS: dict[str, BagSet] = {listed.name: listed for listed in _LISTED}

#: Unit tests of what a method assumes, see `diagatt.datasets.assumptions`; they are not ranked.
ASSUMPTIONS: dict[str, BagSet] = {
    name: BagSet(name, name, (("n", 1000), ("seed", 0)), fixed=True)
    for name in ("unit_presence", "unit_threshold", "unit_frequency")
}


def get_set(name: str) -> BagSet:
    """Return the set of this name, or the one that a file holds.

    Examples
    --------
    >>> get_set("digits-n100").options
    (('n', 100), ('seed', 0))
    >>> get_set("folder/mine.npz").name
    'mine'
    """
    if name in SETS | ASSUMPTIONS:
        return (SETS | ASSUMPTIONS)[name]
    if Path(name).suffix in ENDINGS:
        return BagSet(Path(name).stem, name)
    raise ValueError(
        f"unknown set {name!r}: choose among {', '.join(SETS)}, or name a file that ends in "
        f"{' or '.join(ENDINGS)}."
    )


@cache
def load_set(chosen: BagSet) -> Bags:
    """Load a set; it stays in memory."""
    if Path(chosen.source).suffix in ENDINGS:
        return read_bags(chosen.source)
    return load_bags(chosen.source, **dict(chosen.options))


def read_bags(path: str | Path) -> Bags:
    """Read bags of a user from a file.

    Parameters
    ----------
    path : path-like
        ``.npz`` with arrays ``values`` (N, d), ``offsets`` (n + 1,) and ``y`` (n,), and, if known,
        ``groups`` (n,), ``row_labels`` (N,) and ``covariates`` (n, q). Or ``.parquet``, a long
        table with a line per row: columns ``sample``, ``y``, if known ``group`` and ``row_label``,
        and one column per feature.

    Returns
    -------
    Bags
        The task is binary if there are two different responses (the larger one is positive),
        multiclass if they are words or at most twenty whole numbers, and regression otherwise.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist.")
    parts = _read_npz(path) if path.suffix == ".npz" else _read_long_table(path)
    y, task = _task(parts.pop("y"))
    return Bags(path.stem, y=y, task=task, source=str(path), **parts)


def _read_npz(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as held:
        found = dict(held)
    missing = {"values", "offsets", "y"} - set(found)
    if missing:
        raise ValueError(f"{path} has no array {sorted(missing)[0]!r}; it has {sorted(found)}.")
    known = ("y", "groups", "row_labels", "covariates")
    X = RaggedRows(found["values"], found["offsets"])
    return {"X": X} | {name: found[name] for name in known if name in found}


def _read_long_table(path: Path) -> dict[str, Any]:
    from diagatt.kinds.tables import Table

    table = Table.read(path)
    for name in ("sample", "y"):
        table.column(name)
    known = {"sample", "y", "group", "row_label"}
    features = [name for name in table.names if name not in known]
    # Which line of the table a packed row is, so that its label and sample are found again.
    numbered = table.data.append_column("line", [np.arange(len(table), dtype=np.float64)])
    X, _ = RaggedRows.from_frame(numbered, "sample", [*features, "line"])
    line = X.values[:, -1].astype(np.int64)
    first = line[X.offsets[:-1]]
    found: dict[str, Any] = {"X": X.with_values(np.ascontiguousarray(X.values[:, :-1]))}
    found["y"] = table.column("y").to_numpy()[first]
    if "group" in table.names:
        found["groups"] = np.unique(table.column("group").to_numpy(), return_inverse=True)[1][first]
    if "row_label" in table.names:
        found["row_labels"] = table.column("row_label").to_numpy()[line].astype(bool)
    return found


def _task(y: np.ndarray) -> tuple[np.ndarray, str]:
    """Return responses as the bench takes them, and the task that follows from them."""
    classes, index = np.unique(y, return_inverse=True)
    if len(classes) == 2:
        return index.astype(np.int64), "binary"
    words = np.asarray(y).dtype.kind not in "fiub"
    whole = not words and bool(np.all(np.mod(np.asarray(y, dtype=float), 1) == 0))
    if words or (whole and len(classes) <= 20):
        return np.asarray(y, dtype=str if words else None), "multiclass"
    return np.asarray(y, dtype=np.float64), "regression"
