"""A kind is one class: the commands learn its options, columns and drawing from the registry."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from diagatt import DiagAttRegressor, RaggedRows
from diagatt.commands.cli import app
from diagatt.kinds import KINDS, Columns, Inputs, Kind, Option


def run(*arguments):
    done = CliRunner().invoke(app, [str(a) for a in arguments])
    assert done.exit_code == 0, (done.output, done.exception)
    return done.output


@pytest.fixture
def genes(tmp_path):
    """A toy kind: letters as one-hot rows; and a table whose response hangs on the letter G."""

    class Gene(Kind):
        name = "gene"
        columns = (Option("gene", "Column of genes."),)
        settings = (Option("letters", "Letters.", default="ACGT"),)

        def samples(self, table, column):
            words = table.strings(column)
            codes = [np.array(["ACGT".index(c) for c in word]) for word in words]
            return RaggedRows.from_samples([np.eye(4)[code] for code in codes]), words

        def places(self, answers, head):
            rows = answers.located[:, head]
            codes = [x[row].argmax() for x, row in zip(answers.rows, rows, strict=True)]
            return super().places(answers, head) | {"letter": ["ACGT"[code] for code in codes]}

        def drawing(self, prepared):
            texts = ["".join("ACGT"[k] for k in x.argmax(axis=1)) for x in prepared]
            spans = [[(j, j + 1) for j in range(len(text))] for text in texts]
            return {"texts": texts, "spans": spans}

    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("ACT"), 5)) for _ in range(200)]
    words = [w if i % 2 else w[: i % 5] + "G" + w[i % 5 :] for i, w in enumerate(words)]
    lines = [f"{w},{3.0 * ('G' in w) + 0.01 * i}" for i, w in enumerate(words)]
    (tmp_path / "g.csv").write_text("\n".join(["dna,y", *lines]))
    yield tmp_path
    del KINDS["gene"]


def test_a_new_kind_is_one_class(genes):
    assert "Column of genes." in " ".join(run("fit", "--help").replace("│", " ").split())
    model, table = genes / "m", genes / "g.csv"
    run("fit", table, "--gene", "dna", "--target", "y", "-o", model, "--solver", "likelihood")
    assert DiagAttRegressor.load(model).n_features_in_ == 4
    assert "dna" in run("info", model)
    run("predict", model, table, "-o", genes / "p.jsonl")
    lines = [json.loads(line) for line in (genes / "p.jsonl").read_text().splitlines()]
    for line in lines:
        assert line["sample"][line["head0_row"]] == line["head0_letter"]
    run("explain", model, table, "-o", genes / "page.html")
    page = (genes / "page.html").read_text(encoding="utf-8")
    assert lines[0]["sample"] in page
    assert "RMSE" in run("evaluate", model, table)
    run("store", "write", genes / "store", table, "--gene", "dna", "--target", "y")
    run("predict", model, genes / "store", "-o", genes / "out")


def test_settings_of_another_kind_are_refused(genes):
    arguments = ["fit", genes / "g.csv", "--gene", "dna", "--target", "y"]
    for option, value in (("--patch", 4), ("--preset", "keyword")):
        done = CliRunner().invoke(app, [*map(str, arguments), option, str(value)])
        assert f"{option} {value} is for " in str(done.exception)
    done = CliRunner().invoke(
        app, ["fit", str(genes / "g.csv"), "--text", "dna", "--target", "y", "--letters", "AC"]
    )
    assert "--letters AC is for genes: name their column with --gene." in str(done.exception)


def test_a_split_holds_groups_out_together():
    groups = np.repeat(list("abcdefgh"), [3, 9, 4, 7, 5, 6, 4, 2])
    X = RaggedRows.from_rows(np.arange(40.0)[:, None])
    inputs = Inputs(KINDS["rows"], X, np.zeros(40), None, range(40), Columns(), groups)
    for seed in range(5):
        train, test = KINDS["rows"].split(inputs, 0.3, seed)
        assert not set(train.groups) & set(test.groups)
        assert len(train) + len(test) == 40
        assert abs(len(test) - 12) <= 5  # half of the largest group
    one = Inputs(KINDS["rows"], X, np.zeros(40), None, range(40), Columns(), np.array(["a"] * 40))
    with pytest.raises(ValueError, match="one group"):
        KINDS["rows"].split(one, 0.3, 0)
