"""What the likelihood solver predicts: from the pooled row, or by the mean over rows."""

import numpy as np
import pytest

from diagatt import DiagAttClassifier, DiagAttRegressor, simulate
from diagatt.metrics import class_scores
from diagatt.solvers import Likelihood

GIVEN = {"p": 5, "d": 3, "mu": (2,), "sigma2": (3,), "noise": 0, "dtype": np.float64}


@pytest.fixture(scope="module")
def samples():
    """Training and new samples with grades of proportional odds."""
    rng, found = np.random.default_rng(0), []
    for part, count in enumerate((200, 500)):
        data = simulate.regression(count, beta=[1.5, -1.0, 1.0], **GIVEN, seed=(0, part))
        found.append((data.X, np.digitize(data.y + rng.logistic(size=count), [-1, 0, 1.5])))
    return found


def test_a_mixture_is_the_mean_of_what_rows_predict(samples):
    (X, grade), _ = samples
    solver = Likelihood(readout="mixture")
    model = DiagAttClassifier(solver=solver, random_state=0).fit(X, (grade > 1).astype(int))
    kappa = model.attention(X)
    each = [1 / (1 + np.exp(-(x @ model.value_[0] + model.intercept_))) for x in X]
    mean = [k[:, 0] @ p for k, p in zip(kappa, each, strict=True)]
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], mean, atol=1e-12)


def test_both_are_the_same_for_an_identity_link(samples):
    (X, grade), _ = samples
    found = [
        DiagAttRegressor(solver=Likelihood(readout=how), random_state=0).fit(X, grade).predict(X)
        for how in ("pooled", "mixture")
    ]
    np.testing.assert_allclose(*found, atol=1e-9)


@pytest.mark.slow
def test_ordered_classes_are_predicted_by_the_mixture(samples, tmp_path):
    (X, grade), (new, truth) = samples

    def fitted(**how):
        return DiagAttClassifier(family="ordinal", random_state=0, **how).fit(X, grade)

    model, pooled = fitted(solver=Likelihood()), fitted(solver=Likelihood(readout="pooled"))
    assert (model.readout_, pooled.readout_) == ("mixture", "pooled")
    np.testing.assert_array_equal(model.value_, pooled.value_)  # the same fit
    scores = [class_scores(truth, m.predict_proba(new))["log_score"] for m in (model, pooled)]
    assert scores[0] > scores[1]
    model.save(tmp_path / "m.safetensors")
    again = DiagAttClassifier.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.predict_proba(new), model.predict_proba(new))


def test_other_classes_are_predicted_from_the_pooled_row(samples):
    (X, grade), _ = samples
    assert DiagAttClassifier(solver=Likelihood(), random_state=0).fit(X, grade).readout_ == "pooled"


def test_no_mixture_of_quantiles():
    model = DiagAttRegressor(family="quantile(0.7)", solver=Likelihood(readout="mixture"))
    with pytest.raises(ValueError, match="set readout='pooled'"):
        model.fit(np.zeros((4, 2, 1)), np.arange(4.0))
