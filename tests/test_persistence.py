"""Estimators in files: nothing lost, nothing wrong loaded."""

import json
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from diagatt import DiagAttClassifier, DiagAttRegressor, ModelFileError, RaggedRows, modelfile
from diagatt.persistence import FORMAT_VERSION
from diagatt.solvers import Auto, Gradient, Likelihood, Refined, Solver

# Short fits need not find a row; what is tested here is something else.
pytestmark = pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")


def samples(n=40, d=3, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(rng.integers(3, 6), d)).astype(dtype) for _ in range(n)]
    return RaggedRows.from_samples(X), np.array([sample[0].sum() for sample in X], dtype=float)


LABELS = {
    "strings": np.array(["no", "perhaps", "yes"]),
    "objects": np.array(["no", "perhaps", "yes"], dtype=object),
    "integers": np.array([-5, 0, 7]),
    "floats": np.array([0.5, 1.5, 2.5]) * 2,
    "booleans": np.array([False, True]),
}


def make_regressor():
    return DiagAttRegressor(2, solver=Gradient(n_restarts=2, max_epochs=20), random_state=0)


def make_classifier():
    return DiagAttClassifier(1, solver=Gradient(max_epochs=20), random_state=np.int64(1))


def labels(y, kind="strings"):
    names = LABELS[kind]
    return names[np.searchsorted(np.quantile(y, [0.3, 0.6])[: len(names) - 1], y)]


def assert_equal_values(ours, theirs, name):
    if isinstance(theirs, np.ndarray):
        assert isinstance(ours, np.ndarray), name
        assert ours.shape == theirs.shape, name
        assert ours.dtype.kind == theirs.dtype.kind, name
        np.testing.assert_array_equal(ours, theirs, err_msg=name)
    else:
        assert ours == theirs, name


def assert_equal_estimators(ours, theirs):
    assert type(ours) is type(theirs)
    assert public(ours).keys() == public(theirs).keys()
    for name, value in public(theirs).items():
        assert_equal_values(public(ours)[name], value, name)


def public(estimator):
    """Parameters and fitted attributes; what only a warm start needs is not in a file."""
    found = {n: v for n, v in vars(estimator).items() if not n.startswith("_")}
    return {n: repr(v) if isinstance(v, Solver) else v for n, v in found.items()}


CASES = {
    "restarts": lambda X, y: make_regressor().fit(X, y),
    "covariates": lambda X, y: make_regressor().fit(X, y, covariates=y[:, None] ** 2),
    "auto": lambda X, y: DiagAttRegressor("auto", random_state=0, solver="likelihood").fit(X, y),
    "defaults": lambda X, y: DiagAttRegressor(random_state=0).fit(X, y),
    "one-row samples": lambda X, y: DiagAttRegressor().fit(np.stack([x[0] for x in X]), y),
    "gamma": lambda X, y: make_regressor().set_params(family="gamma").fit(X, np.exp(y / 5)),
    "classes": lambda X, y: make_classifier().fit(X, labels(y)),
    "two classes": lambda X, y: make_classifier().fit(X, y > 0),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("case", CASES)
def test_a_loaded_estimator_has_every_attribute(tmp_path, case):
    model = CASES[case](*samples())
    path = tmp_path / "model.safetensors"
    model.save(path)
    assert_equal_estimators(type(model).load(path), model)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", LABELS)
def test_a_loaded_classifier_answers_the_same(tmp_path, kind, dtype):
    X, y = samples(dtype=dtype)
    model = make_classifier().fit(X, labels(y, kind))
    model.save(tmp_path / "m")
    loaded = DiagAttClassifier.load(tmp_path / "m")
    assert loaded.classes_.dtype.kind == model.classes_.dtype.kind
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(loaded.locate(X), model.locate(X))


def test_feature_names_survive(tmp_path):
    import pandas as pd

    X, y = samples()
    frame = pd.DataFrame(np.stack([x[0] for x in X]), columns=["a", "b", "c"])
    model = DiagAttRegressor().fit(frame, y)
    model.save(tmp_path / "m")
    loaded = DiagAttRegressor.load(tmp_path / "m")
    assert loaded.get_feature_names_out().tolist() == ["head0_a", "head0_b", "head0_c"]
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))


def test_another_process_loads_the_same_model(tmp_path):
    X, y = samples()
    model = DiagAttRegressor(random_state=0, solver="gradient").fit(X, y)
    model.save(tmp_path / "m")
    np.save(tmp_path / "x.npy", X[0])
    code = (
        "import sys, numpy as np; from diagatt import DiagAttRegressor;"
        "print(repr(float(DiagAttRegressor.load(sys.argv[1]).predict([np.load(sys.argv[2])])[0])))"
    )
    files = [str(tmp_path / "m"), str(tmp_path / "x.npy")]
    run = subprocess.run(
        [sys.executable, "-c", code, *files], capture_output=True, text=True, check=True
    )
    assert float(run.stdout) == pytest.approx(float(model.predict(X[:1])[0]), rel=1e-12)


