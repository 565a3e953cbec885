"""Fits to stores of times and of several outcomes are those to samples in memory."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from diagatt import DiagAttClassifier, DiagAttRegressor, DiagAttSurvival, RowStore, simulate
from diagatt.estimators import containers
from diagatt.solvers import Gradient, Likelihood, Mixture, Uniform, shape
from tests.solvers.stores import assert_same, stored

LIKELIHOOD = {"solver": Likelihood(max_iterations=5), "random_state": 0}


@pytest.fixture(autouse=True)
def no_store_is_small(monkeypatch):
    monkeypatch.setattr(containers, "READ_WHOLE", 0)


@pytest.fixture(scope="module")
def times():
    given = {"p": 4, "d": 3, "mu": (3,), "sigma2": (4,), "censoring": 0.3, "dtype": np.float64}
    return simulate.survival(150, **given, seed=0)


@pytest.fixture(scope="module")
def outcomes(times):
    rng = np.random.default_rng(0)
    active = np.array([x[row[0]] for x, row in zip(times.X, times.rows, strict=True)])
    y = active @ rng.normal(size=(3, 2)) + rng.normal(size=(len(times.X), 2))
    return times.X, y * [1, 100]


@pytest.mark.parametrize(
    ("family", "solver"),
    [("cox", Likelihood(max_iterations=5)), ("cox", Uniform()), ("weibull", Uniform())],
)
def test_times(times, tmp_path, family, solver):
    model = DiagAttSurvival(family=family, solver=solver, random_state=0)
    store = stored(tmp_path, times.X, times.y, shards=3)
    there, here = clone(model).fit(store), clone(model).fit(times.X, times.y)
    assert_same(here, there)
    np.testing.assert_allclose(there.shape_, here.shape_, rtol=1e-9)
    np.testing.assert_array_equal(there.unique_times_, here.unique_times_)
    curves = [m.predict_survival_function(store, return_array=True) for m in (there, here)]
    np.testing.assert_allclose(*curves, atol=1e-9)
    assert there.score(store, store.responses()) == here.score(times.X, times.y)


@pytest.mark.parametrize("kind", [Gradient, Mixture])
def test_batches_of_times_take_the_baseline_as_known(times, tmp_path, monkeypatch, kind):
    """A shard lacks the other samples at risk; the risks still agree with those of all samples."""
    monkeypatch.setattr(shape, "TURNS", 2)
    store = stored(tmp_path, times.X, times.y, shards=3)
    few = {"learning_rate": 0.1} | ({"n_starts": 1} if kind is Mixture else {})
    solver = kind(optimizer="adam", batch_size=50, max_epochs=10, **few)
    there = DiagAttSurvival(solver=solver, random_state=0).fit(store)
    here = DiagAttSurvival(solver=Likelihood(max_iterations=5), random_state=0)
    here.fit(times.X, times.y)
    assert np.corrcoef(there.predict(store), here.predict(times.X))[0, 1] > 0.9


def test_outcomes_in_their_units(outcomes, tmp_path):
    X, y = outcomes
    y = pd.DataFrame(y, columns=["bmi", "age"])
    store = stored(tmp_path, X, y, shards=3)
    there = DiagAttRegressor(**LIKELIHOOD).fit(store)
    assert_same(DiagAttRegressor(**LIKELIHOOD).fit(X, y), there)
    assert list(there.outcomes_) == ["bmi", "age"]
    assert there.predict(store).shape == (len(X), 2)


def test_a_small_store_is_read_with_the_names_of_its_outcomes(outcomes, tmp_path, monkeypatch):
    monkeypatch.setattr(containers, "READ_WHOLE", 10**9)
    X, y = outcomes
    store = stored(tmp_path, X, pd.DataFrame(y, columns=["bmi", "age"]), shards=3)
    assert list(DiagAttRegressor(**LIKELIHOOD).fit(store).outcomes_) == ["bmi", "age"]


def test_labels(outcomes, tmp_path):
    X, y = outcomes
    labels = (y > 0).astype(int)
    store = stored(tmp_path, X, labels, shards=3)
    there = DiagAttClassifier(**LIKELIHOOD).fit(store)
    assert_same(DiagAttClassifier(**LIKELIHOOD).fit(X, labels), there)
    assert there.predict_proba(store).shape == (len(X), 2)


def test_successes_and_failures_are_one_outcome(outcomes, tmp_path):
    X, y = outcomes
    trials = np.column_stack([y[:, 0] > 0, y[:, 0] <= 0]) * 3.0
    model = DiagAttRegressor(family="binomial", **LIKELIHOOD)
    there = clone(model).fit(stored(tmp_path, X, trials, shards=3))
    assert_same(clone(model).fit(X, trials), there)
    assert there.n_outputs_ == 1


@pytest.mark.parametrize(
    ("model", "y", "said"),
    [
        (DiagAttRegressor(), {"time": [1, 2], "event": [1, 0]}, "use DiagAttSurvival"),
        (DiagAttClassifier(), {"time": [1, 2], "event": [1, 0]}, "use DiagAttSurvival"),
        (DiagAttSurvival(), [1.0, 2.0], "holds no times to an event"),
        (DiagAttSurvival(), {"time": [1, 2], "event": [0, 0]}, "no event was observed"),
        (DiagAttSurvival(), {"time": [2, 2], "event": [1, 1]}, "all samples end at the time 2"),
        (DiagAttClassifier(), [[0, 1], [2, 0]], r"y\[1, 0\] = 2, but several labels are 0 or 1"),
        (DiagAttClassifier(), [[0, 1], [0, 0]], "column 0 of y is 0 in all samples"),
        (DiagAttRegressor(family="binomial"), [1, 2], "holds 1 numbers per response"),
        (DiagAttRegressor(family="huber"), [[1, 2], [3, 4]], "several outcomes at once are for"),
    ],
)
def test_what_a_model_cannot_take_is_said(tmp_path, model, y, said):
    store = RowStore.from_rows(tmp_path / "s", np.zeros((2, 3, 2)), y)
    with pytest.raises(ValueError, match=said):
        model.fit(store)


def test_a_shape_found_in_turns_leaves_no_checkpoint_of_one_turn(times, tmp_path, monkeypatch):
    monkeypatch.setattr(shape, "TURNS", 2)
    store = stored(tmp_path, times.X, times.y, shards=3)
    plain = DiagAttSurvival(**LIKELIHOOD).fit(store)
    kept = DiagAttSurvival(**LIKELIHOOD, checkpoint=str(tmp_path / "c")).fit(store)
    assert_same(plain, kept, tolerance=0)


def test_survival_sees_encoded_rows(times, tmp_path):
    """Scaled by hand or by the encoder, and saved with the model."""
    shift, scale = times.X.values.mean(axis=0), times.X.values.std(axis=0)
    by_hand = times.X.with_values((times.X.values - shift) / scale)
    model = DiagAttSurvival(**LIKELIHOOD, encoder=StandardScaler()).fit(times.X, times.y)
    plain = DiagAttSurvival(**LIKELIHOOD).fit(by_hand, times.y)
    np.testing.assert_allclose(model.predict(times.X), plain.predict(by_hand), atol=1e-8)
    model.save(tmp_path / "m.safetensors")
    again = DiagAttSurvival.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.predict(times.X), model.predict(times.X))
