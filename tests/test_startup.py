"""What importing an estimator and what a wrong command leave for later: scores, plots, torch."""

import subprocess
import sys

import pytest

from diagatt import DiagAttRegressor, simulate
from diagatt.kinds import Columns
from diagatt.kinds.files import save_model

LATER = (
    "decomposition",
    "linear_model",
    "metrics",
    "model_selection",
    "pipeline",
    "preprocessing",
    "svm",
    "kernel_approximation",
)


def test_an_estimator_is_imported_without_what_few_fits_need():
    code = "import sys; from diagatt import DiagAttClassifier; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert "sklearn.base" in loaded  # the list is one of modules
    unwanted = {f"sklearn.{name}" for name in LATER} | {"matplotlib"}
    assert not unwanted & loaded


@pytest.fixture
def files(tmp_path):
    """Return a folder with a table, and a model that knows other columns."""
    lines = [f"{i},{i % 3},{i % 2},{i % 5}" for i in range(20)]
    (tmp_path / "t.csv").write_text("\n".join(["id,a,b,y", *lines]), encoding="utf-8")
    data = simulate.regression(60, p=4, d=2, seed=0)
    model = DiagAttRegressor(solver="likelihood", random_state=0).fit(data.X, data.y)
    columns = Columns(asked={"sample": "id"}, target="y", features=("a", "c"))
    save_model(model, tmp_path / "m", columns)
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        "fit t.csv --sample id --target y --features a,c",
        "cv t.csv --sample id --target c",
        "predict m t.csv",
        "evaluate m t.csv",
        "explain m t.csv -o page.html",
    ],
)
def test_a_wrong_column_is_named_without_torch(files, command):
    code = (
        "import sys\n"
        "from diagatt.commands.cli import main\n"
        f"sys.argv = ['diagatt', *{command.split()!r}]\n"
        "try:\n"
        "    main()\n"
        "except SystemExit as end:\n"
        "    print(end.code, *({'torch', 'sklearn'} & set(sys.modules)))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=files, timeout=600
    )
    assert "has no column 'c'" in run.stderr
    assert run.stdout.split() == ["1"]


@pytest.mark.parametrize("switch", ["enable", "disable"])
def test_an_import_leaves_the_collection_of_garbage_as_it_was(switch):
    code = f"import gc; gc.{switch}(); from diagatt import RaggedRows; print(gc.isenabled())"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == str(switch == "enable")
