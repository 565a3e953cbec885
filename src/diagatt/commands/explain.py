"""``diagatt explain``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from diagatt.commands import input_facts, options, outputs
from diagatt.commands.messages import counted
from diagatt.kinds import KINDS


def explain(
    model: options.Model,
    data: options.Data,
    output: options.Output = Path("page.html"),
    title: Annotated[str | None, typer.Option(help="Title of the page.", metavar="TEXT")] = None,
    drop: options.Drop = "",
    cache: options.Cache = None,
    overwrite: options.Overwrite = False,
    outcome: Annotated[
        str | None, typer.Option(help="Which of several outcomes the page shows.", metavar="NAME")
    ] = None,
    heat_maps: Annotated[
        Path | None,
        typer.Option(
            help="Folder for a heat map and GeoJSON per slide, and top patches.", metavar="FOLDER"
        ),
    ] = None,
    mpp: Annotated[
        float | None,
        typer.Option(
            help="Micrometres per pixel, for GeoJSON of slides measured in micrometres.",
            metavar="X",
        ),
    ] = None,
    **asked: Any,
) -> None:
    """Write one page that shows which rows decided: open it in any browser, no network needed.

    Example: `diagatt explain m.safetensors reviews.csv -o page.html`

    A page shows one of several outcomes:

    `diagatt explain m.safetensors visits.csv --outcome bmi -o bmi.html`

    For slides, it also writes heat maps, which QuPath opens:

    `diagatt explain m.safetensors labels.csv --slides features --heat-maps maps`
    """
    with outputs.writing(output, {"MODEL": model, "DATA": data}, overwrite=overwrite):
        _check_ending(output)
        from diagatt.kinds.files import read_inputs, read_model_file

        if mpp is not None and heat_maps is None:
            raise ValueError("--mpp goes with --heat-maps: a page of rows has no micrometres.")
        file = read_model_file(model)
        columns = options.without(file.columns, drop, asked)
        if heat_maps is not None and not KINDS["slide"].reads(data, columns):
            raise ValueError("--heat-maps are for slides: the model was fitted to something else.")
        inputs = read_inputs(data, columns)
        fitted = options.with_cache(file.model(), cache)
        from diagatt.kinds.answers import answer
        from diagatt.report import write_page

        if hasattr(fitted, "prepare"):  # a model that makes its own rows
            inputs = inputs.kind.in_memory(inputs)
        unit = columns.known.get("exposure")
        if unit is not None and "exposure" not in inputs.known and inputs.y is not None:
            raise ValueError(
                f"{data} has responses but no {unit}, the exposure that they depend on: add the "
                "column, or take the responses out."
            )
        answers = answer(fitted, inputs.X, inputs.named_covariates, inputs.known)
        estimator, y = _of_outcome(answers.estimator, inputs, outcome)
        write_page(
            output,
            estimator,
            answers.rows,
            y,
            ids=_named(inputs),
            title=title or f"{data.name}: which rows decided?",
            covariates=inputs.named_covariates,
            **inputs.known,
            **inputs.kind.drawing(answers.prepared),
        )
        if heat_maps is not None:
            _write_heat_maps(heat_maps, fitted, data, columns, mpp)
    typer.echo(f"wrote {output}: {counted(len(inputs))}, {_size(output)}")


def _check_ending(output: Path) -> None:
    """Refuse a name that says the page were something else than HTML."""
    if output.suffix.lower() not in (".html", ".htm", ""):
        raise ValueError(f"{output}: the page is HTML: give it a name that ends in .html.")


def _size(path: Path) -> str:
    """Return the size of a file in words: "52 KB" or "1.3 MB"."""
    kilobytes = path.stat().st_size / 2**10
    return f"{kilobytes:.0f} KB" if kilobytes < 1000 else f"{kilobytes / 2**10:.1f} MB"


def _of_outcome(estimator: Any, inputs: Any, outcome: str | None) -> tuple[Any, Any]:
    """Return the model of one outcome and its responses."""
    if getattr(estimator, "n_outputs_", 1) == 1:
        if outcome is not None:
            raise ValueError("--outcome is for models of several outcomes, and this one has one.")
        return estimator, input_facts.one_number(inputs.y, estimator)
    names = [str(name) for name in estimator.outcomes_]
    if outcome is None:
        raise ValueError(
            f"the model has the outcomes {', '.join(names)}, and a page shows one: name it with "
            "--outcome."
        )
    one = estimator.outcome(outcome)
    return one, None if inputs.y is None else inputs.y[:, names.index(outcome)]


def _named(inputs: Any) -> Any:
    """Return the names of samples; with the time to their event where that is the response."""
    import numpy as np

    y = inputs.y
    if y is None or y.dtype.names is None:
        return inputs.ids
    ends = y["time" if "time" in y.dtype.names else "stop"]
    words = np.where(y["event"], "event at", "no event by")
    told = zip(inputs.ids, words, ends, strict=True)
    return [f"{name} ({word} {end:g})" for name, word, end in told]


def _write_heat_maps(folder: Path, fitted: Any, data: Path, columns: Any, mpp: Any) -> None:
    from diagatt.kinds import Slides
    from diagatt.plots.heat_maps import write_heat_maps

    kind = KINDS["slide"]
    assert isinstance(kind, Slides)
    written = write_heat_maps(folder, fitted, kind.slides(data, columns), mpp=mpp)
    typer.echo(f"wrote {folder}: {len(written) - 1} heat maps and GeoJSON files, top_patches.csv")
