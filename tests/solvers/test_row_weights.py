"""A row of weight k is that row k times: fits, likelihoods and errors are the same."""

import numpy as np
import pandas as pd
import pytest

from diagatt import DiagAttClassifier, DiagAttRegressor, DiagAttSurvival, RaggedRows, simulate
from diagatt.estimators import GatedAttentionRegressor, PooledRegressor
from diagatt.solvers import Auto, Gradient, Likelihood, Mixture, Refined, Uniform
from diagatt.stores import RowStore

pytestmark = [
    pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
N = 80


@pytest.fixture(scope="module")
def data():
    return simulate.regression(N, 4, 3, mu=(3,), sigma2=(4,), seed=0, dtype=np.float64)


@pytest.fixture(scope="module")
def weights(data):
    return np.random.default_rng(0).integers(1, 4, data.X.n_rows)


def repeated(X, weights):
    own = np.split(weights, X.offsets[1:-1])
    return RaggedRows.from_samples([np.repeat(x, w, axis=0) for x, w in zip(X, own, strict=True)])


SOLVERS = [
    Uniform(),
    Gradient(),
    Gradient("factored", rank=2, temperature=3.0, optimizer="adam", max_epochs=3),
    Likelihood(),
    Mixture(n_starts=1),
    Refined(then=Gradient(optimizer="adam", max_epochs=2)),
    Auto([Uniform(), Likelihood(), Gradient(max_epochs=5)], folds=2),
]


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_a_row_of_weight_k_counts_as_k_rows(data, weights, solver):
    y = (data.y > np.median(data.y)).astype(int)
    X, copies = data.X.with_row_weight(weights), repeated(data.X, weights)
    model = DiagAttClassifier(solver=solver, random_state=0).fit(X, y)
    other = DiagAttClassifier(solver=solver, random_state=0).fit(copies, y)
    z = model.decision_function(X)
    # L-BFGS stops at 1e-6 to 1e-8 of the gradient, and sums are taken in another order.
    np.testing.assert_allclose(z, other.decision_function(copies), atol=1e-5 * np.abs(z).max())
    found, expected = (m.criteria_[0]["log_likelihood"] for m in (model, other))
    assert found == pytest.approx(expected, rel=1e-6)
    if model.value_se_ is not None:
        np.testing.assert_allclose(model.value_se_, other.value_se_, rtol=1e-3)
    kappa = model.attention(X)
    shares = np.split(np.concatenate(other.attention(copies)), np.cumsum(weights)[:-1])
    sums = np.array([share.sum(axis=0) for share in shares])
    np.testing.assert_allclose(np.concatenate(kappa), sums, atol=1e-4)


@pytest.mark.slow
def test_the_default_and_its_certainty(data, weights):
    X, copies = data.X.with_row_weight(weights), repeated(data.X, weights)
    model = DiagAttRegressor(solver=Auto(folds=2), random_state=0).fit(X, data.y)
    other = DiagAttRegressor(solver=Auto(folds=2), random_state=0).fit(copies, data.y)
    scale = data.y.std()
    np.testing.assert_allclose(model.predict(X) / scale, other.predict(copies) / scale, atol=1e-4)
    assert model.log_score_ == pytest.approx(other.log_score_, abs=1e-4)
    ends = model.predict_interval(X), other.predict_interval(copies)
    np.testing.assert_allclose(ends[0] / scale, ends[1] / scale, atol=1e-3)
    assert model.certainty(X).posterior.shape == (N, 1)


def test_weights_of_all_rows_alike_change_nothing_but_what_counts_rows(data):
    same = data.X.with_row_weight(np.full(data.X.n_rows, 7.0))
    model = DiagAttRegressor(solver=Mixture(n_starts=1), random_state=0).fit(same, data.y)
    plain = DiagAttRegressor(solver=Mixture(n_starts=1), random_state=0).fit(data.X, data.y)
    np.testing.assert_allclose(model.predict(same), plain.predict(data.X), atol=1e-3)
    # The prior of new samples acts, too.
    heavy = np.where(np.arange(data.X.n_rows) % 4 == 0, 1e9, 1.0)
    assert (model.locate(data.X.with_row_weight(heavy)) == 0).mean() > 0.9


def test_several_heads_and_survival(data, weights):
    X, copies = data.X.with_row_weight(weights), repeated(data.X, weights)
    short = {"n_heads": 2, "coupling": "independent", "random_state": 0}
    for solver in (Gradient(optimizer="adam", max_epochs=2), Likelihood(max_iterations=3)):
        model = DiagAttRegressor(solver=solver, **short).fit(X, data.y)
        other = DiagAttRegressor(solver=solver, **short).fit(copies, data.y)
        np.testing.assert_allclose(model.predict(X), other.predict(copies), atol=1e-6)
    times = {"time": np.exp(data.y / 10), "event": np.arange(N) % 3 > 0}
    model = DiagAttSurvival(solver="uniform").fit(X, times)
    other = DiagAttSurvival(solver="uniform").fit(copies, times)
    ours, theirs = (
        m.predict_survival_function(x, return_array=True) for m, x in ((model, X), (other, copies))
    )
    np.testing.assert_allclose(ours, theirs, atol=1e-9)


def test_a_store_keeps_weights(data, weights, tmp_path, monkeypatch):
    X = data.X.with_row_weight(weights)
    store = RowStore.from_rows(tmp_path / "store", X, data.y, dtype="float64", shard_mib=0.002)
    assert len(store.shards) > 2
    assert store.to_rows() == X
    assert X[[5, 3]] == store.take([5, 3]).X
    monkeypatch.setattr("diagatt.estimators.containers.READ_WHOLE", 0)
    for solver in (Likelihood(max_iterations=5), Mixture(optimizer="adam", max_epochs=2)):
        model = DiagAttRegressor(solver=solver, random_state=0).fit(store)
        np.testing.assert_allclose(model.predict(store), model.predict(X), atol=1e-9)
    inside = DiagAttRegressor(solver=Likelihood(max_iterations=5), random_state=0).fit(X, data.y)
    passes = DiagAttRegressor(solver=Likelihood(max_iterations=5), random_state=0).fit(store)
    np.testing.assert_allclose(passes.predict(X), inside.predict(X), atol=1e-6)
    small = RowStore.from_rows(tmp_path / "s", X.with_row_weight(weights / 3), data.y)
    with pytest.raises(ValueError, match=r"takes row weights as counts of rows, and one is 0\.333"):
        DiagAttRegressor(solver="likelihood").fit(small)


# ---------------------------------------------------------------------- RaggedRows


def test_weights_follow_their_rows(data, weights):
    X = data.X.with_row_weight(weights)
    own = np.split(weights.astype(float), X.offsets[1:-1])
    assert np.array_equal(X[[7, 2]].row_weight, np.concatenate([own[7], own[2]]))
    assert np.array_equal(X[2:4].row_weight, np.concatenate(own[2:4]))
    assert data.X.with_row_weight(own) == X
    assert X != data.X
    both = RaggedRows.concatenate([X[:2], data.X[2:4]])
    assert np.array_equal(both.row_weight[-8:], np.ones(8))
    for made in (X.with_values(X.values + 1), X.astype("float32"), X.with_names(list("abc"))):
        assert np.array_equal(made.row_weight, X.row_weight)
    np.testing.assert_allclose(X.with_log_prior(X.log_prior).row_weight, X.row_weight)
    frame = pd.DataFrame(X.values, columns=list("abc"))
    frame["sample"], frame["cells"] = np.repeat(np.arange(N), X.lengths), weights
    read, _ = RaggedRows.from_frame(frame.sample(frac=1.0, random_state=0).sort_values("sample"),
                                    "sample", row_weight="cells")  # fmt: skip
    assert read.row_weight.sum() == weights.sum()
    assert read.n_features == 3


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([1.0, 0.0, 2.0], "sample 0, row 1 has the weight 0: weights are positive; drop the row"),
        ([1.0, -2.0, 2.0], "sample 0, row 1 has the weight -2"),
        ([1.0, 2.0, np.nan], "sample 1, row 0 has the weight nan"),
        ([1.0, 2.0], "one number per row, 3 of them"),
        (["a", "b", "c"], "row_weight"),
    ],
)
def test_bad_weights_are_refused_in_a_sentence(given, said):
    with pytest.raises(ValueError, match=said):
        RaggedRows(np.zeros((3, 2)), [0, 2, 3], row_weight=given)


def test_who_cannot_use_weights_says_so(data, weights):
    X = data.X.with_row_weight(weights / 2)
    with pytest.raises(ValueError, match=r"takes row weights as counts of rows, and one is 0\.5"):
        DiagAttRegressor(solver="likelihood").fit(X, data.y)
    with pytest.raises(ValueError, match="takes no weights of rows: set score_form='affine'"):
        DiagAttRegressor(score_form="contextual", solver="gradient").fit(X, data.y)
    for other in (PooledRegressor(), GatedAttentionRegressor()):
        with pytest.raises(ValueError, match="does not take weights of rows"):
            other.fit(X, data.y)
