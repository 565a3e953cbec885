"""The command line as tests run it, and a table of visits that they give it."""

import numpy as np
import pyarrow as pa
from pyarrow import csv
from typer.testing import CliRunner

from diagatt import simulate
from diagatt.commands.cli import app


def run(*arguments, columns=None):
    """Return the result of ``diagatt`` with these arguments, in a terminal of so many columns."""
    env = None if columns is None else {"COLUMNS": str(columns)}
    return CliRunner().invoke(app, [str(a) for a in arguments], env=env)


def answer(*arguments, columns=None):
    """Return the exit code, and the output with the exception if there is one."""
    done = run(*arguments, columns=columns)
    return done.exit_code, done.output + (str(done.exception) if done.exception else "")


def write_visits(path, n, columns):
    """Write a long table of n patients with features a and b; return its path.

    `columns` maps the simulated samples to further columns with one entry per patient.
    """
    data = simulate.regression(n, p=(2, 4), d=2, mu=(3,), sigma2=(4,), seed=0)
    owner = np.repeat(np.arange(n), data.X.lengths)
    table = {
        "patient": [f"{i:03d}" for i in owner],
        "a": data.X.values[:, 0],
        "b": data.X.values[:, 1],
    }
    further = {name: np.asarray(values)[owner] for name, values in columns(data).items()}
    csv.write_csv(pa.table(table | further), path)
    return path
