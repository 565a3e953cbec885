"""``diagatt summary`` prints what `summary()` says of the model in a file."""

import numpy as np
import pytest
from typer.testing import CliRunner

from diagatt import DiagAttRegressor, PooledRegressor, simulate
from diagatt.commands.cli import app


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
