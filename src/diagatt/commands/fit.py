"""``diagatt fit``."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diagatt.commands import evaluate, input_facts, options, outputs
from diagatt.commands.messages import about, caution, counted
from diagatt.files import version
from diagatt.kinds.base import survival

if TYPE_CHECKING:
    from diagatt.kinds import Inputs

# Lines of the contest that are shown.
MOST_LINES = 6
# What a contest may compare besides log scores.
SCORES = ("auc", "accuracy", "r2", "concordance")


def fit(
    data: options.Data,
    output: options.Output = Path("model.safetensors"),
    target: options.Target = None,
    covariates: options.Covariates = "",
    features: options.Features = "",
    drop: options.Drop = "",
    id: options.Id = None,
    categories: options.Categories = "",
    groups: options.Groups = None,
    row_weight: options.RowWeight = None,
    exposure: options.Exposure = None,
    offset: options.Offset = None,
    time: options.Time = None,
    event: options.Event = None,
    start: options.Start = None,
    class_weight: options.ClassWeight = None,
    family: options.Family = "auto",
    heads: options.Heads = "1",
    solver: options.SolverName = "auto",
    missing: options.Missing = "refuse",
    split: Annotated[
        float,
        typer.Option(
            min=0.0, max=0.9, help="Share held out to see how good the model is.", metavar="SHARE"
        ),
    ] = 0.0,
    refit: Annotated[
        bool, typer.Option("--refit", help="After --split, fit the model to all samples.")
    ] = False,
    seed: options.Seed = 0,
    memory: options.Memory = 1024,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="Checkpoint file (stores only); default: next to the output.", metavar="FILE"
        ),
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

    `diagatt fit cells.csv --sample patient --target ill --missing marginalize`

    `diagatt fit visits.csv --sample patient --time days --event died`

    `diagatt fit cells.csv --sample patient --target relapses --family poisson --exposure years`

    A folder that `diagatt store write` made is fitted in bounded memory, by one process or many.
    If it is killed, the same command continues:

    `diagatt fit store/ -o m.safetensors --memory 512`

    `torchrun --nproc-per-node 4 --max-restarts 3 -m diagatt fit store/ -o m.safetensors`
    """
    changed = options.of_model(heads, family, solver, missing)
    known = {"exposure": exposure, "offset": offset, "time": time, "event": event, "start": start}
    named = (target, covariates, features, drop, id, groups, categories, known)
    columns = options.columns(asked, *named, row_weight)
    columns = replace(columns, takes_empty=missing == "marginalize")
    if class_weight not in (None, "balanced"):
        raise ValueError(f"--class-weight must be balanced, got {class_weight}.")
    if refit and not split:
        raise ValueError("--refit goes with --split: without it, the model is fitted to all.")
    state = checkpoint or _state_of(output)
    # A process that torchrun restarts may find the model that it wrote before it was killed.
    job = options.restartable_job()
    allowed = overwrite or (job is not None and job.has_passed("output"))
    with outputs.writing(output, {"DATA": data}, overwrite=allowed):
        if options.is_stored(data):
            reads = {"DATA": data, "--output": output}
            outputs.check(state, reads, option="--checkpoint", resumes=True)
        elif checkpoint is not None:
            raise ValueError(
                f"--checkpoint {checkpoint} is for stores: samples in memory are fitted at once."
            )
        # A checkpoint that was not there when the job began is the job's own.
        owns_state = job is not None and job.has_passed("no checkpoint")
        if job is not None:
            if not job.has_passed("output") and not state.exists():
                job.note_passed("no checkpoint")
            job.note_passed("output")

        from diagatt.kinds.files import read_inputs

        # Before torch is imported, so that a wrong name of a column is answered at once.
        inputs = read_inputs(data, columns, need_target=True, memory=memory)

        from rich.console import Console

        from diagatt.distributed import joined

        with joined() as group:
            console = Console(highlight=False, quiet=group.rank > 0)
            given = (console, inputs, data, output, state, changed, seed, asked, class_weight)
            job_of_fit = _Fit(*given, owns_state=owns_state)
            job_of_fit.run(group, split, refit, family)


def _state_of(output: Path) -> Path:
    """Return the checkpoint of fits in passes, unless another is named."""
    return output.parent / f"{output.name}.checkpoint"


@dataclass
class _Fit:
    """One run of the command."""

    console: Any
    inputs: Inputs
    data: Path
    output: Path
    state: Path  # the checkpoint of fits in passes
    changed: dict[str, Any]
    seed: int
    asked: dict[str, Any]
    class_weight: str | None = None
    owns_state: bool = False  # whether an earlier attempt of this job wrote the checkpoint

    def run(self, group: Any, split: float, refit: bool, family: str) -> None:
        """Say what was understood, fit, save, and score what was held out."""
        kind, console = self.inputs.kind, self.console
        train, held_out = kind.split(self.inputs, split, self.seed)
        assert train.y is not None
        classes = input_facts.are_classes(train.y, family)
        if self.class_weight is not None and not classes:
            raise ValueError("--class-weight is for classes, and the responses are numbers.")
        if len(train) < 2:
            raise ValueError(
                f"{self.data} has one sample to fit to: name the column that tells samples apart, "
                "or give more samples."
            )
        model = self._model(classes, train)
        part = f"{len(train)} of {len(self.inputs)}" if held_out is not None else str(len(train))
        processes = f", {group.size} processes" if group.size > 1 else ""
        title = f"{type(model).__name__}: {part} samples from {self.data}{processes}"
        said = input_facts.facts(self.inputs, classes, family)
        input_facts.show(console, title, {k: v for k, v in said.items() if k != "samples"})
        for hint in kind.hints(self.inputs, **options.settings(self.asked, kind)):
            console.print(f"hint: {hint}", markup=False)
        self._fit(model, train, group)
        if group.rank > 0 and not refit:
            return
        report(console, getattr(model, "estimator_", model))
        if held_out is not None and group.rank == 0:
            found = evaluate.scored(model, held_out, str(self.data))
            evaluate.show(console, f"{counted(len(held_out))} held out", found)
        if refit:
            model = self._model(classes, self.inputs)
            self._fit(model, self.inputs, group)
            if group.rank > 0:
                return
        if held_out is not None:
            whole = (
                f"all {counted(len(self.inputs))}" if refit else f"the other {counted(len(train))}"
            )
            more = "" if refit else "; --refit would fit it to all"
            console.print(f"The saved model is fitted to {whole}{more}.", soft_wrap=True)
        console.print(f"wrote {self.output}", soft_wrap=True)

    def _model(self, classes: bool, train: Inputs) -> Any:
        own = options.settings(self.asked, self.inputs.kind)
        if "time" in self.inputs.columns.known:
            return survival(self.inputs.kind, self.changed, self.seed)
        return self.inputs.kind.model(classes, len(train), self.changed, self.seed, **own)

    def _fit(self, model: Any, train: Inputs, group: Any) -> None:
        """Fit and save; a checkpoint that this fit wrote is removed when it is done."""
        from diagatt.certainty import NoRowOfInterestWarning
        from diagatt.kinds.files import save_model

        before = version(self.state)
        if self.inputs.kind.in_passes:
            model.set_params(checkpoint=str(self.state), verbose=group.rank == 0)
        with about(train.ids), warnings.catch_warnings():
            warnings.simplefilter("ignore", NoRowOfInterestWarning)  # `report` says it
            if self.state == _state_of(self.output):  # nobody has asked for a checkpoint
                warnings.filterwarnings("ignore", "checkpoint .* was not used")
            self.inputs.kind.fit(model, train, self.class_weight)
        if group.rank > 0:
            return
        if self.inputs.kind.in_passes:
            model.set_params(checkpoint=None)
        save_model(model, self.output, self.inputs.columns)
        written = self.owns_state or version(self.state) != before
        if self.inputs.kind.in_passes and written:
            self.state.unlink(missing_ok=True)


def report(console: Any, model: Any) -> None:
    """Print which ways to fit were compared, and whether a row of interest was found."""
    lines = [line for line in getattr(model, "contest_", ()) if line["log_score"] is not None]
    if lines:
        _show_contest(console, model, lines)
    for line in caution(model):
        console.print(line)


def _show_contest(console: Any, model: Any, lines: list[dict[str, Any]]) -> None:
    from rich.table import Table

    from diagatt.metrics import score_name
    from diagatt.solvers import SOLVERS

    score = next(name for name in SCORES if name in lines[0])
    table = Table("out of fold", "", "log score", score_name(score), "weight", box=None)
    kept = [line for line in lines if line["weight"] > 0][:MOST_LINES]
    rest = [line for line in lines if line not in kept]
    without_attention = [line for line in rest if not SOLVERS[line["solver"]].attends]
    for line in [*kept, *without_attention[:1]]:
        numbers = f"{line['log_score']:.3f}", f"{line[score]:.3f}", f"{line['weight']:.2f}"
        table.add_row(line["solver"], line["what"], *numbers)
    console.print(table)
    console.print(f"{len(model.contest_)} ways to fit were compared.")
