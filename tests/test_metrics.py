"""Metrics against their definitions and against scikit-learn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from sklearn import metrics as reference

from diagatt.metrics import (
    accuracy,
    class_scores,
    crlr,
    log_density,
    mean_deviance,
    number_scores,
    quadratic_kappa,
    ranked_probability_score,
    rmse,
)

rng = np.random.default_rng(0)
POSITIVE = rng.gamma(2.0, size=(2, 50)) + 0.1


def test_rmse_is_scikit_learns():
    y, prediction = rng.normal(size=(2, 40))
    assert rmse(y, prediction) == pytest.approx(reference.root_mean_squared_error(y, prediction))


def test_rmse_of_float32_is_computed_in_float64():
    y = np.full(10, 1e20, dtype=np.float32)
    assert rmse(y, np.zeros(10, dtype=np.float32)) == pytest.approx(1e20)


def test_accuracy_takes_any_labels():
    assert accuracy([True, False, True], [1, 1, 1]) == pytest.approx(2 / 3)
    assert accuracy(np.array(["a", "b"]), np.array(["b", "b"])) == 0.5


# ---------------------------------------------------------------------- crlr

row_sets = st.sets(st.integers(0, 12), min_size=1, max_size=4)
samples = st.lists(st.tuples(row_sets, st.lists(st.integers(0, 12), max_size=6)), min_size=1)


@given(samples)
@settings(max_examples=60)
def test_crlr_is_the_papers_formula(pairs):
    true, located = zip(*pairs, strict=True)
    expected = sum(sum(j in found for j in rows) / len(rows) for rows, found in pairs) / len(pairs)
    assert crlr(true, located) == pytest.approx(expected)
    assert crlr([list(rows) for rows in true], [set(rows) for rows in located]) == pytest.approx(
        expected
    )


@pytest.mark.parametrize(
    ("true", "located", "expected"),
    [
        ([[1, 2]], [[2, 1]], 1.0),  # order does not matter
        ([[1, 2]], [[1, 1]], 0.5),  # duplicates count once
        ([[1, 1]], [[1, 5]], 1.0),  # among the true rows, too
        ([[1]], [[0, 1, 2, 3]], 1.0),  # further rows cost nothing
        ([3, 4], [3, 5], 0.5),  # one row a sample
        ([[3], [4]], [[], [4]], 0.5),
    ],
)
def test_crlr_by_hand(true, located, expected):
    assert crlr(true, located) == expected


def test_crlr_takes_arrays_of_any_integer_type():
    true, located = np.array([[1, 2], [3, 4]], dtype=np.int32), np.array([[2, 9, 1], [4, 9, 9]])
    assert crlr(true, located) == 0.75
    assert crlr(list(true), [set(row) for row in located]) == 0.75


# ---------------------------------------------------------------------- deviance


@pytest.mark.parametrize(
    ("family", "y", "mean", "expected"),
    [
        ("gaussian", *POSITIVE, reference.mean_squared_error),
        ("gamma", *POSITIVE, reference.mean_gamma_deviance),
        ("poisson", np.floor(POSITIVE[0]), POSITIVE[1], reference.mean_poisson_deviance),
        ("bernoulli", POSITIVE[0] > 1, 1 / (1 + POSITIVE[1]), reference.log_loss),
    ],
)
def test_deviance_is_scikit_learns(family, y, mean, expected):
    factor = 2 if family == "bernoulli" else 1
    assert mean_deviance(family, y.astype(float), mean) == pytest.approx(factor * expected(y, mean))


def test_multinomial_deviance_is_scikit_learns():
    y = rng.integers(0, 3, size=40)
    proba = rng.dirichlet(np.ones(3), size=40)
    expected = 2 * reference.log_loss(y, proba, labels=[0, 1, 2])
    assert mean_deviance("multinomial", y, proba) == pytest.approx(expected)


def test_two_classes_agree_in_both_families():
    y, p = rng.integers(0, 2, size=30), rng.uniform(0.1, 0.9, size=30)
    two = mean_deviance("multinomial", y, np.column_stack([1 - p, p]))
    assert mean_deviance("bernoulli", y, p) == pytest.approx(two)


@pytest.mark.parametrize("family", ["gaussian", "bernoulli", "poisson", "gamma"])
def test_perfect_prediction_has_no_deviance(family):
    y = np.array([1.0, 1.0, 0.0])[: 2 if family == "gamma" else 3]
    mean = np.maximum(y, 1e-300) if family == "poisson" else y
    assert mean_deviance(family, y, mean) == pytest.approx(0.0, abs=1e-12)


def test_ruled_out_responses_cost_infinitely_much():
    assert mean_deviance("bernoulli", [1, 0], [0.0, 0.5]) == np.inf
    assert mean_deviance("multinomial", [1, 0], [[1.0, 0.0], [0.5, 0.5]]) == np.inf


def test_certain_and_right_costs_nothing():
    assert str(mean_deviance("bernoulli", [1, 0], [1.0, 0.0])) == "0.0"
    assert str(mean_deviance("multinomial", [2, 0], [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])) == "0.0"


# ---------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rmse([1, 2], [1]), "y has 2 samples, prediction has 1"),
        (lambda: rmse([], []), "at least one sample"),
        (lambda: rmse([[1.0]], [1.0]), "got 2-D and 1-D"),
        (lambda: accuracy([1], [1, 2]), r"inconsistent numbers of samples: \[1, 2\]"),
        (lambda: crlr([[1], [2]], [[1]]), "2 samples, located_rows 1"),
        (lambda: crlr([], []), "at least one sample"),
        (lambda: crlr([[1], []], [[1], [2]]), "sample 1 has no true row"),
        (lambda: mean_deviance("normal", [1], [1]), "unknown family 'normal'"),
        (lambda: mean_deviance("gamma", [1, 0], [1, 1]), "y of sample 1 must be positive"),
        (
            lambda: mean_deviance("gamma", [1, 1], [0, 1]),
            r"mean of sample 0 must be inside .*\(positive\)",
        ),
        (lambda: mean_deviance("poisson", [-1], [1]), "y of sample 0 must be 0 or positive"),
        (lambda: mean_deviance("bernoulli", [2], [0.5]), "y of sample 0"),
        (lambda: mean_deviance("bernoulli", [1], [1.5]), "mean of sample 0"),
        (lambda: mean_deviance("multinomial", [2], [[0.5, 0.5]]), "a column of mean, 0..1"),
        (
            lambda: mean_deviance("multinomial", [0.5], [[0.5, 0.5]]),
            "y of sample 0 must be 0, 1, …",
        ),
        (lambda: mean_deviance("multinomial", [0], [0.5]), "mean 2-D"),
    ],
)
def test_errors_say_what_and_where(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# ---------------------------------------------------------------------- all scores at once


@pytest.mark.parametrize("n_classes", [2, 3])
def test_class_scores_are_scikit_learns(n_classes):
    rng = np.random.default_rng(0)
    y, p = rng.integers(n_classes, size=80), rng.dirichlet(np.ones(n_classes), size=80)
    p = 0.9 * p + 0.1 / n_classes  # away from the floor
    found = class_scores(y, p)
    ranked = p[:, 1] if n_classes == 2 else p
    assert found["auc"] == pytest.approx(reference.roc_auc_score(y, ranked, multi_class="ovr"))
    chosen = p.argmax(axis=1)
    assert found["accuracy"] == pytest.approx(reference.accuracy_score(y, chosen))
    assert found["balanced_accuracy"] == pytest.approx(reference.balanced_accuracy_score(y, chosen))
    assert found["log_score"] == pytest.approx(-reference.log_loss(y, p), rel=1e-9)


def test_a_class_that_is_predicted_but_absent_costs_no_balanced_accuracy():
    p = np.eye(3)[[0, 1, 2]]
    found = class_scores(np.array([0, 1, 1]), p)
    assert "auc" not in found
    assert found["balanced_accuracy"] == pytest.approx(0.75)  # (1 + 1/2) / 2


def test_log_density_of_an_identity_link_leaves_negative_means_alone():
    y = np.array([-5.0, -4.0, -6.0, -5.5])
    mean = y + np.array([0.1, -0.2, 0.3, -0.1])
    shifted = log_density(y + 100, mean + 100, "huber")
    np.testing.assert_allclose(log_density(y, mean, "huber"), shifted, rtol=1e-9)


def test_number_scores_are_scikit_learns():
    rng = np.random.default_rng(0)
    y, mean = rng.normal(size=50), rng.normal(size=50)
    found = number_scores(y, mean)
    assert found["r2"] == pytest.approx(reference.r2_score(y, mean))
    assert found["rmse"] == pytest.approx(reference.root_mean_squared_error(y, mean))
    assert found["mae"] == pytest.approx(reference.mean_absolute_error(y, mean))
    assert found["log_score"] == pytest.approx(log_density(y, mean, "gaussian").mean())
    assert number_scores(y[:1], mean[:1]).keys() == {"rmse", "mae"}


def test_scores_of_shares_are_those_of_single_trials():
    """RMSE and R² count a share once per trial; the log score is scipy's binomial likelihood."""
    y, p = np.array([[1, 3], [2, 0], [5, 5]]), np.array([0.3, 0.8, 0.6])
    trials = y.sum(axis=1)
    share, each = (np.repeat(x, trials) for x in (y[:, 0] / trials, p))
    expected = {
        "r2": reference.r2_score(share, each),
        "rmse": reference.root_mean_squared_error(share, each),
        "mae": reference.mean_absolute_error(share, each),
        "log_score": binom.logpmf(y[:, 0], trials, p).mean(),
    }
    assert number_scores(y, p, "binomial") == pytest.approx(expected)


def test_quadratic_kappa_is_scikit_learns():
    y, predicted = rng.integers(4, size=(2, 60))
    expected = reference.cohen_kappa_score(y, predicted, weights="quadratic", labels=range(4))
    assert quadratic_kappa(y, predicted, 4) == pytest.approx(expected)
    assert quadratic_kappa([1, 1], [1, 1], 3) == 0.0


def test_the_ranked_probability_score_is_its_definition():
    y, p = rng.integers(3, size=20), rng.dirichlet(np.ones(3), size=20)
    terms = [
        (p[i, : k + 1].sum() - (y[i] <= k)) ** 2 for i in range(20) for k in range(2)
    ]  # two thresholds of three classes
    assert ranked_probability_score(y, p) == pytest.approx(np.mean(terms))
    found = class_scores(y, p, ordered=True)
    assert found["rps"] == ranked_probability_score(y, p)
    assert "kappa" not in class_scores(y, p)
    # Of two classes it is the Brier score.
    two, q = rng.integers(2, size=20), rng.dirichlet(np.ones(2), size=20)
    expected = reference.brier_score_loss(two, q[:, 1])
    assert ranked_probability_score(two, q) == pytest.approx(expected)
