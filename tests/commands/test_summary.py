"""``diagatt summary`` prints what `summary()` says of the model in a file."""

import numpy as np
import pytest
from typer.testing import CliRunner

from diagatt import DiagAttRegressor, PooledRegressor, simulate
from diagatt.commands.cli import app
from diagatt.solvers import Uniform


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    data = simulate.regression(80, p=4, d=2, mu=(3,), sigma2=(3,), seed=0)
    path = tmp_path_factory.mktemp("summary") / "m.safetensors"
    DiagAttRegressor(solver="likelihood", random_state=0).fit(data.X, data.y).save(path)
    return path


def said(*arguments):
    result = CliRunner().invoke(app, ["summary", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


def test_every_form(file):
    summary = DiagAttRegressor.load(file).summary()
    assert said(file).strip() == str(summary)
    assert said(file, "--as", "latex").strip() == summary.to_latex()
    assert said(file, "--as", "html").strip() == summary.to_html()
    first, line, *_ = said(file, "--as", "csv", "--level", "0.9").splitlines()
    assert first == "head,feature,estimate,se,low,high,p_value"
    wanted = DiagAttRegressor.load(file).summary(0.9).coefficients[0]
    assert float(line.split(",")[4]) == pytest.approx(wanted["low"])


def test_a_model_without_coefficients_is_refused(tmp_path):
    PooledRegressor().fit(np.random.default_rng(0).normal(size=(20, 3, 2)), np.arange(20.0)).save(
        tmp_path / "p.safetensors"
    )
    result = CliRunner().invoke(app, ["summary", str(tmp_path / "p.safetensors")])
    assert "no summary" in str(result.exception)


def test_a_fit_that_tested_nothing_says_so(tmp_path):
    """One solver does not test it: attention is uneven on noise as well."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4, 2)), rng.normal(size=60)
    DiagAttRegressor(solver="likelihood", random_state=0).fit(X, y).save(tmp_path / "m")
    for command in ("summary", "info"):
        said = (
            CliRunner().invoke(app, [command, str(tmp_path / "m")], env={"COLUMNS": "200"}).output
        )
        assert "row of interest" in said
        assert "not tested" in said
    assert DiagAttRegressor.load(tmp_path / "m").has_row_of_interest_ is None


def test_of_many_coefficients_the_largest_are_printed(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2, 120)), rng.normal(size=30)
    model = DiagAttRegressor(solver=Uniform(), random_state=0).fit(X, y)
    model.save(tmp_path / "m")
    largest = np.argsort(-np.abs(model.value_.ravel()))
    short = CliRunner().invoke(app, ["summary", str(tmp_path / "m")]).output
    assert "81 smaller coefficients are not shown: pass --all." in short
    assert f" x{largest[0]} " in short
    assert f" x{largest[-1]} " not in short
    whole = CliRunner().invoke(app, ["summary", str(tmp_path / "m"), "--all"]).output
    assert f" x{largest[-1]} " in whole
    assert "not shown" not in whole
