"""``diagatt fit``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from diagatt.commands import options


def fit(
    data: options.Data,
    output: options.Output = Path("model.safetensors"),
    target: options.Target = None,
    text: options.Text = None,
    image: options.Image = None,
    rows: options.Rows = None,
    sample: options.Sample = None,
    covariates: options.Covariates = "",
    family: Annotated[
        str,
        typer.Option(help="auto, gaussian, poisson, gamma, bernoulli or multinomial."),
    ] = "auto",
    heads: Annotated[str, typer.Option(help="Rows of interest a sample, or auto.")] = "1",
    solver: Annotated[str, typer.Option(help="auto, likelihood or gradient.")] = "auto",
    preset: Annotated[
        str, typer.Option(help="Of texts: text (their tone) or keyword (one word decides).")
    ] = "text",
    split: Annotated[
        float, typer.Option(min=0.0, max=0.9, help="Part held out to see how good the model is.")
    ] = 0.0,
    seed: Annotated[int, typer.Option(help="Of everything random.")] = 0,
    patch: Annotated[int, typer.Option(min=1, help="Side of the patches of images.")] = 8,
    stride: Annotated[
        int | None, typer.Option(min=1, help="Step from patch to patch; its side by default.")
    ] = None,
    memory: options.Memory = 1024,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Of a store: where the state is kept; beside the output by default."),
    ] = None,
) -> None:
    """Fit a model to samples and write it to one file.

    Words, truth values and few whole numbers as responses are classes; other numbers are
    predicted as such.

    For example:

    `diagatt fit reviews.csv --text review --target label -o reviews.safetensors`

    `diagatt fit scans.csv --image file --target diagnosis --patch 16`

    `diagatt fit cells.parquet --rows cells --target age --covariates sex,batch --split 0.2`

    A folder that `diagatt store write` made is fitted in bounded memory, by one process or many;
    killed, the same command goes on:

    `diagatt fit store/ -o m.safetensors --memory 512`

    `torchrun --nproc-per-node 4 --max-restarts 3 -m diagatt fit store/ -o m.safetensors`
    """
    import numpy as np
    from rich.console import Console

    from diagatt.commands.inputs import Columns, read_inputs
    from diagatt.commands.models import Choice, new_model, save_model
    from diagatt.commands.scores import extra, scores

    number = heads if heads == "auto" else _whole(heads)
    choice = Choice(family, number, solver, seed, patch, stride, preset)
    if data.is_dir():
        from diagatt.commands.stored import fit_store

        fit_store(data, output, choice, split, memory, checkpoint)
        return
    console = Console(highlight=False)
    columns = Columns(rows, sample, text, image, target, options.names(covariates))
    inputs = read_inputs(data, columns, need_target=True)
    order = np.random.default_rng(seed).permutation(len(inputs))
    held = order[: round(split * len(inputs))]
    train = inputs.take(np.sort(order[len(held) :])) if len(held) else inputs
    model = new_model(train, choice)
    console.print(f"{type(model).__name__}: {len(train)} samples from {data}")
    model.fit(train.X, train.y, **extra(train))
    save_model(model, output, inputs.columns)
    if len(held):
        found = scores(model, inputs.take(np.sort(held)))
        said = ", ".join(f"{name} {value:.4f}" for name, value in found.items())
        console.print(f"on {len(held)} samples held out: {said}")
    console.print(f"wrote {output}")


def _whole(heads: str) -> int:
    if not heads.isdigit() or int(heads) < 1:
        raise ValueError(f"--heads must be a positive whole number or auto, got {heads!r}.")
    return int(heads)
