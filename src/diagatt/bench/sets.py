"""The sets of the bench with their fixed outer splits; a file of bags can replace a name.

Classes are stratified, and groups stay together. There are five folds, three times over below 300
samples. The splits of the bench's own sets are stored in ``splits.json``, one digit per sample that
names its test fold, with a fingerprint of the data: neither another version of a package nor of
scikit-learn can move a sample unnoticed.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from diagatt.datasets.bags import Bags, load_bags
from diagatt.ragged import RaggedRows
from diagatt.resampling import draw_folds

ENDINGS = (".npz", ".parquet")
N_FOLDS = 5
N_REPEATS = 3  # how often the folds of small sets are drawn
SMALL = 300
STORED = "splits.json"


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


def split(chosen: BagSet, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the samples of the training and the test part of a split.

    Split ``number`` tests fold ``number % 5`` of repeat ``number // 5``.
    """
    if chosen.fixed:
        n = len(load_set(chosen))
        return np.arange(n // 2), np.arange(n // 2, n)
    folds = _folds(chosen)
    if not 0 <= number < N_FOLDS * len(folds):
        raise ValueError(f"{chosen.name} has splits 0 to {N_FOLDS * len(folds) - 1}, not {number}.")
    fold = folds[number // N_FOLDS]
    tested = fold == number % N_FOLDS
    return np.flatnonzero(~tested), np.flatnonzero(tested)


def n_splits(chosen: BagSet) -> int:
    """Return how many splits a set has."""
    return 1 if chosen.fixed else N_FOLDS * len(_folds(chosen))


def make_folds(bags: Bags) -> np.ndarray:
    """Draw the test fold of every sample, (n_repeats, n).

    Examples
    --------
    >>> from diagatt.datasets import load_bags
    >>> make_folds(load_bags("simulated", n=50)).shape
    (3, 50)
    """
    repeats = N_REPEATS if len(bags) < SMALL else 1
    given = (bags.y, bags.classifies, bags.groups, N_FOLDS)
    return np.stack([draw_folds(*given, seed) for seed in range(repeats)])


def fingerprint(bags: Bags) -> str:
    """Return a short digest of lengths and classes, which differs if the data do."""
    content = bags.X.lengths.tobytes()
    if bags.classifies:
        content += np.unique(bags.y, return_inverse=True)[1].astype(np.int64).tobytes()
    return hashlib.sha256(content).hexdigest()[:16]


@cache
def _folds(chosen: BagSet) -> np.ndarray:
    bags = load_set(chosen)
    stored = _stored().get(chosen.name)
    if stored is None:
        return make_folds(bags)
    if stored["fingerprint"] != fingerprint(bags):
        raise ValueError(
            f"{chosen.name} is not what its splits were made for: {bags.source} has another "
            "version; results would not be comparable."
        )
    return np.array([[int(digit) for digit in repeat] for repeat in stored["folds"]])


@cache
def _stored() -> dict[str, Any]:
    file = resources.files("diagatt.bench").joinpath(STORED)
    return json.loads(file.read_text("utf-8")) if file.is_file() else {}


def described(bags: Bags) -> dict[str, Any]:
    """Return a set's entry of ``splits.json``."""
    folds = ["".join(map(str, repeat)) for repeat in make_folds(bags)]
    return {"fingerprint": fingerprint(bags), "folds": folds}
