"""``diagatt bench`` with a set and a method of a user."""

import numpy as np
import pytest
from typer.testing import CliRunner

from diagatt.bench import METHODS
from diagatt.commands import cli
from diagatt.datasets import load_bags

METHOD = '''
import numpy as np


class Share:
    """The share of positive bags, for every bag."""

    name = "share"
    tasks = ("binary",)

    def fit(self, X, y):
        self.p = y.mean()

    def predict(self, X):
        return np.full(len(X), self.p > 0.5)

    def predict_proba(self, X):
        return np.full(len(X), self.p)
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bags = load_bags("wine", n=40)
    np.savez("mine.npz", values=bags.X.values, offsets=bags.X.offsets, y=bags.y)
    (tmp_path / "mine.py").write_text(METHOD)
    before = dict(METHODS)
    yield tmp_path
    METHODS.clear()
    METHODS.update(before)


def run(*arguments):
    result = CliRunner().invoke(cli.app, ["bench", *arguments])
    return result.exit_code, result.output, result.exception


def test_a_user_adds_bags_by_a_file_and_a_method_by_a_class(folder):
    chosen = ["--sets", "mine.npz", "--rivals", "mine.py", "--methods", "share", "--splits", "2"]
    code, said, error = run("run", *chosen)
    assert code == 0, error
    assert "2 fits run, 2 in all" in said
    assert "0 fits run, 2 in all" in run("run", *chosen)[1]
    code, said, error = run("report", *chosen)
    assert code == 0, error
    text = (folder / "results" / "bags.md").read_text()
    assert "| mine | **0.500** |" in text  # a constant has an AUC of one half
    assert isinstance(run("report", *chosen)[2], FileExistsError)


def test_what_is_unknown_is_said_before_any_work(folder):
    assert "unknown set 'moon'" in str(run("run", "--sets", "moon")[2])
    assert "unknown method 'moon'" in str(run("run", "--methods", "moon")[2])
    assert not (folder / "results").exists()


def test_the_list_names_sets_and_methods():
    code, said, _ = run("list")
    assert code == 0
    assert "digits-n100" in said
    assert "diagatt-likelihood" in said
