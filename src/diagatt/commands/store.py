"""``diagatt store``: samples in a folder of shards, for data beyond memory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diagatt.commands import input_facts, options, outputs
from diagatt.commands.help_text import Helped, HelpedGroup
from diagatt.commands.messages import about

if TYPE_CHECKING:
    from diagatt.kinds import Inputs
    from diagatt.stores import RowStore

app = typer.Typer(
    cls=HelpedGroup, no_args_is_help=True, help="Keep samples in a folder of verified shards."
)

Store = Annotated[Path, typer.Argument(help="A store that `diagatt store write` wrote.")]


@app.command(cls=Helped)
@partial(options.WithKinds, makes_rows=True)
def write(
    out: Annotated[Path, typer.Argument(help="Folder to make.")],
    data: options.Data,
    target: options.Target = None,
    covariates: options.Covariates = "",
    features: options.Features = "",
    drop: options.Drop = "",
    id: options.Id = None,
    row_weight: options.RowWeight = None,
    time: options.Time = None,
    event: options.Event = None,
    start: options.Start = None,
    shard_mib: Annotated[float, typer.Option(help="Size of a shard in MiB.", metavar="MIB")] = 64,
    overwrite: options.Overwrite = False,
    **asked: Any,
) -> None:
    """Write samples to a store; texts and images become rows on the way.

    For example:

    `diagatt store write reviews reviews.csv --text review --target label`

    `diagatt store write cells cells.parquet --rows cells --target age --shard-mib 256`

    `diagatt store write visits visits.csv --sample patient --time days --event died`
    """
    named = (target, covariates, features, drop, id)
    known = {"time": time, "event": event, "start": start}
    columns = options.columns(asked, *named, known=known, row_weight=row_weight)
    with outputs.writing(out, {"DATA": data}, option="OUT", overwrite=overwrite, folder=True):
        from diagatt.kinds.files import read_inputs
        from diagatt.lifetimes import are_times
        from diagatt.stores import RowStore

        inputs = read_inputs(data, columns, need_target=bool(target or time))
        kind = inputs.kind
        if kind.in_passes:
            raise ValueError(f"{data} is a store already.")
        if inputs.y is not None and inputs.y.ndim == 2 and are_times(columns.targets):
            raise ValueError(f"--target {target} names times to an event: give --time and --event.")
        transformer = kind.transformer(inputs.X, **options.settings(asked, kind))
        given: dict[str, Any] = {"shard_mib": shard_mib, "overwrite": overwrite}
        if transformer is None:
            given |= {"id": inputs.ids} if "sample" in columns.asked or id else {}
            given |= {"covariates": inputs.named_covariates}
            with about(inputs.ids):
                store = RowStore.from_rows(out, inputs.X, inputs.named_y, **given)
        else:
            store = _transformed(out, inputs, transformer, given)
    typer.echo(f"wrote {out}: {len(store)} samples in {_shards(store)}")


@app.command(cls=Helped)
def info(path: Store) -> None:
    """Say what a store holds; its rows are not read, `diagatt store check` does that.

    Example: `diagatt store info reviews`
    """
    from rich.console import Console
    from rich.table import Table

    from diagatt.stores import RowStore

    table = Table("", str(path))
    for name, value in _facts(RowStore(path, memory=float("inf"))).items():
        table.add_row(name, value)
    Console().print(table)


@app.command(cls=Helped)
def check(path: Store) -> None:
    """Compare every byte of a store with its checksums.

    Example: `diagatt store check reviews`
    """
    from diagatt.stores import RowStore

    store = RowStore(path, memory=float("inf"))
    store.verify()
    typer.echo(f"{path} is sound: {_shards(store)}, {_size(store.nbytes)}")


def _transformed(out: Path, inputs: Inputs, transformer: Any, given: dict[str, Any]) -> RowStore:
    """Send the inputs through their transformer, chunk by chunk."""
    from diagatt.progress import progress_bar
    from diagatt.stores import RowStore

    payload = inputs.kind.payload
    with progress_bar(f"reading {payload}s", len(inputs), shown=True) as advance:

        def counted() -> Iterator[Any]:
            for item in inputs.X:
                yield item
                advance()

        given |= {"covariates": inputs.covariates, "chunk": 256, "payload": payload}
        return RowStore.from_transformer(out, transformer, counted(), inputs.named_y, **given)


def _shards(store: RowStore) -> str:
    return "1 shard" if len(store.shards) == 1 else f"{len(store.shards)} shards"


def _size(count: int) -> str:
    """Return a count of bytes in KiB or MiB."""
    return f"{count / 2**10:.1f} KiB" if count < 2**20 else f"{count / 2**20:,.1f} MiB"


def _names(names: Any) -> str:
    return f": {input_facts.some(names)}" if names else ""


def _facts(store: RowStore) -> dict[str, str]:
    shards = store.shards
    largest = max(info.bytes for info in shards)
    lengths = f"{min(i.shortest for i in shards)} to {max(i.longest for i in shards)}"
    return {
        "samples": f"{store.n_samples:,}",
        "rows": f"{store.n_rows:,}",
        "rows per sample": lengths,
        "features": f"{store.n_features} ({store.dtype}){_names(store.feature_names)}",
        "size": _size(store.nbytes),
        "shards": f"{len(shards)}, the largest {_size(largest)}",
        "response": _response(store),
        "weights": f"sum {sum(i.weight_sum or 0 for i in shards):g}" if store.has_weights else "–",
        "covariates": str(store.n_covariates or "–"),
        "payload": ", ".join(store.payload_names) or "–",
        "digest": store.digest[:16],
    }


def _response(store: RowStore) -> str:
    """Describe numbers by mean, deviation and range, and classes by their counts."""
    import numpy as np

    y = store.responses()
    if y is None:
        return "–"
    if y.dtype.names is not None:
        return input_facts.times(y)
    if y.ndim == 2:
        means = zip(store.response_names or (), y.mean(axis=0), strict=True)
        return ", ".join(f"{name} (mean {mean:g})" for name, mean in means)
    if y.dtype.kind in "if":
        numbers = y.astype(float)
        spread = f"mean {numbers.mean():g}, deviation {numbers.std():g}"
        return f"{spread}, {numbers.min():g} to {numbers.max():g} ({store.response_type})"
    classes, counts = np.unique(y, return_counts=True)
    said = [f"{c} ({k:,})" for c, k in zip(classes[:10], counts[:10], strict=True)]
    return ", ".join(said) + (f" and {len(classes) - 10} more" if len(classes) > 10 else "")
