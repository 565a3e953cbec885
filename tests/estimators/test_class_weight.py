"""Weights of classes are weights of their samples."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.utils.class_weight import compute_sample_weight

from diagatt import DiagAttClassifier, simulate
from diagatt.solvers import Likelihood
from diagatt.stores import RowStore

pytestmark = pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")


@pytest.fixture(scope="module")
def data():
    return simulate.classification(120, p=4, d=3, seed=0, dtype=np.float64)


@pytest.mark.parametrize("given", ["balanced", {"a": 3.0}, {"a": 0.5, "b": 2.0}], ids=str)
def test_a_class_weight_is_a_sample_weight(data, given):
    y = np.array(["a", "b", "c"])[(np.arange(120) % 7).clip(max=2)]
    own = np.random.default_rng(0).uniform(0.5, 2, 120)
    model = DiagAttClassifier(solver=Likelihood(max_iterations=3), random_state=0)
    found = model.fit(data.X, y, own, class_weight=given).predict_proba(data.X)
    weights = own * compute_sample_weight(given, y)
    assert np.array_equal(found, model.fit(data.X, y, weights).predict_proba(data.X))


def test_one_row_samples_agree_with_scikit_learn(data):
    x, y = data.X.values[:120], (data.X.values[:120, 0] > 1).astype(int)
    ours = DiagAttClassifier().fit(x, y, class_weight="balanced")
    theirs = LogisticRegression(class_weight="balanced", tol=1e-12, max_iter=1000).fit(x, y)
    np.testing.assert_allclose(ours.predict_proba(x), theirs.predict_proba(x), atol=1e-6)


def test_labels_and_cross_validation(data):
    labels = np.column_stack([data.y, np.arange(120) % 5 == 0]).astype(int)
    model = DiagAttClassifier(solver="uniform")
    found = model.fit(data.X, labels, class_weight="balanced").predict_proba(data.X)
    weights = compute_sample_weight("balanced", labels)
    assert np.array_equal(found, model.fit(data.X, labels, weights).predict_proba(data.X))
    scores = cross_val_score(model, data.X, data.y, cv=2, params={"class_weight": "balanced"})
    assert np.isfinite(scores).all()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("even", "class_weight must be 'balanced' or"),
        ({7: 1.0}, "class_weight has the class 7, but those of y are 0, 1"),
        ({0: -1.0}, r"class_weight\[0\] = -1.0 is not a positive number"),
        ({0: "much"}, "is not a positive number"),
        ([1.0, 2.0], "class_weight must be 'balanced' or"),
    ],
)
def test_bad_class_weights_are_refused_in_a_sentence(data, given, said):
    with pytest.raises(ValueError, match=said):
        DiagAttClassifier(solver="uniform").fit(data.X, data.y, class_weight=given)


def test_a_store_has_weights_of_its_own(data, tmp_path):
    store = RowStore.from_rows(tmp_path / "store", data.X, data.y)
    with pytest.raises(ValueError, match="class_weight is for samples in memory"):
        DiagAttClassifier(solver="uniform").fit(store, class_weight="balanced")


def test_a_weight_given_to_the_constructor_is_told_where_it_belongs():
    with pytest.raises(TypeError, match=r"class_weight is about the samples"):
        DiagAttClassifier(class_weight="balanced")
