"""Fits of stores: the same numbers as in memory, refused where they cannot work."""

import numpy as np
import pytest

from benchmarks.cost import IterationCost
from diagatt import RaggedRows, simulate
from diagatt.estimators import PooledRegressor, containers
from diagatt.solvers.likelihood.em import EM
from diagatt.stores import RowStore
from tests.models import classifier, regressor
from tests.solvers.stores import D, N, P, assert_same, stored

pytestmark = [
    pytest.mark.usefixtures("nothing_is_read_whole"),
    pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning"),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"solver": "likelihood"},
        {"solver": "likelihood", "n_heads": 2},
        {"solver": "likelihood", "score_form": "contextual"},
        {"solver": "likelihood", "n_heads": [1, 2]},
    ],
    ids=str,
)
def test_a_store_is_fitted_like_rows_in_memory(data, store, settings):
    here = regressor(**settings, random_state=0).fit(*data)
    there = regressor(**settings, random_state=0).fit(store)
    assert_same(here, there, 1e-9)
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
    face = classifier if family in ("bernoulli", "multinomial") else regressor
    settings = {"family": family, "solver": "likelihood", "random_state": 0}
    here = face(**settings).fit(X, y, sample_weight=weights, covariates=Z)
    place = stored(tmp_path, X, y, weights=weights, covariates=Z)
    there = face(**settings).fit(place)
    assert_same(here, there, 1e-7)
    assert there.n_samples_ == np.count_nonzero(weights)
    np.testing.assert_array_equal(there.predict(place), here.predict(X, covariates=Z))


@pytest.mark.slow
def test_the_model_of_mean_rows_is_fitted_in_passes(tmp_path):
    rng = np.random.default_rng(3)
    X, y = RaggedRows.from_dense(rng.standard_normal((600, 5, 3))), rng.standard_normal(600)
    here = regressor(random_state=0)
    there = regressor(random_state=0)
    with pytest.warns(UserWarning, match="no row of interest"):
        here.fit(X, y)
    with pytest.warns(UserWarning, match="no row of interest"):
        there.fit(stored(tmp_path, X, y))
    assert there.solver_ == "uniform"
    assert_same(here, there, 1e-8)


def test_samples_of_one_row_are_a_glm(tmp_path):
    rng = np.random.default_rng(4)
    X, y = RaggedRows.from_rows(rng.standard_normal((500, 3))), rng.random(500) < 0.3
    here = classifier(ridge=0.1).fit(X, y)
    there = classifier(ridge=0.1).fit(stored(tmp_path, X, y))
    assert there.solver_ == "glm"
    assert_same(here, there, 1e-8)


def test_gradients_of_full_batches_are_those_in_memory(data, tmp_path):
    # The window covers all shards, and a batch all samples: only their order differs.
    place = stored(tmp_path, *data, memory=16)
    settings = {"solver": "gradient", "optimizer": "adam", "batch_size": N, "max_epochs": 4}
    here = regressor(**settings, random_state=0).fit(*data)
    there = regressor(**settings, random_state=0).fit(place)
    assert_same(here, there, 1e-7)
    losses = [[h["loss"] for h in m.history_[0]] for m in (here, there)]
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-9)


def test_answers_about_a_store(data, store):
    model = regressor(n_heads=2, solver="likelihood", random_state=0).fit(store)
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


# ---------------------------------------------------------------------- refusals


def test_what_a_store_holds_is_not_given_again(data, store):
    with pytest.raises(
        ValueError, match="y must not be passed with a RowStore, which contains its own"
    ):
        regressor().fit(store, data[1])
    with pytest.raises(ValueError, match="sample_weight must not be passed with a RowStore"):
        regressor().fit(store, sample_weight=np.ones(N))
    model = regressor(solver="likelihood", random_state=0).fit(store)
    with pytest.raises(ValueError, match="covariates must not be passed with a RowStore"):
        model.predict(store, covariates=np.ones((N, 1)))


def test_stores_that_cannot_be_fitted(data, tmp_path):
    X, y = data
    bare = RowStore.from_rows(tmp_path / "bare", X)
    with pytest.raises(ValueError, match="bare holds no responses: write the store with y"):
        regressor().fit(bare)
    words = RowStore.from_rows(tmp_path / "words", X, np.where(y > 0, "up", "down"))
    with pytest.raises(ValueError, match="words as responses: use DiagAttClassifier"):
        regressor().fit(words)
    counts = RowStore.from_rows(tmp_path / "counts", X, y)
    with pytest.raises(ValueError, match="outside the range of the poisson family"):
        regressor(family="poisson").fit(counts)
    with pytest.raises(ValueError, match="need 9 distinct rows, but sample 0 has 8"):
        regressor(9).fit(counts)
    settings = {"solver": "gradient", "optimizer": "lbfgs"}
    with pytest.raises(ValueError, match="'lbfgs' needs all rows in memory"):
        regressor(**settings).fit(counts)


@pytest.mark.slow
def test_a_small_store_is_read_whole(data, store, monkeypatch):
    monkeypatch.setattr(containers, "READ_WHOLE", 10**6)
    model = regressor(random_state=0).fit(store)
    assert model.communication_["reductions"] == 0
    assert_same(regressor(random_state=0).fit(*data), model, 0)


def test_a_progress_bar_is_shown_when_asked(store, capsys):
    regressor(solver="likelihood", random_state=0, verbose=True).fit(store)
    assert "iteration" in capsys.readouterr().out


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
    regressor(solver="likelihood", random_state=0, **settings).fit(place)
    cost = IterationCost(N * P, D, n_covariates=2, **settings)
    assert {size for size in counted if size} == {cost.bytes_of_sums}
