"""Help and messages in a terminal of 80 columns."""

from itertools import pairwise

import numpy as np
import pytest
from typer.testing import CliRunner

from diagatt.certainty.summary import Summary, coefficient
from diagatt.commands.cli import app
from diagatt.commands.messages import fitted, said


@pytest.mark.parametrize(
    "command", ["fit", "cv", "predict", "evaluate", "explain", "plot", "store write", "bench run"]
)
def test_help_fills_its_lines(command):
    done = CliRunner().invoke(app, [*command.split(), "--help"], env={"COLUMNS": "80"})
    assert done.exit_code == 0
    assert max(map(len, done.output.splitlines())) <= 80
    assert "<bool>" not in done.output
    assert "<path>  " not in done.output.partition("Options")[2]
    text = done.output.partition("Arguments")[0].partition("Options")[0]
    lines = [line.strip() for line in text.splitlines()]
    for line, following in pairwise(lines):
        if line and following and "Usage" not in line:  # the next word did not fit
            assert len(line) + 1 + len(following.split()[0]) > 76


@pytest.mark.parametrize("group", ["", "store", "study", "bench"])
def test_flags_of_groups_have_no_value(group):
    done = CliRunner().invoke(app, [*group.split(), "--help"], env={"COLUMNS": "80"})
    assert done.exit_code == 0
    assert "--help" in done.output
    assert "<bool>" not in done.output


def test_messages_break_between_words():
    message = "error: " + "a-long-file.csv " * 20
    lines = fitted(message, 80).splitlines()
    assert max(map(len, lines)) <= 80
    assert " ".join(lines).split() == message.split()
    assert fitted(message) == message  # not a terminal


def test_a_summary_shows_names_whole_in_79_columns():
    names = ["x0", "gene_093_expression", "a_feature_whose_name_is_longer_than_its_column"]
    lines = [coefficient("head 0", name, -1.5, 0.5) for name in names]
    text = str(Summary("t", {}, [*lines, coefficient("shared", "intercept", 2.0, np.nan)], []))
    assert all(name in text for name in names)
    assert max(map(len, text.splitlines())) == 79
    ends = [line.split()[-1] for line in text.splitlines() if "-1.5" in line]
    assert len(ends) == 3  # each has its numbers
    assert len(set(ends)) == 1


@pytest.mark.parametrize("note", ["optimizer='lbfgs'", "RowStore.write", "RowStore.index"])
def test_words_of_python_do_not_reach_the_command_line(note, tmp_path):
    sentences = {
        "optimizer='lbfgs'": "no standard errors: the fit ended 2 of one before its minimum; use "
        "optimizer='lbfgs' or more epochs.",
        "RowStore.write": "s does not exist: a row store is a folder that RowStore.write made.",
        "RowStore.index": "s is not a row store: it has no store.json. For a folder of shards call "
        "RowStore.index(folder).",
    }
    assert note in sentences[note]
    assert note not in said(sentences[note])
