"""The command ``diagatt``."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

import typer

from diagatt.commands import (
    bench,
    cv,
    evaluate,
    explain,
    fit,
    info,
    options,
    plot,
    predict,
    store,
    study,
    summary,
)
from diagatt.commands.help_text import Helped, HelpedGroup
from diagatt.commands.messages import fitted, said

app = typer.Typer(
    cls=HelpedGroup,
    no_args_is_help=True,
    help="Individualized sparse regression: fit, predict, and see which rows decided.",
    pretty_exceptions_enable=False,
)
app.command(cls=Helped)(options.WithKinds(fit.fit))
app.command(cls=Helped)(options.WithKinds(cv.cv))
for command in (predict.predict, evaluate.evaluate, explain.explain):
    app.command(cls=Helped)(options.WithKinds(command, fitted=True))
app.command(cls=Helped)(plot.plot)
app.command(cls=Helped)(info.info)
app.command(cls=Helped)(summary.summary)
app.add_typer(study.app, name="study")
app.add_typer(store.app, name="store")
app.add_typer(bench.app, name="bench")


def _say_version(asked: bool) -> None:
    if asked:
        from diagatt import __version__

        typer.echo(f"diagatt {__version__}")
        raise typer.Exit


@app.callback()
def set_debug(
    debug: bool = typer.Option(
        False, "--debug", metavar="", help="Show the traceback of an error."
    ),
    version: bool = typer.Option(
        False,
        "--version",
        callback=_say_version,
        is_eager=True,
        metavar="",
        help="Say the version.",
    ),
) -> None:
    """Read the options of all commands."""
    global _debug
    _debug = debug


_debug = False


@app.command(cls=Helped)
def demo() -> None:
    """Simulate, fit, predict and localize: the method in under a minute."""
    from diagatt.commands.demo import main as run_demo

    run_demo()


def _words(error: Exception) -> str:
    """Return what an error says; the system's own errors begin with a number."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}."
    return str(error)


_warned: set[str] = set()  # what has been shown: every fold of `cv` would repeat it


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Show a warning once, as a sentence, without the line of code that it comes from."""
    sentence = said(str(message))
    if sentence not in _warned:
        _warned.add(sentence)
        typer.echo(fitted(f"warning: {sentence}"), err=True)


def main() -> None:
    """Run the command; a user's mistake is one sentence, not a traceback."""
    warnings.showwarning = _show_warning
    try:
        app()
    except (ValueError, OSError, ImportError) as error:
        if _debug:
            raise
        rank = os.environ.get("RANK")  # torchrun mixes what its processes print
        who = "error" if rank is None else f"error in process {rank}"
        typer.echo(fitted(f"{who}: {said(_words(error))}"), err=True)
        # 130 is what shells expect of a program that was interrupted.
        sys.exit(130 if isinstance(error, InterruptedError) else 1)
