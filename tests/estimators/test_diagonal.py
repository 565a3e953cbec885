"""The scikit-learn face: what is recovered, every input type, every method, odd samples."""

from functools import cache

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from sklearn.linear_model import (
    LinearRegression,
)

from diagatt import DiagAttRegressor, RaggedRows
from diagatt.simulate import regression
from tests.estimators.diagonal_samples import D, classifier, marked_rows, one_row_data, regressor

# Short fits need not find a row; what is tested here is something else.
pytestmark = [
    pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

# ---------------------------------------------------------------------- recovery


def test_a_list_of_heads_is_what_competes():
    X, y, _ = marked_rows(n=60)
    settings = {"solver": "likelihood", "coupling": "independent", "random_state": 0}
    listed = DiagAttRegressor([1, 2, 3], **settings).fit(X, y)
    auto = DiagAttRegressor("auto", **settings).fit(X, y)
    np.testing.assert_array_equal(listed.query_key_, auto.query_key_)
    other = DiagAttRegressor((3, 1), **settings).fit(X, y)
    assert [line["n_heads"] for line in other.selection_[:2]] == [3, 1]


@cache
def fitted(solver):
    X, y, _ = marked_rows(n=300)
    return DiagAttRegressor(solver=solver, random_state=0).fit(X, y)


@pytest.mark.parametrize("solver", ["gradient", "likelihood", "auto"])
def test_the_marked_row_and_its_effect_are_found(solver):
    X, _, where = marked_rows(n=300)
    new, y_new, where_new = marked_rows(n=300, seed=1)
    model = fitted(solver)
    assert (model.locate(new)[:, 0] == where_new).mean() > 0.93
    assert (model.locate(X)[:, 0] == where).mean() > 0.93
    np.testing.assert_allclose(model.value_[0], [1, -2, 0.5], atol=0.25)
    assert model.score(new, y_new) > 0.8


def test_covariates_are_recovered_beside_the_rows():
    X, y, _ = marked_rows(n=300)
    rng = np.random.default_rng(5)
    Z = rng.normal(size=(300, 2))
    model = DiagAttRegressor(random_state=0).fit(X, y + Z @ [3.0, -1.5], covariates=Z)
    np.testing.assert_allclose(model.covariate_coef_, [3, -1.5], atol=0.1)
    without = model.predict(X, Z) - Z @ model.covariate_coef_
    assert np.corrcoef(without, fitted("auto").predict(X))[0, 1] > 0.99


def test_covariates_on_one_row_samples_are_further_features():
    X, y, _ = one_row_data("gaussian")
    Z = np.random.default_rng(1).normal(size=(len(y), 2))
    ours = DiagAttRegressor(ridge=0.0).fit(X, y, covariates=Z)
    theirs = LinearRegression().fit(np.column_stack([X, Z]), y)
    np.testing.assert_allclose(np.r_[ours.value_[0], ours.covariate_coef_], theirs.coef_, atol=1e-8)
    np.testing.assert_allclose(
        ours.predict(X, Z), theirs.predict(np.column_stack([X, Z])), atol=1e-8
    )


# ---------------------------------------------------------------------- input types


def jagged(X):
    return torch.nested.nested_tensor([torch.from_numpy(s) for s in X], layout=torch.jagged)


RAGGED_TYPES = {
    "list of arrays": list,
    "tuple of arrays": tuple,
    "list of tensors": lambda X: [torch.from_numpy(np.array(s)) for s in X],
    "list of nested lists": lambda X: [s.tolist() for s in X],
    "list of frames": lambda X: [pd.DataFrame(s) for s in X],
    "object array": lambda X: np.array([*X, None], dtype=object)[:-1],
    "jagged tensor": jagged,
    "pyarrow column": lambda X: pa.array([s.tolist() for s in X]),
    "fortran order": lambda X: [np.asfortranarray(s) for s in X],
}


@pytest.mark.parametrize("kind", RAGGED_TYPES)
def test_ragged_inputs_of_all_types_give_the_same_fit(kind):
    X, y, _ = marked_rows(n=30)
    expected = regressor().fit(X, y)
    given = RAGGED_TYPES[kind](X)
    model = regressor().fit(given, y)
    np.testing.assert_array_equal(model.query_key_, expected.query_key_)
    np.testing.assert_array_equal(model.predict(given), expected.predict(X))
    np.testing.assert_array_equal(model.locate(given), expected.locate(X))


@pytest.mark.parametrize("make", [np.asarray, torch.as_tensor, RaggedRows.from_dense, list])
def test_samples_of_equal_length_in_one_array(make):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4, D))
    y = X[:, 0].sum(axis=1)
    expected = regressor().fit(list(X), y)
    model = regressor().fit(make(X), y)
    np.testing.assert_array_equal(model.predict(make(X)), expected.predict(list(X)))


