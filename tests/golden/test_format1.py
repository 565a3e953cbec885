"""Model files of format 1, written before parameters moved into solvers: they still answer."""

from pathlib import Path

import numpy as np
import pytest

from diagatt import DiagAttClassifier, DiagAttRegressor
from diagatt.kinds.files import load_model
from diagatt.solvers import Gradient, Likelihood
from tests.golden.cases import draw

FOLDER = Path(__file__).with_name("format1")
ANSWERS = np.load(FOLDER / "answers.npz")
FAMILIES = {"gradient": "multinomial", "auto": "bernoulli", "pooled": "bernoulli"}
TEXTS = [
    "a good film",
    "a bad film",
    "good and nice",
    "bad and dull",
    "this was good",
    "this was bad",
]
MODELS = sorted(path.stem for path in FOLDER.glob("*.safetensors"))


def samples(name):
    """The samples that the file's answers are about, and what else `predict` takes."""
    if name == "text":
        return TEXTS, {}
    if name == "image":
        images = np.random.default_rng(0).random((12, 8, 8))
        images[6:, 2:4, 4:6] += 2
        return images, {}
    X, y, Z, _ = draw(FAMILIES.get(name, "gaussian"), n=80)
    return X, {"covariates": Z} if name == "likelihood" else {"y": y} if name == "mdsp" else {}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_format_1_answers_as_it_did(name):
    model, _ = load_model(FOLDER / f"{name}.safetensors")
    X, given = samples(name)
    answer = getattr(model, "predict_proba", model.predict)(X, **given)
    expected = ANSWERS[f"{name}/predict"]
    assert np.abs(answer - expected).max() <= 1e-6 * np.abs(expected).max()
    if f"{name}/locate" in ANSWERS:
        rows = {"y": given["y"]} if name == "mdsp" else {}
        np.testing.assert_array_equal(model.locate(X, **rows), ANSWERS[f"{name}/locate"])


def test_flat_parameters_become_those_of_the_solver():
    likelihood = DiagAttRegressor.load(FOLDER / "likelihood.safetensors")
    assert repr(likelihood.solver) == repr(Likelihood("diagonal"))
    gradient = DiagAttClassifier.load(FOLDER / "gradient.safetensors").solver
    assert isinstance(gradient, Gradient)
    assert (gradient.parameterization, gradient.rank, gradient.n_restarts) == ("factored", 1, 2)
    assert DiagAttClassifier.load(FOLDER / "auto.safetensors").solver == "auto"


def test_a_model_of_format_1_can_be_saved_and_fitted_again(tmp_path):
    model = DiagAttRegressor.load(FOLDER / "paper.safetensors")
    model.save(tmp_path / "again.safetensors")
    again = DiagAttRegressor.load(tmp_path / "again.safetensors")
    X, y, _, _ = draw(n=80)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert repr(again.solver) == repr(model.solver)
    np.testing.assert_allclose(again.fit(X, y).predict(X), model.predict(X), rtol=0, atol=1e-6)