@pytest.mark.parametrize("case", ["restarts", "classes"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_pickle_round_trip(case):
    model = CASES[case](*samples())
    assert_equal_estimators(pickle.loads(pickle.dumps(model)), model)


@pytest.fixture
def saved(tmp_path):
    X, y = samples(n=12, d=2)
    model = DiagAttRegressor(random_state=0, solver=Gradient(max_epochs=2, optimizer="adam"))
    path = tmp_path / "small.safetensors"
    model.fit(X, y).save(path)
    return path


def test_every_bit_of_a_saved_model_counts(saved, monkeypatch):
    content = saved.read_bytes()
    assert len(content) < 4000
    current = bytearray(content)
    monkeypatch.setattr(Path, "read_bytes", lambda self: bytes(current))
    for bit in range(8 * len(content)):
        current[bit // 8] ^= 1 << bit % 8
        assert is_refused(saved), f"bit {bit}"
        current[bit // 8] ^= 1 << bit % 8
    DiagAttRegressor.load(saved)
    for length in reversed(range(len(content))):
        del current[length:]
        assert is_refused(saved), f"length {length}"


def is_refused(path):
    try:
        DiagAttRegressor.load(path)
    except ModelFileError:
        return True
    return False


def changed(path, **entries):
    """Rewrite the file with other entries in its document, checksum and all."""
    tensors, document = modelfile.read(path)
    modelfile.write(path, tensors, {**document, **entries})
    return path


def test_a_newer_format_is_refused(saved):
    changed(saved, format=FORMAT_VERSION + 1, diagatt="9.9.9")
    with pytest.raises(ModelFileError, match=r"written by diagatt 9\.9\.9.*reads up to.*upgrade"):
        DiagAttRegressor.load(saved)


def test_another_class_is_refused_and_named(saved):
    with pytest.raises(ModelFileError, match=r"holds a DiagAttRegressor: load it with"):
        DiagAttClassifier.load(saved)


def test_a_checkpoint_is_not_an_estimator(saved):
    changed(saved, kind="checkpoint")
    with pytest.raises(ModelFileError, match="is not a saved estimator but a checkpoint"):
        DiagAttRegressor.load(saved)


def test_the_file_names_its_versions_and_parameters(saved):
    from diagatt import __version__

    document = modelfile.read(saved)[1]
    assert document["diagatt"] == __version__
    assert document["format"] == FORMAT_VERSION
    assert document["class"] == "DiagAttRegressor"
    parameters = DiagAttRegressor.load(saved).get_params(deep=False)
    solver = parameters.pop("solver")
    written = document["parameters"].pop("solver")
    assert document["parameters"] == json.loads(json.dumps(parameters))
    assert written == {"object": "Gradient", "parameters": solver.get_params()}


@pytest.mark.parametrize(
    "solver",
    [
        "likelihood",
        Likelihood("low_rank", rank=1),
        Refined(Likelihood(), Gradient(optimizer="adam", max_epochs=2)),
        Auto([Likelihood("tied"), Gradient(max_epochs=2)], combine="best"),
    ],
)
def test_solvers_survive_with_their_parameters(tmp_path, solver):
    X, y = samples()
    model = DiagAttRegressor(solver=solver, random_state=0).fit(X, y)
    model.save(tmp_path / "m")
    loaded = DiagAttRegressor.load(tmp_path / "m")
    assert repr(loaded) == repr(model)
    np.testing.assert_array_equal(loaded.fit(X, y).predict(X), model.predict(X))


def test_a_solver_that_nobody_imported_is_named(saved):
    tensors, document = modelfile.read(saved)
    document["parameters"]["solver"]["object"] = "Magic"
    modelfile.write(saved, tensors, document)
    with pytest.raises(
        ModelFileError, match="names a Magic, which is not known here: import it first"
    ):
        DiagAttRegressor.load(saved)


def test_parameters_that_json_lacks(tmp_path):
    X, y = samples()
    model = DiagAttRegressor(
        np.int64(1),
        ridge=np.float32(0.5),
        random_state=np.random.RandomState(0),
        checkpoint=tmp_path / "checkpoint",
        solver="gradient",
    )
    model.fit(X, y).save(tmp_path / "m")
    loaded = DiagAttRegressor.load(tmp_path / "m")
    assert (loaded.n_heads, loaded.ridge) == (1, 0.5)
    assert loaded.random_state is None
    assert loaded.checkpoint == str(tmp_path / "checkpoint")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_an_unsaveable_parameter_is_named_and_the_old_file_stays(saved):
    model = DiagAttRegressor.load(saved)
    before = saved.read_bytes()
    model.device = object()
    with pytest.raises(TypeError, match=r"device=<object .* cannot be saved"):
        model.save(saved)
    assert saved.read_bytes() == before
    assert [p.name for p in saved.parent.iterdir()] == [saved.name]


def test_saving_replaces_an_older_model(saved):
    X, y = samples()
    newer = DiagAttRegressor(random_state=0, solver="gradient").fit(X, y)
    newer.save(saved)
    np.testing.assert_array_equal(DiagAttRegressor.load(saved).predict(X), newer.predict(X))


def test_an_unfitted_estimator_is_not_saved(tmp_path):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        DiagAttRegressor().save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []
