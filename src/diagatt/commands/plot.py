"""``diagatt plot``: every figure of `diagatt.plots` from a model file, without code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diagatt.commands import input_facts, options, outputs
from diagatt.commands.messages import caution

if TYPE_CHECKING:
    from diagatt.kinds import Inputs
    from diagatt.kinds.answers import Answers

ENDINGS = (".png", ".pdf", ".svg")
DPI = 200


def plot(
    figure: Annotated[str, typer.Argument(help="What to draw; see below.", metavar="FIGURE")],
    model: options.Model,
    data: Annotated[
        Path | None, typer.Argument(help="Samples, for figures that show some.", metavar="[DATA]")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="PNG, PDF or SVG file; default: FIGURE.png.", metavar="FILE"
        ),
    ] = None,
    of: Annotated[
        str | None,
        typer.Option(help="Sample to draw, by its id; default: the first.", metavar="ID"),
    ] = None,
    drop: options.Drop = "",
    cache: options.Cache = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Draw one figure of a model to a file.

    Of the model itself: `coefficients`, `contest` (the ways to fit that were compared), `history`.

    Of one sample (`--of ID`): `attention`, `top-rows`, `words` (texts), `patches` (images).

    Of all samples: `scores`, `heads` (how much attention heads share), and with known responses
    `roc`, `calibration`, `confusion` (classes), `observed-predicted` (numbers) or `survival`
    (times to an event, by predicted risk).

    Example: `diagatt plot attention m.safetensors cells.csv --of 007 -o attention.pdf`
    """
    if figure not in FIGURES:
        raise ValueError(f"there is no figure {figure!r}: choose among {', '.join(FIGURES)}.")
    path = output or Path(f"{figure}.png")
    if path.suffix not in ENDINGS:
        raise ValueError(f"{path}: figures are written as {', '.join(ENDINGS)}.")
    reads = {"MODEL": model} | ({} if data is None else {"DATA": data})
    with outputs.writing(path, reads, overwrite=overwrite):
        chosen = FIGURES[figure]
        _check_samples(figure, data, {"--of": of, "--drop": drop, "--cache": cache})
        import matplotlib as mpl

        mpl.use("Agg")
        from diagatt.files import write_atomically
        from diagatt.plots.canvas import figure_bytes

        subject = _subject(model, data, drop, cache, of, chosen.needs == "responses")
        ax = chosen.draw(subject)
        content = figure_bytes(ax.figure, path.suffix[1:], dpi=DPI)
        write_atomically(path, content)
    shows_rows = chosen.needs == "samples"
    typer.echo("\n".join([f"wrote {path}", *(caution(subject.model) if shows_rows else ())]))


def _check_samples(figure: str, data: Path | None, given: dict[str, Any]) -> None:
    """Refuse a figure without the samples that it shows, and samples that it does not show."""
    chosen = FIGURES[figure]
    if data is None and chosen.needs != "model":
        raise ValueError(f"the figure {figure} shows samples: name their file after the model.")
    if chosen.needs == "model":
        for option, value in given.items():
            if value:
                raise ValueError(f"{option} {value} is for figures of samples, not {figure}.")
        if data is not None:
            raise ValueError(f"the figure {figure} shows the model alone: leave {data} out.")
    if given["--of"] is not None and chosen.draw not in ONE_SAMPLE:
        raise ValueError(f"--of {given['--of']} is for figures of one sample, not {figure}.")


