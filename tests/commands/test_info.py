"""``diagatt info`` and ``diagatt plot`` against the models that they read."""

import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from diagatt import DiagAttClassifier, __version__, modelfile, simulate
from diagatt.commands.cli import app
from diagatt.commands.plot import FIGURES, _Subject

GOLDEN = sorted((Path(__file__).parents[1] / "golden" / "format1").glob("*.safetensors"))
LABELS = np.array(["a", "b", "c"])
pytestmark = pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")


def run(*arguments, columns="200"):
    return CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": columns})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Samples with classes and numbers, and a model of each, saved by the library."""
    path = tmp_path_factory.mktemp("info")
    data = simulate.regression(40, p=4, d=3, mu=(3,), sigma2=(4,), seed=0)
    arrays = {
        "values": data.X.values,
        "offsets": data.X.offsets,
        "ids": [f"s{i}" for i in range(40)],
    }
    arrays |= {"feature_names": ["CD3", "CD8", "LYZ"], "covariates": np.ones((40, 1))}
    arrays |= {"row_ids": [f"cell{j}" for j in range(160)]}
    np.savez(path / "numbers.npz", y=data.y, **arrays)
    np.savez(path / "classes.npz", y=LABELS[np.digitize(data.y, [-2, 2])], **arrays)
    for name in ("numbers", "classes"):
        done = run(
            *("fit", path / f"{name}.npz", "--solver", "likelihood", "--heads", 2),
            *("-o", path / name),
        )
        assert done.exit_code == 0, (done.output, done.exception)
    return path


def test_coefficients_are_those_of_the_model(folder):
    said = run("info", folder / "classes", "--all").output
    model = DiagAttClassifier.load(folder / "classes")
    lines = [re.split(r"\s{2,}", line.strip()) for line in said.splitlines()]
    found = {(line[0], line[1]): float(line[2]) for line in lines if line[0].startswith("head ")}
    assert len(found) == model.value_.size == 2 * 3 * 3
    for r in range(2):
        for k, label in enumerate(LABELS):
            for j, name in enumerate(["CD3", "CD8", "LYZ"]):
                value = model.value_[r, k, j]
                assert found[f"head {r} {label}", name] == pytest.approx(value, rel=1e-3)
    for fact in ("multinomial", "a, b, c", "3: CD3, CD8, LYZ", "likelihood", __version__):
        assert fact in said


def test_few_coefficients_are_shown_and_the_rest_is_counted(folder):
    said = run("info", folder / "classes", columns="80").output
    assert "smaller ones are not shown: pass --all." in said
    assert max(map(len, said.splitlines()[1:])) <= 80


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_files_of_every_class_and_of_format_1_are_told(path):
    said = run("info", path)
    assert said.exit_code == 0, said.exception
    assert "format 1" in said.output


@pytest.mark.parametrize(
    "document",
    [{}, {"class": "DiagAttRegressor", "fitted": 3}, {"class": 1, "fitted": {}, "parameters": []}],
)
def test_a_document_that_is_no_model_is_refused(tmp_path, document):
    modelfile.write(tmp_path / "m", {"value_": np.ones(2)}, document)
    done = run("info", tmp_path / "m")
    assert isinstance(done.exception, modelfile.ModelFileError)
    assert "is damaged" in str(done.exception)


