"""``diagatt explain`` and ``diagatt info``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from diagatt.commands import options


def explain(
    model: options.Model,
    data: options.Data,
    output: options.Output = Path("page.html"),
    title: Annotated[str | None, typer.Option(help="Of the page.")] = None,
) -> None:
    """Write one page that shows which rows decided: open it in any browser, no network needed.

    Example: `diagatt explain m.safetensors reviews.csv -o page.html`
    """
    from diagatt.commands.inputs import read_inputs
    from diagatt.commands.models import load_model
    from diagatt.report import write_page

    fitted, columns = load_model(model)
    inputs = read_inputs(data, columns).in_memory()
    estimator, X, shown = _shown(fitted, inputs)
    write_page(
        output,
        estimator,
        X,
        inputs.y,
        ids=inputs.ids,
        title=title or f"{data.name}: which rows decided?",
        covariates=inputs.covariates,
        **shown,
    )
    size = output.stat().st_size / 2**20
    typer.echo(f"wrote {output}: {len(inputs)} samples, {size:.1f} MB")


def info(model: options.Model) -> None:
    """Say what a model file holds: class, settings, what it was fitted to, how it was found.

    Example: `diagatt info m.safetensors`
    """
    from rich.console import Console
    from rich.table import Table

    from diagatt.commands.models import load_model

    fitted, columns = load_model(model)
    inner = getattr(fitted, "estimator_", fitted)
    members = getattr(inner, "members_", [inner])
    blend = f" of {len(members)} members" if len(members) > 1 else ""

    def of_members(name: str) -> str:
        return ", ".join(dict.fromkeys(str(getattr(member, name, "–")) for member in members))

    facts = {
        "model": type(fitted).__name__,
        "estimator": type(inner).__name__ + blend,
        "heads": of_members("n_heads_"),
        "features": getattr(inner, "n_features_in_", "–"),
        "samples": of_members("n_samples_"),
        "solver": of_members("solver_"),
        "classes": ", ".join(str(c) for c in getattr(inner, "classes_", [])) or "–",
    }
    facts |= {f"--{k}": v for k, v in columns.asdict().items() if v}
    table = Table("", str(model), show_lines=False)
    for name, value in facts.items():
        table.add_row(name, ", ".join(value) if isinstance(value, list) else str(value))
    Console().print(table)


def _shown(model: Any, inputs: Any) -> tuple[Any, Any, dict[str, Any]]:
    """Estimator, rows, and what the page draws them on."""
    if inputs.kind == "text":
        embedded = model.embed(inputs.X)
        spans = [embedded.spans_of(i) for i in range(len(embedded))]
        return model.estimator_, embedded.rows, {"texts": embedded.texts, "spans": spans}
    if inputs.kind == "image":
        from diagatt.images import read_image

        images = [read_image(path) for path in inputs.X]
        side = model.patches_.patch_size
        boxes = []
        for image in images:
            corners = model.patches_.corners(image.shape[:2])
            boxes.append([(top, left, *side) for top, left in corners.tolist()])
        return model.estimator_, model.rows(inputs.X), {"images": images, "boxes": boxes}
    return model, inputs.X, {}
