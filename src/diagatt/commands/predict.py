"""``diagatt predict``."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from diagatt.commands import options, outputs
from diagatt.commands.messages import about, caution, counted

if TYPE_CHECKING:
    from diagatt.kinds import Inputs, Kind
    from diagatt.kinds.answers import Answers

STAMP = b"diagatt"  # key in the metadata of a part: what it was computed from
FORMATS = (".csv", ".jsonl", ".parquet")
WRITTEN = "_written.json"  # names of the parts of a folder; readers of Parquet pass over it


def predict(
    model: options.Model,
    data: options.Data,
    output: options.Output = Path("predictions.csv"),
    drop: options.Drop = "",
    cache: options.Cache = None,
    memory: options.Memory = 1024,
    overwrite: options.Overwrite = False,
    **asked: Any,
) -> None:
    """Predict new samples, and say which rows decided.

    The columns are those the model was fitted to, found by name in any order; a response is not
    needed, and columns that the model does not know must be dropped. The output lists each
    sample, its prediction, class probabilities if there are classes, and for every head the row
    of interest with its weight (for texts the word and its characters, for images the box) as CSV,
    JSONL or Parquet, by its ending. For a store, it is a folder of Parquet files, one per shard,
    which the same command completes; under `torchrun` the processes share the shards.

    Example: `diagatt predict m.safetensors new.csv -o predictions.csv`
    """
    parts, reads = options.is_stored(data), {"MODEL": model, "DATA": data}
    if parts and output == Path("predictions.csv"):
        output = Path("predictions")
    with outputs.writing(output, reads, overwrite=overwrite, folder=parts, resumes=parts):
        _check_ending(output, parts)
        from diagatt.kinds.files import read_inputs, read_model_file
        from diagatt.tables import no_formula

        file = read_model_file(model)
        columns = file.columns
        inputs = read_inputs(data, options.without(columns, drop, asked), memory=memory)
        fitted = options.with_cache(file.model(), cache)
        from diagatt.kinds.answers import answer

        if parts:
            predict_parts(model, fitted, inputs, output)
        else:
            answers = answer(fitted, inputs.X, inputs.named_covariates, inputs.known)
            with about(inputs.ids):
                columns_written = _columns(answers, inputs.kind, inputs.ids)
            _write(output, columns_written)
    unit = columns.known.get("exposure") if "exposure" not in inputs.known else None
    more = f", predicted per unit of {unit}, which {data} does not hold" if unit else ""
    if output.suffix == ".csv" and any(no_formula(name) != name for name in inputs.ids):
        more += (
            "; an apostrophe stands before names that a spreadsheet would calculate (.jsonl and "
            ".parquet keep them as they are)"
        )
    typer.echo("\n".join([f"wrote {output}: {counted(len(inputs))}{more}", *caution(fitted)]))


def _check_ending(output: Path, parts: bool) -> None:
    """Refuse a name that does not say how predictions are written."""
    if parts and output.suffix in FORMATS:
        raise ValueError(f"{output}: predictions of a store are a folder of parts; name a folder.")
    if not parts and output.suffix not in FORMATS:
        raise ValueError(f"{output}: predictions are written as .csv, .jsonl or .parquet.")


def predict_parts(model: Path, fitted: Any, inputs: Inputs, folder: Path) -> None:
    """Predict a store shard by shard; write ``part-00000.parquet``, … into a folder.

    A part that this model wrote for this shard before is not computed again. Parts of an earlier,
    larger store are removed; a folder with any other file is refused.
    """
    import hashlib

    from diagatt.distributed import joined
    from diagatt.kinds.answers import answer

    store, by_model = inputs.X, hashlib.sha256(model.read_bytes()).hexdigest()
    paths = [folder / f"part-{k:05d}.parquet" for k in range(len(store.shards))]
    stamps = [f"{by_model} {shard.sha256}" for shard in store.shards]
    with joined() as group:
        if group.rank == 0:
            _prepare_folder(folder, [path.name for path in paths])
        group.share(b"ready")  # no process writes before the folder is checked
        own = range(group.rank, len(paths), group.size)
        for part in store.parts([k for k in own if _stamp(paths[k]) != stamps[k]]):
            answers = answer(fitted, part.X, part.named_covariates)
            ids = part.X.sample_ids
            if ids is None:
                ids = range(part.start, part.start + len(part))
            payload = {name: part.payload(name) for name in part.columns}
            columns = _columns(answers, inputs.kind, ids) | payload
            _write(paths[part.shard], columns, {STAMP: stamps[part.shard]})


def _prepare_folder(folder: Path, names: list[str]) -> None:
    """Note which parts will be written and remove earlier ones; refuse files of others."""
    from diagatt.files import remove_strays, write_atomically

    folder.mkdir(parents=True, exist_ok=True)
    manifest = folder / WRITTEN
    before = json.loads(manifest.read_text())["parts"] if manifest.exists() else []
    for name in (WRITTEN, *before):
        remove_strays(folder / name)  # of writers that were killed
    foreign = {path.name for path in folder.iterdir()} - {WRITTEN, *before}
    if foreign:
        raise ValueError(
            f"{folder} holds {min(foreign)}, which diagatt predict did not write: name a new or "
            "empty folder."
        )
    for name in set(before) - set(names):
        (folder / name).unlink(missing_ok=True)
    if before != names:
        write_atomically(manifest, json.dumps({"parts": names}).encode())


def _stamp(path: Path) -> str | None:
    """Return what a part was computed from; None if it is not there or cannot be read."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return (parquet.read_metadata(path).metadata or {}).get(STAMP, b"").decode()
    except (OSError, pa.ArrowInvalid):
        return None


def _columns(answers: Answers, kind: Kind, ids: Any) -> dict[str, Any]:
    """Return the columns of a prediction: sample, answer, probabilities, and where heads looked."""
    columns = {"sample": ids, "prediction": answers.prediction}
    if answers.prediction.ndim == 2:  # several outcomes
        columns = {"sample": ids}
        found = {"prediction": answers.prediction, "probability": answers.probability}
        for what, numbers in found.items():
            if numbers is not None:
                named = zip(answers.estimator.outcomes_, numbers.T, strict=True)
                columns |= {f"{what}_{name}": column for name, column in named}
    elif answers.probability is not None:
        classes = answers.estimator.classes_
        columns |= {f"probability_{c}": answers.probability[:, k] for k, c in enumerate(classes)}
    for head in range(answers.located.shape[1]):
        places = kind.places(answers, head)
        columns |= {f"head{head}_{name}": column for name, column in places.items()}
    return columns


def _write(path: Path, columns: dict[str, Any], metadata: dict[bytes, str] | None = None) -> None:
    """Write columns as CSV, JSONL or Parquet, whole or not at all."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    from diagatt.files import write_atomically
    from diagatt.tables import no_formula

    lists = {n: c.tolist() if hasattr(c, "tolist") else list(c) for n, c in columns.items()}
    if path.suffix == ".csv":
        lists = {no_formula(name): [no_formula(cell) for cell in c] for name, c in lists.items()}
    table, out = pa.table(lists).replace_schema_metadata(metadata), io.BytesIO()
    if path.suffix == ".csv":
        csv.write_csv(table, out)
    elif path.suffix == ".parquet":
        parquet.write_table(table, out)
    else:
        lines = (json.dumps(line, ensure_ascii=False) + "\n" for line in table.to_pylist())
        out.write("".join(lines).encode())
    write_atomically(path, out.getvalue())
