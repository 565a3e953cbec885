"""``diagatt predict`` and ``diagatt evaluate``."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from diagatt.commands import options


def predict(
    model: options.Model,
    data: options.Data,
    output: options.Output = Path("predictions.csv"),
    memory: options.Memory = 1024,
) -> None:
    """Predict new samples, and say which rows decided.

    The columns are those the model was fitted to; a response is not needed. Written are the
    sample, its prediction, class probabilities if there are classes, and for every head the row
    of interest with its weight (of texts the word and its characters, of images the box). CSV,
    JSONL or Parquet, by the ending of the output. Of a store, the output is a folder of Parquet
    files, one a shard; under `torchrun` the processes share the shards.

    Example: `diagatt predict m.safetensors new.csv -o predictions.csv`
    """
    from diagatt.commands.inputs import read_inputs
    from diagatt.commands.models import load_model

    if data.is_dir():
        from diagatt.commands.stored import predict_store

        folder = Path("predictions") if output == Path("predictions.csv") else output
        typer.echo(f"wrote {folder}: {predict_store(model, data, folder, memory)} samples")
        return
    fitted, columns = load_model(model)
    inputs = read_inputs(data, columns)
    lines = _lines(fitted, inputs)
    _write(output, lines)
    typer.echo(f"wrote {output}: {len(lines)} samples")


def evaluate(
    model: options.Model,
    data: options.Data,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="JSON file to write as well.")
    ] = None,
) -> None:
    """Compare predictions with known responses.

    Example: `diagatt evaluate m.safetensors test.csv`
    """
    from rich.console import Console
    from rich.table import Table

    from diagatt.commands.inputs import read_inputs
    from diagatt.commands.models import load_model
    from diagatt.commands.scores import scores
    from diagatt.files import write_atomically

    fitted, columns = load_model(model)
    found = scores(fitted, inputs := read_inputs(data, columns, need_target=True))
    table = Table("metric", "value", title=f"{len(inputs)} samples")
    for name, value in found.items():
        table.add_row(name, f"{value:.4f}")
    Console().print(table)
    if output is not None:
        content = {"samples": len(inputs), **found}
        write_atomically(output, (json.dumps(content, indent=1) + "\n").encode())


def _lines(model: Any, inputs: Any) -> list[dict[str, Any]]:
    from diagatt.commands.scores import extra

    predicted = model.predict(inputs.X, **extra(inputs))
    located = model.locate(inputs.X)
    proba = (
        model.predict_proba(inputs.X, **extra(inputs)) if hasattr(model, "predict_proba") else None
    )
    boxes = model.boxes(inputs.X) if inputs.kind == "image" else None
    weights = model.attention(inputs.X) if inputs.kind == "rows" else None
    lines = []
    for i, name in enumerate(inputs.ids):
        line: dict[str, Any] = {"sample": name, "prediction": _plain(predicted[i])}
        if proba is not None:
            pairs = zip(model.classes_, proba[i], strict=True)
            line |= {f"probability_{label}": float(p) for label, p in pairs}
        for r, found in enumerate(located[i]):
            if inputs.kind == "text":
                parts = {"word": found.word, "start": found.start, "stop": found.stop}
                line |= {f"head{r}_{k}": v for k, v in parts.items()}
                line[f"head{r}_weight"] = found.weight
                continue
            line[f"head{r}_row"] = int(found)
            if weights is not None:
                line[f"head{r}_weight"] = float(weights[i][found, r])
            if boxes is not None:
                corners = zip(("top", "left", "bottom", "right"), boxes[i, r], strict=True)
                line |= {f"head{r}_{k}": int(v) for k, v in corners}
        lines.append(line)
    return lines


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def _write(path: Path, lines: list[dict[str, Any]]) -> None:
    import pyarrow as pa
    from pyarrow import csv, parquet

    from diagatt.files import write_atomically

    out = io.BytesIO()
    if path.suffix == ".csv":
        csv.write_csv(pa.Table.from_pylist(lines), out)
    elif path.suffix == ".parquet":
        parquet.write_table(pa.Table.from_pylist(lines), out)
    elif path.suffix == ".jsonl":
        out.write("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode())
    else:
        raise ValueError(f"{path}: predictions are written as .csv, .jsonl or .parquet.")
    write_atomically(path, out.getvalue())
