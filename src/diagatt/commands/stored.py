"""Commands on a store: in bounded memory, and under ``torchrun`` by several processes."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

import numpy as np

from diagatt.commands.inputs import Columns, Inputs
from diagatt.commands.models import Choice, load_model, new_model, save_model
from diagatt.commands.scores import scores
from diagatt.distributed import joined
from diagatt.files import write_atomically
from diagatt.stores import RowStore, StoredPart

__all__ = ["fit_store", "predict_store"]

STAMP = b"diagatt"


def fit_store(
    path: Path, output: Path, choice: Choice, split: float, memory: float, checkpoint: Path | None
) -> None:
    """Fit to a store and save the model; of several processes the first reports and saves.

    The state is kept in `checkpoint` until the model is written: killed, the same command goes on.
    """
    from rich.console import Console

    with joined() as group:
        console = Console(highlight=False, quiet=group.rank > 0)
        store = RowStore(path, memory=memory)
        train, held_out = _split(store, split, choice.seed)
        model = new_model(Inputs("store", train, None, None, []), choice)
        kept = output.with_name(output.name + ".checkpoint") if checkpoint is None else checkpoint
        model.set_params(checkpoint=str(kept), verbose=group.rank == 0)
        processes = f", {group.size} processes" if group.size > 1 else ""
        console.print(f"{type(model).__name__}: {len(train)} samples from {path}{processes}")
        model.fit(train)
        if group.rank > 0:
            return
        model.set_params(checkpoint=None)
        save_model(model, output, Columns())
        for stale in kept.parent.glob(f"{kept.stem}*{kept.suffix}"):  # one a restart
            stale.unlink()
        if held_out is not None:
            found = scores(model, Inputs("store", held_out, held_out.responses(), None, []))
            said = ", ".join(f"{name} {value:.4f}" for name, value in found.items())
            console.print(f"on {len(held_out)} samples held out: {said}")
        console.print(f"wrote {output}")


def _split(store: RowStore, part: float, seed: int) -> tuple[RowStore, RowStore | None]:
    """Whole shards are held out, so that each is read by one side only."""
    if not part:
        return store, None
    count = len(store.shards)
    held = max(1, round(part * count))
    if held >= count:
        raise ValueError(
            f"--split {part} of a store holds out whole shards, and {store.path} has {count}: "
            "write it with a smaller --shard-mib, or split the samples before."
        )
    order = np.random.default_rng(seed).permutation(count).tolist()
    return store.select(sorted(order[held:])), store.select(sorted(order[:held]))


def predict_store(model: Path, path: Path, output: Path, memory: float) -> int:
    """Predict and localize shard by shard; write ``part-00000.parquet``, … into a folder.

    A part that this model wrote for this shard before is not computed again.

    Returns
    -------
    int
        Number of samples of the store.
    """
    if output.suffix in (".csv", ".jsonl", ".parquet"):
        raise ValueError(f"{output}: predictions of a store are a folder of parts; name a folder.")
    fitted, _ = load_model(model)
    by_model = hashlib.sha256(model.read_bytes()).hexdigest()
    with joined() as group:
        store = RowStore(path, memory=memory)
        output.mkdir(parents=True, exist_ok=True)
        if group.rank == 0:
            for stale in output.glob("part-*.parquet"):
                if stale.name not in {_name(k) for k in range(len(store.shards))}:
                    stale.unlink()
        stamps = {k: f"{by_model} {shard.sha256}" for k, shard in enumerate(store.shards)}
        own = range(group.rank, len(store.shards), group.size)
        missing = [k for k in own if _stamp_of(output / _name(k)) != stamps[k]]
        for part in store.parts(missing):
            _write(output / _name(part.shard), _lines(fitted, part), stamps[part.shard])
    return len(store)


def _name(k: int) -> str:
    return f"part-{k:05d}.parquet"


def _stamp_of(path: Path) -> str | None:
    """What a part says it was computed from; None if it is not there or cannot be read."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return (parquet.read_metadata(path).metadata or {}).get(STAMP, b"").decode()
    except (OSError, pa.ArrowInvalid):
        return None


def _lines(model: Any, part: StoredPart) -> dict[str, Any]:
    """Columns of a part: numbers of the samples, predictions, rows of interest, payload."""
    beside = {} if part.covariates is None else {"covariates": part.covariates}
    columns: dict[str, Any] = {
        "sample": part.start + np.arange(len(part)),
        "prediction": model.predict(part.X, **beside),
    }
    if hasattr(model, "predict_proba"):
        probability = model.predict_proba(part.X, **beside)
        columns |= {f"probability_{c}": probability[:, k] for k, c in enumerate(model.classes_)}
    found = model.certainty(part.X)
    for r in range(found.rows.shape[1]):
        columns[f"head{r}_row"], columns[f"head{r}_weight"] = (
            found.rows[:, r],
            found.posterior[:, r],
        )
    return columns | {name: part.payload(name) for name in part.columns}


def _write(path: Path, columns: dict[str, Any], stamp: str) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table({name: pa.array(column) for name, column in columns.items()})
    out = io.BytesIO()
    parquet.write_table(table.replace_schema_metadata({STAMP: stamp}), out)
    write_atomically(path, out.getvalue())
