"""``diagatt fit``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from diagatt.commands import options, outputs
from diagatt.files import version

# Whole numbers with more different values than this are a count, not classes.
MAX_CLASSES = 20
# Lines of the contest that are shown.
MOST_LINES = 6


def fit(
    data: options.Data,
    output: options.Output = Path("model.safetensors"),
    target: options.Target = None,
    covariates: options.Covariates = "",
    features: options.Features = "",
    drop: options.Drop = "",
    id: options.Id = None,
    family: Annotated[
        str, typer.Option(help="auto, gaussian, poisson, gamma, bernoulli or multinomial.")
    ] = "auto",
    heads: Annotated[str, typer.Option(help="Rows of interest per sample, or auto.")] = "1",
    solver: Annotated[str, typer.Option(help="auto, likelihood, mixture or gradient.")] = "auto",
    split: Annotated[
        float, typer.Option(min=0.0, max=0.9, help="Share held out to see how good the model is.")
    ] = 0.0,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Random seed.")] = 0,
    memory: options.Memory = 1024,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Checkpoint file (stores only); default: next to the output."),
    ] = None,
    overwrite: options.Overwrite = False,
    **asked: Any,
) -> None:
    """Fit a model to samples and write it to one file.

    Words, truth values and few whole numbers as responses are classes; other numbers are
    predicted as such.

    For example:

    `diagatt fit reviews.csv --text review --target label -o reviews.safetensors`

    `diagatt fit scans.csv --image file --target diagnosis --patch 16`

    `diagatt fit cells.parquet --rows cells --target age --covariates sex,batch --split 0.2`

    `diagatt fit cells.csv --sample patient --id cell --target ill --drop notes`

    A folder that `diagatt store write` made is fitted in bounded memory, by one process or many.
    If it is killed, the same command continues:

    `diagatt fit store/ -o m.safetensors --memory 512`

    `torchrun --nproc-per-node 4 --max-restarts 3 -m diagatt fit store/ -o m.safetensors`
    """
    given = {"n_heads": _heads(heads), "family": family, "solver": solver}
    defaults = {"n_heads": 1, "family": "auto", "solver": "auto"}
    changed = {name: value for name, value in given.items() if value != defaults[name]}
    columns = options.columns(asked, target, covariates, features, drop, id)
    state = checkpoint or output.parent / f"{output.name}.checkpoint"
    # A process that torchrun restarts may find the model that it wrote before it was killed.
    job = options.restartable_job()
    allowed = overwrite or (job is not None and job.has_passed("output"))
    with outputs.writing(output, {"DATA": data}, overwrite=allowed):
        if options.is_stored(data):
            reads = {"DATA": data, "--output": output}
            outputs.check(state, reads, option="--checkpoint", resumes=True)
        if job is not None:
            job.note_passed("output")

        from rich.console import Console

        from diagatt.commands.predict import scores
        from diagatt.distributed import joined
        from diagatt.kinds.files import read_inputs, save_model

        with joined() as group:
            console = Console(highlight=False, quiet=group.rank > 0)
            inputs = read_inputs(data, columns, need_target=True, memory=memory)
            kind = inputs.kind
            train, held_out = kind.split(inputs, split, seed)
            classes = _are_classes(train.y, family)
            own = options.settings(asked, kind)
            model = kind.model(classes, len(train), changed, seed, **own)
            processes = f", {group.size} processes" if group.size > 1 else ""
            console.print(f"{type(model).__name__}: {len(train)} samples from {data}{processes}")
            if kind.in_passes:
                before = version(state)
                model.set_params(checkpoint=str(state), verbose=group.rank == 0)
            kind.fit(model, train)
            if group.rank > 0:
                return
            if kind.in_passes:
                model.set_params(checkpoint=None)
            save_model(model, output, inputs.columns)
            _report(console, getattr(model, "estimator_", model))
            if kind.in_passes and version(state) != before:  # this fit wrote it
                state.unlink()
            if held_out is not None:
                said = ", ".join(f"{name} {x:.4f}" for name, x in scores(model, held_out).items())
                console.print(f"on {len(held_out)} samples held out: {said}")
            console.print(f"wrote {output}")


def _report(console: Any, model: Any) -> None:
    """Say who competed for the fit and whether a row of interest was found."""
    lines = [line for line in getattr(model, "contest_", ()) if line["log_score"] is not None]
    if not lines:
        return
    from rich.table import Table

    score = next(name for name in ("auc", "accuracy", "r2") if name in lines[0])
    table = Table("out of fold", "", "log score", score.upper(), "weight", box=None)
    kept = [line for line in lines if line["weight"] > 0][:MOST_LINES]
    other = next((line for line in lines if line not in kept and line["solver"] == "uniform"), None)
    for line in [*kept, *([other] if other else [])]:
        numbers = f"{line['log_score']:.3f}", f"{line[score]:.3f}", f"{line['weight']:.2f}"
        table.add_row(line["solver"], line["what"], *numbers)
    console.print(table)
    console.print(f"{len(model.contest_)} ways to fit were compared.")
    if model.has_row_of_interest_ is False:
        console.print("No row of interest was found: do not read located rows as an answer.")


def _heads(heads: str) -> int | str:
    if heads == "auto":
        return heads
    if not heads.isdigit() or int(heads) < 1:
        raise ValueError(f"--heads must be a positive whole number or auto, got {heads!r}.")
    return int(heads)


def _are_classes(y: Any, family: str) -> bool:
    """Take words, truth values and few whole numbers as classes, unless a family is given."""
    import numpy as np

    from diagatt.families import get_family

    if family != "auto":
        return get_family(family).classifies
    return y.dtype.kind in "OUSb" or (y.dtype.kind in "iu" and len(np.unique(y)) <= MAX_CLASSES)
