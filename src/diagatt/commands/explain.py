"""``diagatt explain``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from diagatt.commands import options, outputs


def explain(
    model: options.Model,
    data: options.Data,
    output: options.Output = Path("page.html"),
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    drop: options.Drop = "",
    cache: options.Cache = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Write one page that shows which rows decided: open it in any browser, no network needed.

    Example: `diagatt explain m.safetensors reviews.csv -o page.html`
    """
    with outputs.writing(output, {"MODEL": model, "DATA": data}, overwrite=overwrite):
        from diagatt.kinds.answers import answer
        from diagatt.kinds.files import load_model, read_inputs
        from diagatt.report import write_page

        fitted, columns = load_model(model)
        fitted = options.with_cache(fitted, cache)
        inputs = read_inputs(data, options.without(columns, drop))
        inputs = inputs.kind.in_memory(inputs)
        answers = answer(fitted, inputs.X, inputs.named_covariates)
        write_page(
            output,
            answers.estimator,
            answers.rows,
            inputs.y,
            ids=inputs.ids,
            title=title or f"{data.name}: which rows decided?",
            covariates=inputs.named_covariates,
            **inputs.kind.drawing(answers.prepared),
        )
    size = output.stat().st_size / 2**20
    typer.echo(f"wrote {output}: {len(inputs)} samples, {size:.1f} MB")