@dataclass
class _Subject:
    """A model and, if there are any, samples to draw."""

    model: Any
    inputs: Inputs | None
    of: str | None

    @property
    def estimator(self) -> Any:
        return getattr(self.model, "estimator_", self.model)

    @cached_property
    def answers(self) -> Answers:
        from diagatt.kinds.answers import answer

        assert self.inputs is not None
        inputs = self.inputs
        return answer(self.model, inputs.X, inputs.named_covariates, inputs.known)

    @cached_property
    def index(self) -> int:
        """Which sample is drawn."""
        assert self.inputs is not None
        ids = [str(i) for i in self.inputs.ids]
        if self.of is not None and self.of not in ids:
            raise ValueError(f"--of {self.of}: there is no such sample; the first is {ids[0]}.")
        return 0 if self.of is None else ids.index(self.of)

    @property
    def weights(self) -> Any:
        """Attention of the sample that is drawn, (p, R)."""
        return self.all_weights[self.index]

    @property
    def all_weights(self) -> Any:
        if self.answers.weights is None:
            raise ValueError(f"{type(self.estimator).__name__} has no attention to draw.")
        return self.answers.weights

    @property
    def title(self) -> str:
        assert self.inputs is not None
        return f"sample {self.inputs.ids[self.index]}"

    def drawing(self, *names: str) -> list[Any]:
        """Return what rows are drawn on: texts and spans, images and boxes."""
        assert self.inputs is not None
        found = self.inputs.kind.drawing(self.answers.prepared)
        if names[0] not in found:
            raise ValueError(f"the model has no {names[0]} to draw rows on.")
        return [found[name][self.index] for name in names]


def _subject(
    model: Path, data: Path | None, drop: str, cache: Path | None, of: str | None, responses: bool
) -> _Subject:
    from diagatt.kinds.files import load_model, read_inputs

    fitted, columns = load_model(model)
    fitted = options.with_cache(fitted, cache)
    if data is None:
        return _Subject(fitted, None, of)
    inputs = read_inputs(data, options.without(columns, drop), need_target=responses)
    return _Subject(fitted, inputs.kind.in_memory(inputs), of)


def _fitted(subject: _Subject, attribute: str) -> Any:
    found = getattr(subject.estimator, attribute, None)
    if found is None:
        raise ValueError(f"{type(subject.estimator).__name__} has no {attribute} to draw.")
    return found


def _coefficients(subject: _Subject) -> Any:
    from diagatt import plots

    return plots.coefficients(_fitted(subject, "summary")())


def _contest(subject: _Subject) -> Any:
    from diagatt import plots

    if not len(_fitted(subject, "contest_")):
        raise ValueError("this fit was no contest: only --solver auto compares ways to fit.")
    return plots.contest(subject.estimator.contest_)


def _history(subject: _Subject) -> Any:
    from diagatt import plots

    history = _fitted(subject, "history_")
    if not len(history) and len(getattr(subject.estimator, "contest_", ())):
        raise ValueError(
            "the model is a blend of several fits, which keep no history: draw contest, or fit "
            "with one --solver."
        )
    return plots.history(history)


def _attention(subject: _Subject) -> Any:
    from diagatt import plots

    ax = plots.attention(subject.weights)
    ax.set_title(subject.title, fontsize=10, parse_math=False)
    return ax


def _top_rows(subject: _Subject) -> Any:
    from diagatt import plots

    rows, names = subject.answers.rows, None
    if getattr(rows, "row_ids", None) is not None:
        start, stop = rows.offsets[subject.index : subject.index + 2]
        names = rows.row_ids[start:stop].tolist()
    ax = plots.top_rows(subject.weights, names=names)
    ax.set_title(subject.title, fontsize=10, parse_math=False)
    return ax


def _words(subject: _Subject) -> Any:
    from diagatt import plots

    text, spans = subject.drawing("texts", "spans")
    return plots.words(text, spans, subject.weights)


def _patches(subject: _Subject) -> Any:
    from diagatt import plots

    image, boxes = subject.drawing("images", "boxes")
    return plots.patches(image, boxes, subject.weights)


def _scores(subject: _Subject) -> Any:
    from diagatt import plots

    if subject.answers.scores is None:
        raise ValueError(f"{type(subject.estimator).__name__} has no scores to draw.")
    located, labels = subject.answers.located[:, [0]], ("located", "others")
    ax = plots.scores(subject.answers.scores, located, labels=labels)
    ax.set_title("located rows of head 0 and all others", fontsize=10)
    return ax


