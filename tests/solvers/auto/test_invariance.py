"""The default does not feel how samples are written down.

Predictions agree to 1e-6 of the spread of the response.
"""

from functools import cache

import numpy as np
import pytest

from diagatt import DiagAttClassifier, DiagAttRegressor, RaggedRows
from diagatt.solvers import Auto

pytestmark = pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")

N, D = 20, 3
CLOSE = 1e-6


def draw():
    """Samples of which one row decides; features of unequal scales, one of them skewed."""
    rng = np.random.default_rng(5)
    X = [rng.normal(size=(rng.integers(2, 5), D)) for _ in range(N)]
    for sample in X:
        sample[0] += 1.5
    y = np.array([sample[0] @ [1.0, -1.0, 0.5] for sample in X]) + 0.3 * rng.normal(size=N)
    for sample in X:
        sample[:, 1] *= 4
        sample[:, 2] = np.exp(sample[:, 2])
    return X, y


SAMPLES, RESPONSE = draw()
CLASSES = np.digitize(RESPONSE, [np.median(RESPONSE)])


def predicted(kind, X, y, new=None, **given):
    """Predictions of the default, fitted with few folds, of the samples or of new ones."""
    estimator = DiagAttRegressor if kind == "regressor" else DiagAttClassifier
    model = estimator(solver=Auto(folds=2), random_state=0)
    model.fit(RaggedRows.from_samples(X), y, **given)
    asked = RaggedRows.from_samples(X if new is None else new)
    if kind == "regressor":
        return model.predict(asked)
    return model.predict_proba(asked)[:, 1]


def response(kind):
    return RESPONSE if kind == "regressor" else CLASSES


@cache
def plain(kind):
    return predicted(kind, SAMPLES, response(kind))


def assert_close(kind, ours, theirs):
    scale = RESPONSE.std() if kind == "regressor" else 1.0
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=CLOSE * scale)


def each(change):
    return [change(sample) for sample in SAMPLES]


SAME = {
    "rows": lambda X: X[::-1],
    "features": lambda X: X[:, ::-1],
    "shifts": lambda X: X + 1e3 * np.array([1.0, -4.0, 5.0]),
    "a constant column": lambda X: np.column_stack([X[:, :1], np.full(len(X), 0.1), X[:, 1:]]),
}
kinds = pytest.mark.parametrize("kind", ["regressor", "classifier"])


@pytest.mark.slow
@kinds
@pytest.mark.parametrize("what", SAME)
def test_writing_samples_down_otherwise_changes_nothing(kind, what):
    assert_close(kind, predicted(kind, each(SAME[what]), response(kind)), plain(kind))


@pytest.mark.slow
@kinds
@pytest.mark.parametrize("units", [1e6, 1e-6, (1e-6, 1.0, 1e6), (10.0, 0.1, 1e4)])
def test_units_of_features_change_nothing(kind, units):
    """Nor do those of single features: a scale that features share must be clearly better."""
    X = each(lambda sample: sample * np.array(units) + 50.0 * np.array(units))
    assert_close(kind, predicted(kind, X, response(kind)), plain(kind))


@pytest.mark.slow
@kinds
def test_the_order_of_samples_changes_nothing(kind):
    order = np.random.default_rng(0).permutation(N)
    ours = predicted(kind, [SAMPLES[i] for i in order], response(kind)[order], SAMPLES)
    assert_close(kind, ours, plain(kind))


@pytest.mark.slow
@kinds
def test_copies_are_weights(kind):
    counts = np.random.default_rng(0).integers(1, 3, size=N)
    copies = np.repeat(np.arange(N), counts)
    ours = predicted(kind, [SAMPLES[i] for i in copies], response(kind)[copies], SAMPLES)
    theirs = predicted(kind, SAMPLES, response(kind), sample_weight=counts.astype(float))
    assert_close(kind, ours, theirs)


@pytest.mark.slow
def test_units_of_the_response_change_nothing():
    ours = predicted("regressor", SAMPLES, 1e6 * RESPONSE - 3e7)
    assert_close("regressor", (ours + 3e7) / 1e6, plain("regressor"))
