"""``diagatt cv``: how well a model predicts new samples, and whether single rows matter."""

from __future__ import annotations

import sys
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diagatt.commands import input_facts, options, outputs
from diagatt.commands.messages import fitted

if TYPE_CHECKING:
    from diagatt.kinds import Inputs
    from diagatt.validation import Validation

FORMATS = ("png", "pdf", "svg")
DPI = 200


def cv(
    data: options.Data,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder to write.", metavar="FOLDER")
    ] = Path("cv"),
    target: options.Target = None,
    covariates: options.Covariates = "",
    features: options.Features = "",
    drop: options.Drop = "",
    id: options.Id = None,
    categories: options.Categories = "",
    groups: options.Groups = None,
    row_weight: options.RowWeight = None,
    exposure: options.Exposure = None,
    time: options.Time = None,
    event: options.Event = None,
    start: options.Start = None,
    class_weight: options.ClassWeight = None,
    folds: Annotated[int, typer.Option(min=2, help="Number of folds.", metavar="N")] = 5,
    family: options.Family = "auto",
    heads: options.Heads = "1",
    solver: options.SolverName = "auto",
    missing: options.Missing = "refuse",
    seed: options.Seed = 0,
    format: Annotated[
        str, typer.Option(help="Format of figures: png, pdf or svg.", metavar="KIND")
    ] = "png",
    overwrite: options.Overwrite = False,
    **asked: Any,
) -> None:
    """Cross-validate a model next to mean pooling and trees, on the same folds.

    It prints AUC, accuracy, balanced accuracy and log score of classes, or R², RMSE, mean absolute
    error and log score of numbers, or concordances of times to an event, with 95 % intervals, and
    says whether single rows matter. The folder gets the scores, the predictions for held-out
    samples, a paragraph for a methods section, and figures: ROC, calibration and confusions,
    predictions against responses, or survival by predicted risk.

    Example: `diagatt cv cells.csv --sample patient --target ill --groups site -o cv`

    `diagatt cv visits.csv --sample patient --time days --event died -o cv`

    Counts may have an exposure; the baselines then predict counts per unit of it:

    `diagatt cv visits.csv --sample patient --target relapses --family poisson --exposure years`

    Several targets are predicted together, and each has its score:

    `diagatt cv visits.csv --sample patient --target bmi,age -o cv`
    """
    if format not in FORMATS:
        raise ValueError(f"--format must be one of {', '.join(FORMATS)}, got {format!r}.")
    changed = options.of_model(heads, family, solver, missing)
    known = {"exposure": exposure, "time": time, "event": event, "start": start}
    named = (target, covariates, features, drop, id, groups, categories, known)
    columns = options.columns(asked, *named, row_weight=row_weight)
    columns = replace(columns, takes_empty=missing == "marginalize")
    with outputs.writing(output, {"DATA": data}, overwrite=overwrite, folder=True):
        from rich.console import Console

        from diagatt.kinds.files import read_inputs

        console = Console(highlight=False)
        inputs = read_inputs(data, columns, need_target=True)
        inputs = inputs.kind.in_memory(inputs)
        assert inputs.y is not None
        classes = input_facts.are_classes(inputs.y, family)
        if class_weight is not None and not classes:
            raise ValueError("--class-weight is for classes, and the responses are numbers.")
        input_facts.show(console, f"{data}:", input_facts.facts(inputs, classes, family))
        for hint in inputs.kind.hints(inputs, **options.settings(asked, inputs.kind)):
            console.print(f"hint: {hint}", markup=False)
        fold = _folds(inputs, classes, folds, seed)
        with tempfile.TemporaryDirectory() as folder:
            own = options.settings(asked, inputs.kind)
            own |= {"cache": own["cache"] or folder} if "cache" in own else {}
            found = _validate(inputs, classes, changed, own, fold, seed, class_weight)
        _report(console, found)
        samples = input_facts.in_words(inputs)
        if exposure is not None:
            samples += f", and {exposure} is the exposure of the counts"
        _write(output, found, inputs, samples, solver, seed, format)
    written = ", ".join(sorted(p.name for p in output.iterdir()))
    typer.echo(fitted(f"wrote {output}: {written}", stream=sys.stdout))


