"""Fits of stores: the same numbers as in memory, resumed, refused."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
import torch

from benchmarks.cost import IterationCost
from diagatt import DiagAttClassifier, DiagAttRegressor, RaggedRows, simulate
from diagatt.distributed import Group
from diagatt.estimators import PooledRegressor
from diagatt.estimators import stored as stored_estimators
from diagatt.families import get_family
from diagatt.modelfile import ModelFileError
from diagatt.solvers.likelihood import EM
from diagatt.solvers.problem import Problem
from diagatt.solvers.stored import StoredProblem
from diagatt.stores import RowStore

N, P, D = 700, 8, 4


@pytest.fixture(autouse=True)
def _nothing_is_read_whole(monkeypatch):
    monkeypatch.setattr(stored_estimators, "READ_WHOLE", 0)


@pytest.fixture(scope="module")
def data():
    drawn = simulate.regression(N, p=P, d=D, seed=1)
    return drawn.X.astype(np.float64), drawn.y


@pytest.fixture(scope="module")
def store(data, tmp_path_factory):
    return stored(tmp_path_factory.mktemp("store"), *data)


def stored(folder, X, y, shards=7, memory=2.0, **columns):
    """A store of float64 rows in about so many shards."""
    size = X.nbytes / 2**20 / shards
    path = folder / "store"
    RowStore.from_rows(path, X, y, dtype="float64", shard_mib=size, **columns)
    return RowStore(path, memory=memory)


def assert_same(one, other, tolerance=1e-9):
    """All parameters agree, relative to the largest entry of each."""
    for name in ("query_key_", "value_", "intercept_", "covariate_coef_", "value_se_"):
        a, b = (getattr(model, name) for model in (one, other))
        assert (a is None) == (b is None)
        if a is not None:
            scale = np.abs(a).max(initial=0) or 1.0
            np.testing.assert_allclose(b, a, rtol=0, atol=tolerance * scale, err_msg=name)
    assert one.solver_ == other.solver_
    np.testing.assert_allclose(other.unevenness_, one.unevenness_, rtol=1e-6)
    for a, b in zip(one.criteria_, other.criteria_, strict=True):
        assert a == pytest.approx(b, rel=1e-6)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"solver": "likelihood"},
        {"solver": "likelihood", "n_heads": 2},
        {"solver": "likelihood", "score_form": "contextual"},
        {"solver": "likelihood", "n_heads": [1, 2]},
        {"solver": "likelihood", "dtype": "float32"},
    ],
    ids=str,
)
def test_a_store_is_fitted_like_rows_in_memory(data, store, settings):
    here = DiagAttRegressor(**settings, random_state=0).fit(*data)
    there = DiagAttRegressor(**settings, random_state=0).fit(store)
    assert_same(here, there, 1e-5 if "dtype" in settings else 1e-9)
    assert there.n_samples_ == N
    assert there.communication_["reductions"] >= there.n_iter_


@pytest.mark.parametrize("family", ["bernoulli", "multinomial", "poisson", "gamma"])
def test_all_families_weights_and_covariates(family, tmp_path):
    rng = np.random.default_rng(0)
    X = simulate.regression(600, p=6, d=3, seed=2).X.astype(np.float64)
    weights, Z = rng.integers(0, 3, 600) / 2.0, rng.standard_normal((600, 2))
    classes = np.array(["low", "middle", "high"])
    y = {
        "bernoulli": lambda: rng.random(600) < 0.4,
        "multinomial": lambda: classes[rng.integers(0, 3, 600)],
        "poisson": lambda: rng.poisson(2.0, 600).astype(float),
        "gamma": lambda: rng.gamma(2.0, size=600),
    }[family]()
    face = DiagAttClassifier if family in ("bernoulli", "multinomial") else DiagAttRegressor
    settings = {"family": family, "solver": "likelihood", "random_state": 0}
    here = face(**settings).fit(X, y, sample_weight=weights, covariates=Z)
    place = stored(tmp_path, X, y, weights=weights, covariates=Z)
    there = face(**settings).fit(place)
    assert_same(here, there, 1e-7)
    assert there.n_samples_ == np.count_nonzero(weights)
    np.testing.assert_array_equal(there.predict(place), here.predict(X, covariates=Z))


def test_the_model_of_mean_rows_is_fitted_in_passes(tmp_path):
    rng = np.random.default_rng(3)
    X, y = RaggedRows.from_dense(rng.standard_normal((600, 5, 3))), rng.standard_normal(600)
    here = DiagAttRegressor(random_state=0)
    there = DiagAttRegressor(random_state=0)
    with pytest.warns(UserWarning, match="near uniform"):
        here.fit(X, y)
    with pytest.warns(UserWarning, match="near uniform"):
        there.fit(stored(tmp_path, X, y))
    assert there.solver_ == "uniform"
    assert_same(here, there, 1e-8)


def test_samples_of_one_row_are_a_glm(tmp_path):
    rng = np.random.default_rng(4)
    X, y = RaggedRows.from_rows(rng.standard_normal((500, 3))), rng.random(500) < 0.3
    here = DiagAttClassifier(ridge=0.1).fit(X, y)
    there = DiagAttClassifier(ridge=0.1).fit(stored(tmp_path, X, y))
    assert there.solver_ == "glm"
    assert_same(here, there, 1e-8)


def test_gradients_of_full_batches_are_those_in_memory(data, tmp_path):
    # The window covers all shards, and a batch all samples: only their order differs.
    place = stored(tmp_path, *data, memory=16)
    settings = {"solver": "gradient", "optimizer": "adam", "batch_size": N, "max_epochs": 4}
    here = DiagAttRegressor(**settings, random_state=0).fit(*data)
    there = DiagAttRegressor(**settings, random_state=0).fit(place)
    assert_same(here, there, 1e-7)
    losses = [[h["loss"] for h in m.history_[0]] for m in (here, there)]
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-9)


def test_answers_about_a_store(data, store):
    model = DiagAttRegressor(n_heads=2, solver="likelihood", random_state=0).fit(store)
    X = data[0]
    for name in ("predict", "locate", "transform", "restart_agreement"):
        there, here = getattr(model, name)(store), getattr(model, name)(X)
        np.testing.assert_allclose(there, here, rtol=1e-10, err_msg=name)
    for name in ("attention", "scores"):
        for a, b in zip(getattr(model, name)(store), getattr(model, name)(X), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(model.certainty(store).rows, model.certainty(X).rows)
    assert model.score(store, store.responses()) == pytest.approx(model.score(*data))


def test_other_estimators_read_a_store_into_memory(data, store):
    here = PooledRegressor(ridge=1.0).fit(*data)
    there = PooledRegressor(ridge=1.0).fit(store, store.responses())
    np.testing.assert_array_equal(there.predict(store), here.predict(data[0]))


# ---------------------------------------------------------------------- the problem itself


def problem_of(store, **fields):
    return StoredProblem(store, get_family("gaussian"), np.asarray, dtype=torch.float64, **fields)


def whole(data):
    X, y = data
    values, offsets = X.to_torch()
    ones, none = torch.ones(N, dtype=torch.float64), torch.zeros(N, 0, dtype=torch.float64)
    y = torch.from_numpy(np.asarray(y, dtype=np.float64))
    return Problem(get_family("gaussian"), values, offsets, y, ones, none)


def test_many_samples_stay_where_they_are(data, store):
    samples = torch.from_numpy(np.random.default_rng(0).choice(N, 500, replace=False))
    view = problem_of(replace_memory(store, 0.1)).take(samples)
    assert isinstance(view, StoredProblem)
    expected = whole(data).take(samples)
    again = torch.arange(0, 500, 7)

    def sums(part):
        return [part.values.sum(dim=0), part.y.sum(), part.offsets.diff().sum()]

    for got, want in zip(view.total(sums), expected.total(sums), strict=True):
        torch.testing.assert_close(got, want)
    assert view.scale == pytest.approx(expected.scale)
    assert view.n_samples == 500
    # Samples of the view are counted in the store's order.
    ordered = whole(data).take(samples.sort().values).take(again)
    torch.testing.assert_close(view.load(again).values, ordered.values)


def replace_memory(store, memory):
    """The same store, as if it had less memory to read with."""
    view = store.select(range(len(store.shards)))
    view.memory = memory
    return view


@pytest.mark.parametrize("size", [1, 2, 3, 9])
@pytest.mark.parametrize("row_dropout", [0.0, 0.4])
def test_batches_do_not_depend_on_the_number_of_processes(data, store, size, row_dropout):
    def run(rank, size):
        problem = problem_of(store, group=Group(rank, size))
        generator = torch.Generator().manual_seed(5)
        return list(problem.batches(64, row_dropout, generator))

    alone, ranks = run(0, 1), [run(rank, size) for rank in range(size)]
    for step, (batch, count) in enumerate(alone):
        parts = [own[step][0] for own in ranks]
        assert all(own[step][1] == count for own in ranks)
        counted = torch.cat([part.y[part.weights > 0] for part in parts])
        torch.testing.assert_close(counted.sort().values, batch.y.sort().values)
        rows = sum((part.values[part.weights[0] > 0].sum() for part in parts), torch.tensor(0.0))
        torch.testing.assert_close(rows.double(), batch.values.sum())
    everyone = torch.cat([batch.y for batch, _ in alone])
    np.testing.assert_array_equal(everyone.sort().values, np.sort(np.asarray(data[1], float)))
    assert sum(count for _, count in alone) == N


def test_one_batch_of_all_rows_must_fit(store):
    problem = problem_of(replace_memory(store, 0.1))
    with pytest.raises(ValueError, match=r"batch_size=None .* memory of 0.1 MiB: give a number"):
        next(problem.batches(None, 0.0, torch.Generator()))


def test_two_epochs_have_other_batches(store):
    problem, generator = problem_of(store), torch.Generator().manual_seed(5)
    first, second = (list(problem.batches(64, 0.0, generator)) for _ in range(2))
    assert not torch.equal(first[0][0].y, second[0][0].y)


# ---------------------------------------------------------------------- interruptions


class Interrupted(Exception):
    pass


@pytest.mark.parametrize("every", [1, 2])
@pytest.mark.parametrize("stop", [1, 2, 4])
def test_a_likelihood_fit_goes_on_where_it_was(store, tmp_path, monkeypatch, stop, every):
    settings = {"solver": "likelihood", "random_state": 0, "checkpoint_every": every}
    quiet = DiagAttRegressor(**settings).fit(store)
    iterate, passes = EM._iterate, []

    def interrupted(self, now):
        if isinstance(self.expectation.problem, StoredProblem):
            passes.append(len(now.history))
            if len(passes) > stop:
                raise Interrupted
        iterate(self, now)

    resumed = DiagAttRegressor(**settings, checkpoint=tmp_path / "state")
    monkeypatch.setattr(EM, "_iterate", interrupted)
    with pytest.raises(Interrupted):
        resumed.fit(store)
    monkeypatch.undo()
    monkeypatch.setattr(stored_estimators, "READ_WHOLE", 0)
    resumed.fit(store)
    assert_same(quiet, resumed, 0)
    assert resumed.history_ == quiet.history_
    assert resumed.log_likelihood_ == quiet.log_likelihood_


def test_a_gradient_fit_goes_on_where_it_was(store, tmp_path):
    settings = {"solver": "gradient", "optimizer": "adam", "row_dropout": 0.2, "random_state": 0}
    quiet = DiagAttRegressor(**settings, max_epochs=5).fit(store)
    path = tmp_path / "state"
    DiagAttRegressor(**settings, max_epochs=2, checkpoint=path).fit(store)
    resumed = DiagAttRegressor(**settings, max_epochs=5, checkpoint=path).fit(store)
    assert_same(quiet, resumed, 0)


def test_the_checkpoint_of_another_store_is_refused(data, store, tmp_path):
    settings = {"solver": "likelihood", "random_state": 0, "checkpoint": tmp_path / "state"}
    DiagAttRegressor(**settings).fit(store)
    other = stored(tmp_path, data[0], -data[1])
    with pytest.raises(ModelFileError, match="checkpoint of other data or other settings"):
        DiagAttRegressor(**settings).fit(other)


def test_a_killed_command_goes_on(tmp_path):
    drawn = simulate.regression(2000, p=50, d=12, seed=0)
    RowStore.from_rows(tmp_path / "store", drawn.X, drawn.y, shard_mib=0.25)
    command = [sys.executable, "-m", "diagatt", "fit", "store", "--solver", "likelihood", "-o"]
    options = {"cwd": tmp_path, "env": {**os.environ, "OMP_NUM_THREADS": "1"}}
    subprocess.run([*command, "quiet"], check=True, capture_output=True, **options)
    job = subprocess.Popen([*command, "killed"], stdout=subprocess.DEVNULL, **options)
    while not (tmp_path / "killed.checkpoint").exists() and job.poll() is None:
        time.sleep(0.001)
    job.send_signal(signal.SIGKILL)
    job.wait()
    subprocess.run([*command, "killed"], check=True, capture_output=True, **options)
    models = [DiagAttRegressor.load(tmp_path / name) for name in ("quiet", "killed")]
    assert_same(*models, 0)
    assert not list(tmp_path.glob("*checkpoint*"))


# ---------------------------------------------------------------------- refusals


def test_what_a_store_holds_is_not_given_again(data, store):
    with pytest.raises(ValueError, match="y was given beside a RowStore, which holds its own"):
        DiagAttRegressor().fit(store, data[1])
    with pytest.raises(ValueError, match="sample_weight was given beside a RowStore"):
        DiagAttRegressor().fit(store, sample_weight=np.ones(N))
    model = DiagAttRegressor(solver="likelihood", random_state=0).fit(store)
    with pytest.raises(ValueError, match="covariates were given beside a RowStore"):
        model.predict(store, covariates=np.ones((N, 1)))


def test_stores_that_cannot_be_fitted(data, tmp_path):
    X, y = data
    bare = RowStore.from_rows(tmp_path / "bare", X)
    with pytest.raises(ValueError, match="bare holds no responses: write the store with y"):
        DiagAttRegressor().fit(bare)
    words = RowStore.from_rows(tmp_path / "words", X, np.where(y > 0, "up", "down"))
    with pytest.raises(ValueError, match="words as responses: use DiagAttClassifier"):
        DiagAttRegressor().fit(words)
    counts = RowStore.from_rows(tmp_path / "counts", X, y)
    with pytest.raises(ValueError, match="outside the range of the poisson family"):
        DiagAttRegressor(family="poisson").fit(counts)
    with pytest.raises(ValueError, match="need 9 distinct rows, but sample 0 has 8"):
        DiagAttRegressor(9).fit(counts)
    settings = {"solver": "gradient", "optimizer": "lbfgs"}
    with pytest.raises(ValueError, match="'lbfgs' needs all rows in memory"):
        DiagAttRegressor(**settings).fit(counts)


def test_a_small_store_is_read_whole(data, store, monkeypatch):
    monkeypatch.setattr(stored_estimators, "READ_WHOLE", 10**6)
    model = DiagAttRegressor(random_state=0).fit(store)
    assert model.communication_["reductions"] == 0
    assert_same(DiagAttRegressor(random_state=0).fit(*data), model, 0)


def test_a_progress_bar_is_shown_when_asked(store, capsys):
    DiagAttRegressor(solver="likelihood", random_state=0, verbose=True).fit(store)
    assert "iteration" in capsys.readouterr().out


def test_replacing_fields_keeps_the_group(store):
    problem = problem_of(store, group=Group(1, 3))
    assert replace(problem, chosen=None).group is problem.group


@pytest.mark.parametrize(
    "settings",
    [{}, {"n_heads": 2}, {"score_form": "contextual"}, {"score_form": "quadratic"}],
    ids=str,
)
def test_an_iteration_sends_what_the_cost_model_says(data, tmp_path, monkeypatch, settings):
    rng = np.random.default_rng(0)
    place = stored(tmp_path, *data, covariates=rng.standard_normal((N, 2)))
    counted, expect = [], EM.expect

    def counting(self, *arguments, **options):
        group = self.expectation.problem.group
        before = group.traffic
        result = expect(self, *arguments, **options)
        counted.append(group.traffic - before)
        return result

    monkeypatch.setattr(EM, "expect", counting)
    DiagAttRegressor(solver="likelihood", random_state=0, **settings).fit(place)
    cost = IterationCost(N * P, D, n_covariates=2, **settings)
    assert {size for size in counted if size} == {cost.bytes_of_sums}