@pytest.mark.parametrize(
    "make", [np.asarray, torch.as_tensor, RaggedRows.from_rows, pd.DataFrame, np.ndarray.tolist]
)
def test_one_row_samples_in_one_table(make):
    X, y, _ = one_row_data("gaussian")
    expected = DiagAttRegressor().fit([row[None] for row in X], y)
    model = DiagAttRegressor().fit(make(X), y)
    np.testing.assert_allclose(model.predict(make(X)), expected.predict([r[None] for r in X]))


@pytest.mark.parametrize("solver", ["gradient", "likelihood"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_type_of_rows_is_kept(dtype, solver):
    X, y, _ = marked_rows(dtype=dtype)
    model = regressor(solver=solver).fit(X, y)
    for array in (model.query_key_, model.value_, model.predict(X), model.transform(X)):
        assert array.dtype == dtype
    assert model.attention(X)[0].dtype == dtype
    exact = regressor(solver=solver).fit(X.astype(np.float64), y)
    np.testing.assert_allclose(model.predict(X), exact.predict(X), atol=0.02)


def test_the_former_parameter_dtype_is_told_where_it_went():
    with pytest.raises(TypeError, match=r"a fit has the type of its samples.*astype\("):
        DiagAttRegressor(dtype="float32")


# ---------------------------------------------------------------------- methods


@pytest.mark.parametrize("n_restarts", [1, 3])
def test_transform_is_the_pooled_row_of_each_head(n_restarts):
    X, y, _ = marked_rows()
    model = regressor(n_heads=2, n_restarts=n_restarts, max_epochs=20).fit(X, y)
    by_hand = [(s.T @ kappa).T.ravel() for s, kappa in zip(X, model.attention(X), strict=True)]
    np.testing.assert_allclose(model.transform(X), by_hand, atol=1e-12)
    assert model.get_feature_names_out().tolist() == [
        *("head0_x0", "head0_x1", "head0_x2", "head1_x0", "head1_x1", "head1_x2")
    ]
    assert len(model.get_feature_names_out()) == model.transform(X).shape[1]


def test_prediction_is_a_linear_function_of_the_transform():
    X, y, _ = marked_rows()
    model = regressor(n_heads=2).fit(X, y)
    np.testing.assert_allclose(
        model.transform(X) @ model.value_.ravel() + model.intercept_, model.predict(X)
    )


def test_attention_and_location_follow_from_scores():
    X, y, _ = marked_rows()
    model = regressor(n_heads=2, coupling="independent", temperature=3.0).fit(X, y)
    for i, (scores, kappa) in enumerate(zip(model.scores(X), model.attention(X), strict=True)):
        weights = np.exp(scores - scores.max(axis=0))
        np.testing.assert_allclose(kappa, weights / weights.sum(axis=0), atol=1e-12)
        np.testing.assert_array_equal(model.locate(X)[i], kappa.argmax(axis=0))


def test_heads_of_distinct_rows_locate_distinct_rows():
    X, y, _ = marked_rows(shortest=3)
    located = regressor(n_heads=3, max_epochs=30).fit(X, y).locate(X)
    assert all(len(set(rows)) == 3 for rows in located.tolist())
    assert (located < X.lengths[:, None]).all()


def test_certainty_says_what_attention_says():
    X, y, _ = marked_rows()
    model = regressor().fit(X, y)
    certainty = model.certainty(X)
    kappa = [weights[:, 0] for weights in model.attention(X)]
    np.testing.assert_array_equal(certainty.rows, model.locate(X))
    np.testing.assert_allclose(certainty.posterior[:, 0], [k.max() for k in kappa])
    entropy = [-np.sum(k[k > 0] * np.log(k[k > 0])) for k in kappa]
    np.testing.assert_allclose(certainty.entropy[:, 0], entropy, atol=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_probabilities_sum_to_one_and_decide(n_classes):
    X, y, _ = marked_rows(n=120)
    names = np.array([f"class {k}" for k in range(n_classes)])
    labels = names[np.searchsorted(np.quantile(y, np.arange(1, n_classes) / n_classes), y)]
    model = classifier(max_epochs=100).fit(X, labels)
    probabilities, z = model.predict_proba(X), model.decision_function(X)
    assert model.classes_.tolist() == names.tolist()
    assert probabilities.shape == (120, n_classes)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict(X), names[probabilities.argmax(axis=1)])
    if n_classes == 2:
        np.testing.assert_allclose(probabilities[:, 1], 1 / (1 + np.exp(-z)))
        assert model.value_.shape == (1, D)
    else:
        np.testing.assert_allclose(
            np.log(probabilities) - z, (np.log(probabilities) - z)[:, :1] * np.ones(n_classes)
        )
        assert model.value_.shape == (1, n_classes, D)
    assert model.score(X, labels) > 1.3 / n_classes


@pytest.mark.parametrize("family", ["poisson", "gamma"])
def test_means_of_log_links_are_positive_and_multiply(family):
    X, y, _ = marked_rows()
    y = np.round(np.exp(y / 8)) + (family == "gamma")
    model = regressor(family=family).fit(X, y)
    module = model.to_module()
    with torch.no_grad():
        z = module(*X.to_torch())[:, 0].numpy()
    np.testing.assert_allclose(model.predict(X), np.exp(z))


def test_to_module_predicts_the_same():
    X, y, _ = marked_rows()
    for coupling, heads in [("distinct", 2), ("independent", 2), ("distinct", 1)]:
        model = regressor(n_heads=heads, coupling=coupling, max_epochs=20).fit(X, y)
        with torch.no_grad():
            z = model.to_module()(*X.to_torch())[:, 0]
        np.testing.assert_allclose(model.predict(X), z, atol=1e-12)


def test_many_blocks_predict_as_one(monkeypatch):
    from diagatt import segments

    X, y, _ = marked_rows()
    model = regressor(n_heads=2).fit(X, y)
    whole = model.predict(X), np.concatenate(model.attention(X)), model.locate(X)
    in_blocks = segments.sample_blocks
    monkeypatch.setattr(segments, "sample_blocks", lambda offsets: in_blocks(offsets, rows=7))
    np.testing.assert_allclose(model.predict(X), whole[0])
    np.testing.assert_allclose(np.concatenate(model.attention(X)), whole[1])
    np.testing.assert_array_equal(model.locate(X), whole[2])


# ---------------------------------------------------------------------- odd but right


@pytest.mark.parametrize("solver", ["gradient", "likelihood", "auto"])
@pytest.mark.parametrize("value", [0.0, 0.1, -3e6])
def test_a_constant_response_is_predicted(solver, value):
    X, _, _ = marked_rows(n=30)
    model = DiagAttRegressor(solver=solver, random_state=0).fit(X, np.full(30, value))
    np.testing.assert_allclose(model.predict(X), value, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("solver", ["gradient", "likelihood", "auto"])
def test_a_sample_of_one_row_among_others(solver):
    X, y, _ = marked_rows(n=60)
    mixed = RaggedRows.from_samples([*list(X)[:-1], X[59][:1]])
    model = DiagAttRegressor(solver=solver, random_state=0).fit(mixed, y)
    assert np.isfinite(model.predict(mixed)).all()
    assert model.attention(mixed)[-1] == pytest.approx(1)
    assert model.locate(mixed)[-1] == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_sample_of_a_million_rows(dtype):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(p, 2)).astype(dtype) for p in [3, 1_000_000, 4, 2] + [3] * 30]
    X[1][777_777] = [9, 9]
    y = np.array([sample[0, 0] for sample in X])
    model = regressor(optimizer="adam", max_epochs=2, n_heads=2).fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    np.testing.assert_allclose(model.attention(X[1:2])[0].sum(axis=0), 1, atol=1e-4)
    with torch.no_grad():  # a score that grows with the size of a row finds the largest
        model.query_key_ = np.tile(np.eye(3, dtype=dtype), (2, 1, 1))
    assert model.locate(X)[1, 0] == 777_777


@pytest.mark.parametrize("solver", ["gradient", "likelihood", "auto"])
def test_constant_and_copied_features(solver):
    X, y, _ = marked_rows(n=80)
    more = X.with_values(np.column_stack([X.values, X.values[:, 0], np.ones(X.n_rows)]))
    model = DiagAttRegressor(solver=solver, random_state=0).fit(more, y)
    assert model.score(more, y) > 0.8


def test_the_order_of_samples_does_not_matter():
    X, y, _ = marked_rows(n=60)
    order = np.random.default_rng(0).permutation(60)
    for solver in ("gradient", "likelihood"):
        model = regressor(solver=solver)
        expected = model.fit(X, y).predict(X)
        np.testing.assert_allclose(model.fit(X[order], y[order]).predict(X), expected, atol=1e-3)


def test_sample_weights_of_likelihood_are_repetitions():
    X, y, _ = marked_rows(n=60)
    again = np.r_[np.arange(60), np.arange(0, 60, 4)]
    model = regressor(solver="likelihood")
    weighted = model.fit(X, y, sample_weight=np.bincount(again)).predict(X)
    np.testing.assert_allclose(model.fit(X[again], y[again]).predict(X), weighted, atol=1e-3)


def test_a_temperature_may_be_a_huge_whole_number():
    """A file may say so; torch cannot divide by it, but by the float that it is."""
    data = regression(20, p=3, d=2, mu=(3,), sigma2=(4,), seed=0)
    model = DiagAttRegressor(solver="likelihood", random_state=0).fit(data.X, data.y)
    model.temperature_ = 10**30
    for weights in model.attention(data.X):
        np.testing.assert_allclose(weights, 1 / 3, rtol=1e-6)
    assert np.isfinite(model.predict(data.X)).all()
    assert model.locate(data.X).shape == (20, 1)