def _folds(inputs: Inputs, classes: bool, count: int, seed: int) -> Any:
    import numpy as np

    from diagatt.resampling import draw_folds

    assert inputs.y is not None
    units = inputs.y if inputs.groups is None else inputs.groups
    most = len(inputs) if inputs.groups is None else len(np.unique(units))
    what = "samples" if inputs.groups is None else f"different values of {inputs.columns.groups}"
    if count > most:
        raise ValueError(f"--folds {count} needs as many {what}, and there are {most}.")
    several = inputs.y.ndim == 2
    if classes and not several:
        labels, sizes = np.unique(inputs.y, return_counts=True)
        if len(labels) < 2:
            raise ValueError(f"all samples are of the class {labels[0]}: there is none to predict.")
        if sizes.min() < 2:
            rare = labels[sizes.argmin()]
            raise ValueError(
                f"class {rare} has one sample, which cannot be in training and in test: leave it "
                "out, or join it with another class."
            )
        count = min(count, int(sizes.max()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class with fewer samples than folds: no AUC in some
        if several:
            fold = draw_folds(inputs.y[:, 0], False, inputs.groups, count, seed)
        elif inputs.y.dtype.names is None:
            fold = draw_folds(inputs.y, classes, inputs.groups, count, seed)
        else:  # every fold has its share of events
            event = inputs.y["event"]
            both = 0 < event.sum() < len(event)
            fold = draw_folds(event, bool(both), inputs.groups, count, seed)
    fold = np.unique(fold, return_inverse=True)[1]  # large groups may leave a fold empty
    for k in range(fold.max() + 1):
        if classes and several:
            _check_labels(inputs, fold, k)
        elif classes and len(np.unique(inputs.y[fold != k])) < 2:
            raise ValueError(
                f"without fold {k + 1} there is one class only: give fewer --folds, or --groups "
                "whose classes are mixed."
            )
    return fold


def _check_labels(inputs: Inputs, fold: Any, k: int) -> None:
    """Refuse folds without which a label does not vary."""
    assert inputs.y is not None
    rest = inputs.y[fold != k].mean(axis=0)
    for name, share in zip(inputs.columns.targets, rest, strict=True):
        if share in (0, 1):
            raise ValueError(
                f"without fold {k + 1} the label {name} is {share:g} in all samples: give fewer "
                "--folds, or leave the label out."
            )


def _validate(
    inputs: Inputs,
    classes: bool,
    changed: dict,
    own: dict,
    fold: Any,
    seed: int,
    class_weight: str | None,
) -> Validation:
    import numpy as np

    from diagatt.families import counts_trials
    from diagatt.kinds.base import survival
    from diagatt.progress import progress_bar
    from diagatt.validation import Task, baselines_of, cross_validate

    family = changed.get("family", "gaussian")
    fields = np.asarray(inputs.y).dtype.names or ()
    labels = np.unique(np.asarray(inputs.y)) if classes else None
    has_outcomes = np.asarray(inputs.y).ndim == 2 and not counts_trials(family)
    several = inputs.columns.targets if has_outcomes else ()
    task = Task(labels, family, bool(fields), "start" in fields, tuple(several))

    def make(n_samples: int) -> Any:
        if task.has_times:
            return survival(inputs.kind, changed, seed)
        return inputs.kind.model(classes, n_samples, changed, seed, **own)

    fits = (int(fold.max()) + 1) * (1 + len(baselines_of(task)))
    with progress_bar("cross-validation", fits, shown=True) as advance:
        how: dict[str, Any] = {"seed": seed, "advance": advance, "class_weight": class_weight}
        return cross_validate(inputs, make, task, fold, **how)


def _report(console: Any, found: Validation) -> None:
    from rich.table import Table

    from diagatt.metrics import score_name
    from diagatt.validation import OURS
    from diagatt.validation.writing import shown_interval

    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column(f"{found.n_folds} folds", no_wrap=True)
    for method in found.predictions:
        table.add_column(method, no_wrap=True)
    classes = found.task.classes is not None
    for score in found.scores(OURS):
        cells = [
            shown_interval(score, *found.interval(method, score), classes)
            for method in found.predictions
        ]
        table.add_row(score_name(score), *cells)
    console.print()
    console.print(table)
    console.print("[dim]means over folds with 95 % corrected resampled t intervals[/dim]")
    console.print()
    seen = [k for k in found.found_rows if k is not None]
    if seen:
        console.print(
            f"The test of any row of interest found one in {sum(seen)} of {len(seen)} folds."
        )
    console.print(found.verdict(), markup=False)


def _write(
    folder: Path, found: Validation, inputs: Inputs, samples: str, solver: str, seed: int, kind: str
) -> None:
    from diagatt import __version__
    from diagatt.files import write_atomically
    from diagatt.plots.canvas import figure_bytes
    from diagatt.tables import csv_table
    from diagatt.validation.writing import figures, methods_paragraph, scores_table

    folder.mkdir(exist_ok=True)
    paragraph = methods_paragraph(found, samples, inputs.columns.groups, solver, seed, __version__)
    write_atomically(folder / "methods.md", (paragraph + "\n").encode())
    write_atomically(folder / "scores.csv", csv_table(*scores_table(found)).encode())
    write_atomically(folder / "predictions.csv", csv_table(*_predictions(found, inputs)).encode())
    for name, figure in figures(found).items():
        content = figure_bytes(figure, kind, dpi=DPI)
        write_atomically(folder / f"{name}.{kind}", content)


def _predictions(found: Validation, inputs: Inputs) -> tuple[list[str], Any]:
    """Return a line per sample: its fold, its response, and what each method predicted."""
    from diagatt.families import counts_trials

    classes, head = (
        found.task.classes,
        ["sample", "fold", inputs.columns.target or inputs.kind.target],
    )
    y: Any = inputs.y
    columns: list[Any] = [inputs.ids, (found.fold + 1).tolist()]
    if found.task.has_times:
        roles = [role for role in ("start", "time", "stop", "event") if role in y.dtype.names]
        head[2:] = roles
        columns += [y[role].tolist() for role in roles]
    elif found.task.outcomes:
        names = found.task.outcomes
        head[2:] = [
            *names,
            *(f"{m.replace(' ', '_')}_{n}" for m in found.predictions for n in names),
        ]
        columns += [
            *y.T.tolist(),
            *(line for p in found.predictions.values() for line in p.T.tolist()),
        ]
        return head, zip(*columns, strict=True)
    elif counts_trials(found.task.family):
        head[2:] = inputs.columns.targets
        columns += y.T.tolist()
    else:
        columns.append(y.tolist())
    for method, prediction in found.predictions.items():
        short = method.replace(" ", "_")
        if classes is None:
            head.append(short)
            columns.append(prediction.tolist())
            continue
        head.append(short)
        columns.append(classes[prediction.argmax(axis=1)].tolist())
        for k, name in enumerate(classes):
            head.append(f"{short}_probability_{name}")
            columns.append(prediction[:, k].tolist())
    return head, zip(*columns, strict=True)