def _heads(subject: _Subject) -> Any:
    from diagatt import plots

    if subject.all_weights[0].shape[1] == 1:
        raise ValueError("the model has one head: the figure heads compares two or more.")
    return plots.heads(subject.all_weights)


def _classes(subject: _Subject) -> tuple[Any, Any, Any]:
    """Return responses as columns, probabilities and classes."""
    import numpy as np

    probability, inputs = subject.answers.probability, subject.inputs
    if probability is None or inputs is None:
        times = inputs is not None and inputs.y is not None and inputs.y.dtype.names
        better = "risks of an event: draw survival" if times else "numbers: draw observed-predicted"
        raise ValueError(f"the model predicts {better}.")
    classes = subject.estimator.classes_
    return np.asarray(inputs.y)[:, None] == classes, probability, classes


def _roc(subject: _Subject) -> Any:
    from diagatt import plots

    happened, probability, classes = _classes(subject)
    if len(classes) == 2:
        return plots.roc(happened[:, 1], probability[:, 1], label=str(classes[1]))
    ax = None
    for k, name in enumerate(classes):
        ax = plots.roc(happened[:, k], probability[:, k], label=str(name), ax=ax)
    return ax


def _calibration(subject: _Subject) -> Any:
    from diagatt import plots

    happened, probability, classes = _classes(subject)
    if len(classes) == 2:
        ax = plots.calibration(happened[:, 1], probability[:, 1])
        ax.set_xlabel(f"predicted probability of {classes[1]}", parse_math=False)
        return ax
    right = happened[range(len(happened)), probability.argmax(axis=1)]
    ax = plots.calibration(right, probability.max(axis=1))
    ax.set(xlabel="probability of the predicted class", ylabel="share that was right")
    return ax


def _confusion(subject: _Subject) -> Any:
    from diagatt import plots

    _, probability, classes = _classes(subject)
    predicted = classes[probability.argmax(axis=1)]
    assert subject.inputs is not None
    return plots.confusion(subject.inputs.y, predicted, classes=classes)


def _observed_predicted(subject: _Subject) -> Any:
    from diagatt import plots

    if subject.answers.probability is not None or subject.inputs is None:
        raise ValueError("the model predicts classes: draw roc, calibration or confusion.")
    y = subject.inputs.y
    if y is not None and y.dtype.names:
        raise ValueError("the model predicts risks of an event: draw survival.")
    y = input_facts.one_number(y, subject.answers.estimator)
    if y is not None and y.ndim == 2:
        raise ValueError("the model has several outcomes: `diagatt cv` draws each of them.")
    return plots.observed_predicted(y, subject.answers.prediction)


def _survival(subject: _Subject) -> Any:
    from diagatt import plots

    y = subject.inputs.y if subject.inputs else None
    if y is None or not y.dtype.names:
        raise ValueError("the model does not predict times to an event.")
    return plots.survival_by_risk(y, subject.answers.prediction)


# Figures of one sample.
ONE_SAMPLE = (_attention, _top_rows, _words, _patches)


@dataclass(frozen=True)
class _Figure:
    draw: Callable[[_Subject], Any]
    needs: str  # "model", "samples" or "responses"


#: Every figure by its name on the command line.
FIGURES: dict[str, _Figure] = {
    "coefficients": _Figure(_coefficients, "model"),
    "contest": _Figure(_contest, "model"),
    "history": _Figure(_history, "model"),
    "attention": _Figure(_attention, "samples"),
    "top-rows": _Figure(_top_rows, "samples"),
    "words": _Figure(_words, "samples"),
    "patches": _Figure(_patches, "samples"),
    "scores": _Figure(_scores, "samples"),
    "heads": _Figure(_heads, "samples"),
    "roc": _Figure(_roc, "responses"),
    "calibration": _Figure(_calibration, "responses"),
    "confusion": _Figure(_confusion, "responses"),
    "observed-predicted": _Figure(_observed_predicted, "responses"),
    "survival": _Figure(_survival, "responses"),
}