def test_facts_help_and_version_need_no_torch(folder):
    for arguments in (["info", str(folder / "classes")], ["--version"], ["cv", "--help"]):
        code = (
            "import sys; from typer.testing import CliRunner; from diagatt.commands.cli import app;"
            f"assert CliRunner().invoke(app, {json.dumps(arguments)}).exit_code == 0;"
            "print([m for m in ('torch', 'sklearn', 'pyarrow') if m in sys.modules])"
        )
        line = [sys.executable, "-c", code]
        done = subprocess.run(line, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "[]", arguments
    assert run("--version").output == f"diagatt {__version__}\n"


OF = {"numbers": ["observed-predicted"], "classes": ["roc", "calibration", "confusion"]}
OF["times"] = ["survival"]
OTHERS = set(FIGURES) - {"contest", "words", "patches"} - {f for of in OF.values() for f in of}


@pytest.mark.parametrize("figure", sorted(OTHERS) + OF["classes"])
def test_figures_of_classes(folder, tmp_path, figure):
    of_a_sample = figure in ("attention", "top-rows")
    data = () if FIGURES[figure].needs == "model" else (folder / "classes.npz",)
    done = run(
        *("plot", figure, folder / "classes", *data, "-o", tmp_path / "f.svg"),
        *(("--of", "s7") if of_a_sample else ()),
    )
    assert done.exit_code == 0, done.exception
    drawn = (tmp_path / "f.svg").read_text()
    assert drawn.startswith("<?xml")
    if of_a_sample:
        assert "<!-- sample s7 -->" in drawn
    if figure == "top-rows":
        assert "<!-- cell28 -->" in drawn  # the first row of the eighth sample


def test_figures_that_the_model_cannot_fill_are_refused():
    subject = _Subject(None, None, None)
    subject.__dict__["answers"] = SimpleNamespace(weights=[np.ones((1, 1))])
    with pytest.raises(ValueError, match="the model has one head"):
        FIGURES["heads"].draw(subject)
    subject = _Subject(SimpleNamespace(history_=[], contest_=[{"weight": 1.0}]), None, None)
    with pytest.raises(ValueError, match="a blend of several fits, which keep no history"):
        FIGURES["history"].draw(subject)


def test_the_class_whose_probability_is_calibrated_is_named():
    probability, names = np.array([[0.9, 0.1], [0.2, 0.8]]), np.array(["no", "yes"])
    answers = SimpleNamespace(probability=probability)
    subject = _Subject(SimpleNamespace(classes_=names), SimpleNamespace(y=names), None)
    subject.__dict__["answers"] = answers
    ax = FIGURES["calibration"].draw(subject)
    assert ax.get_xlabel() == "predicted probability of yes"


def test_times_to_an_event_have_their_own_figure():
    y = np.array([(True, 1.0), (True, 2.0), (False, 3.0)], dtype=[("event", "?"), ("time", "f8")])
    subject = _Subject(None, SimpleNamespace(y=y), None)
    prediction = np.array([2.0, 1.0, 0.0])
    subject.__dict__["answers"] = SimpleNamespace(prediction=prediction, probability=None)
    assert FIGURES["survival"].draw(subject).get_xlabel() == "time"
    for other in ("observed-predicted", "roc"):
        with pytest.raises(ValueError, match="risks of an event: draw survival"):
            FIGURES[other].draw(subject)


def test_a_written_figure_is_closed(folder, tmp_path):
    from matplotlib import pyplot as plt

    plt.close("all")
    said = run("plot", "coefficients", folder / "classes", "-o", tmp_path / "figure.png")
    assert said.exit_code == 0, said.output
    assert plt.get_fignums() == []


@pytest.mark.parametrize(("ending", "magic"), [("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_endings(folder, tmp_path, ending, magic):
    out = tmp_path / f"f.{ending}"
    done = run("plot", "observed-predicted", folder / "numbers", folder / "numbers.npz", "-o", out)
    assert done.exit_code == 0, done.exception
    assert out.read_bytes().startswith(magic)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["map", "classes"], "there is no figure 'map': choose among coefficients, contest"),
        (["attention", "classes"], "shows samples: name their file after the model"),
        (["attention", "classes", "classes.npz", "--of", "s99"], "no such sample; the first is s0"),
        (["contest", "classes"], "only --solver auto compares ways to fit"),
        (["roc", "numbers", "numbers.npz"], "predicts numbers: draw observed-predicted"),
        (["observed-predicted", "classes", "classes.npz"], "predicts classes: draw roc"),
        (["words", "classes", "classes.npz"], "no texts to draw rows on"),
        (["history", "classes", "-o", "f.gif"], "figures are written as .png, .pdf, .svg"),
    ],
)
def test_what_cannot_be_drawn_is_a_sentence(folder, tmp_path, arguments, message, monkeypatch):
    monkeypatch.chdir(folder)
    done = run("plot", *arguments)
    assert done.exit_code == 1
    assert message in str(done.exception)
