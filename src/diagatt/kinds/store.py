"""A folder of shards that `diagatt store write` or `RowStore` wrote."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diagatt.kinds.base import KINDS, Columns, Inputs, Kind
from diagatt.kinds.columns import KNOWN, OFFSETS, TIMES

if TYPE_CHECKING:
    from diagatt.stores import RowStore


class Store(Kind):
    """Samples on disk, which hold their own responses, weights and covariates."""

    name = "store"
    in_passes = True
    bounded = True
    takes = ("target", "groups", *KNOWN)  # to say what else can be done

    def opens(self, path: Path) -> bool:
        """Return whether the path is a folder, but not one of images."""
        return path.is_dir() and not KINDS["image"].opens(path)

    def open(self, path: Path, columns: Columns, memory: float) -> Inputs:
        """Open the store; responses are read, rows are not."""
        from diagatt.stores import RowStore
        from diagatt.stores.manifest import MANIFEST

        if not (path / MANIFEST).exists() and _holds_features(path):
            raise ValueError(
                f"{path} is not a store: if it holds features of slides, name the table of labels "
                f"in its place, and pass --slides {path}."
            )
        if columns.groups is not None and not columns.of_a_model:
            raise ValueError(
                f"{path} is a store, which has no column {columns.groups!r} of groups: --groups "
                "needs samples in memory, from a table or a folder of slides."
            )
        given = [role for role in OFFSETS if role in columns.known]
        if given and not columns.of_a_model:
            raise ValueError(
                f"{path} is a store, which keeps no {given[0]}: --{given[0]} needs samples in "
                "memory, from a table."
            )
        if not columns.of_a_model and (columns.target or "time" in columns.known):
            raise ValueError(
                f"{path} is a store, which contains its own responses: leave --target and --time "
                "out, or name them in `diagatt store write`."
            )
        store = RowStore(path, memory=memory)
        named = store.response_names or ()
        if not columns.of_a_model and store.has_times and "event" not in named:
            raise ValueError(
                f"{path} holds times between two bounds, which the commands do not fit: fit "
                "DiagAttSurvival to the store in Python."
            )
        return self._inputs(store)

    def _inputs(self, store: RowStore) -> Inputs:
        found, named = store.sample_ids(), store.response_names or ()
        known = {name: name for name in TIMES if name in named} if store.has_times else {}
        if "stop" in named:  # samples that are observed from a time on
            known["time"] = "stop"
        target = ",".join(named) or None
        names = Columns({}, None if known else target, store.covariate_names or (), known=known)
        ids = range(len(store)) if found is None else found.tolist()
        return Inputs(self, store, store.responses(), None, ids, names)

    def split(self, inputs: Inputs, share: float, seed: int) -> tuple[Inputs, Inputs | None]:
        """Hold out whole shards, so that each is read by one side only."""
        if not share:
            return inputs, None
        store, count = inputs.X, len(inputs.X.shards)
        held_out = max(1, round(share * count))
        if held_out >= count:
            raise ValueError(
                f"--split {share} of a store holds out whole shards, and {store.path} has {count}: "
                "write it with a smaller --shard-mib, or split the samples before."
            )
        order = np.random.default_rng(seed).permutation(count).tolist()
        parts = sorted(order[held_out:]), sorted(order[:held_out])
        train, test = (self._inputs(store.select(shards)) for shards in parts)
        return train, test

    def in_memory(self, inputs: Inputs) -> Inputs:
        """Return the samples as rows."""
        store = inputs.X
        Z = store.covariates()
        return Inputs(KINDS["rows"], store.to_rows(), inputs.y, Z, inputs.ids, inputs.columns)

    def fit(self, model: Any, inputs: Inputs, class_weight: str | None = None) -> None:
        """Fit in passes over the shards."""
        if class_weight is not None:
            raise ValueError(
                "--class-weight is for samples in memory: a store contains its own weights."
            )
        model.fit(inputs.X)


def _holds_features(folder: Path) -> bool:
    """Return whether a folder holds files of the kinds in which features of slides are written."""
    return any(file.suffix in (".h5", ".pt", ".npy") for file in folder.rglob("*"))
