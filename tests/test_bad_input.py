"""Bad input: an error that says what, where and what to do."""

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError

from diagatt import DiagAttClassifier, DiagAttRegressor, DiagAttSurvival, RaggedRows
from diagatt.solvers import Gradient
from diagatt.solvers.glm import DivergedError

# Short fits need not find a row; what is tested here is something else.
pytestmark = pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")

D = 3


def samples(n=20, seed=0):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(rng.integers(2, 5), D)) for _ in range(n)]
    return X, np.array([sample[0].sum() for sample in X])


def fitted():
    return DiagAttRegressor(solver="gradient", random_state=0).fit(*samples())


def spoiled(sample, row, value):
    X, _ = samples()
    X[sample][row, 1] = value
    return X


# ---------------------------------------------------------------------- samples


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_that_are_not_finite_are_located(value, dtype):
    kind = "NaN" if np.isnan(value) else "infinity"
    message = rf"sample 7, row 1 contains {kind}: drop the row or impute it"
    X = [sample.astype(dtype) for sample in spoiled(7, 1, value)]
    with pytest.raises(ValueError, match=message):
        DiagAttRegressor().fit(X, samples()[1])
    model = fitted()
    for method in (model.predict, model.locate, model.attention, model.transform, model.scores):
        with pytest.raises(ValueError, match=message):
            method(X)


def test_opposite_infinities_do_not_hide_each_other():
    X = spoiled(3, 0, np.inf)
    X[9][1, 1] = -np.inf
    with pytest.raises(ValueError, match="sample 3, row 0 contains infinity"):
        DiagAttRegressor().fit(X, samples()[1])


def test_numbers_whose_squares_overflow_are_called_too_large_and_not_infinite():
    def rows(value):
        return RaggedRows.from_samples([np.full((3, 1), value), np.full((2, 1), value)])

    DiagAttRegressor()._validate_rows(rows(1e154), reset=True)  # only the sum of squares overflows
    with pytest.raises(ValueError, match=r"sample 0, row 0 holds 1e\+308, which is too large"):
        DiagAttRegressor()._validate_rows(rows(1e308), reset=True)


def test_not_finite_in_one_row_samples_and_responses():
    X, y = np.zeros((4, 2)), np.arange(4.0)
    with pytest.raises(ValueError, match="sample 0, row 0 contains NaN"):
        DiagAttRegressor().fit(np.where(np.eye(4, 2), np.nan, 0.0), y)
    with pytest.raises(ValueError, match=r"y\[2\] is infinity: drop the sample"):
        DiagAttRegressor().fit(X, [0.0, 1.0, np.inf, 2.0])


BAD_SAMPLES = {
    "empty sample": (
        lambda: [np.zeros((2, D)), np.zeros((0, D))],
        "sample 1 has no rows: every sample needs at least one row; drop it",
    ),
    "empty list": (lambda: [], r"list of samples is empty: pass at least one \(p, d\) matrix"),
    "empty tuple": (lambda: (), r"list of samples is empty: pass at least one \(p, d\) matrix"),
    "empty 3-D array": (lambda: np.zeros((0, 2, D)), "holds no sample: pass at least one"),
    "differing d": (
        lambda: [np.zeros((2, D)), np.zeros((2, D + 1))],
        "sample 1 has 4 features, sample 0 has 3: all samples need the same number",
    ),
    "a vector among matrices": (
        lambda: [np.zeros((2, D)), np.zeros(D)],
        r"sample 1 must be a 2-D array \(rows × features\), got 1-D",
    ),
    "strings": (
        lambda: [np.array([["a", "b"]]), np.array([["c", "d"]])],
        "sample 0 is not numeric .*: pass real numbers",
    ),
    "objects": (
        lambda: [np.zeros((1, 2)), np.array([[1, "b"]], dtype=object)],
        "sample 1, row 0 holds 'b', not a number",
    ),
    "complex": (
        lambda: [np.zeros((1, 2)), np.array([[1, 2j]])],
        "Complex data not supported: sample 1 is complex; pass real numbers",
    ),
    "no features": (lambda: [np.zeros((2, 0)), np.zeros((1, 0))], "has 0 features"),
    "four axes": (lambda: np.zeros((2, 2, 2, 2)), "X must be a 2-D array .*, got 4-D"),
}


@pytest.mark.parametrize("estimator", [DiagAttRegressor, DiagAttClassifier])
@pytest.mark.parametrize("case", BAD_SAMPLES)
def test_what_is_not_a_list_of_matrices_is_refused(case, estimator):
    make, message = BAD_SAMPLES[case]
    with pytest.raises(ValueError, match=message):
        estimator().fit(make(), [0, 1])


@pytest.mark.parametrize("method", ["predict", "locate", "attention", "transform", "scores"])
def test_another_number_of_features_is_refused(method):
    with pytest.raises(ValueError, match="X has 5 features, but DiagAttRegressor is expecting 3"):
        getattr(fitted(), method)([np.zeros((2, 5))])


@pytest.mark.parametrize("method", ["predict", "locate", "attention", "transform", "scores"])
@pytest.mark.parametrize("make", [np.asarray, torch.as_tensor, np.ndarray.tolist])
def test_a_single_matrix_where_a_list_was_meant(method, make):
    one = samples()[0][0]
    with pytest.raises(ValueError, match=r"For a single sample pass a list: \[X\]"):
        getattr(fitted(), method)(make(one))
    assert len(getattr(fitted(), method)([one])) == 1


@pytest.mark.parametrize(
    "method", ["predict", "locate", "attention", "transform", "scores", "restart_agreement"]
)
def test_nothing_works_before_fit(method):
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        getattr(DiagAttRegressor(), method)(samples()[0])


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
def test_no_classifier_works_before_fit(method):
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        getattr(DiagAttClassifier(), method)(samples()[0])


# ---------------------------------------------------------------------- responses


@pytest.mark.parametrize("estimator", [DiagAttRegressor, DiagAttClassifier])
def test_responses_of_another_number(estimator):
    X, y = samples()
    with pytest.raises(ValueError, match="X has 20 samples, y has 19 responses"):
        estimator().fit(X, y[1:])
    with pytest.raises(ValueError, match="requires y to be passed"):
        estimator().fit(X, None)


@pytest.mark.parametrize(
    ("family", "value", "message"),
    [
        (
            "poisson",
            -1.0,
            r"y\[4\] = -1 is outside the range of the poisson family \(0 or positive",
        ),
        ("gamma", 0.0, r"y\[4\] = 0 is outside the range of the gamma family \(positive\): choose"),
    ],
)
def test_responses_outside_the_range_of_the_family(family, value, message):
    X, y = samples()
    y = np.abs(y) + 1
    y[4] = value
    with pytest.raises(ValueError, match=message):
        DiagAttRegressor(family=family).fit(X, y)


@pytest.mark.parametrize("labels", [np.zeros(20), np.array(["yes"] * 20)])
def test_one_class_only(labels):
    with pytest.raises(ValueError, match=r"one class only \(.*\): a classifier needs at least two"):
        DiagAttClassifier().fit(samples()[0], labels)


def test_one_class_that_counts():
    labels = np.array([0] * 19 + [1])
    weights = np.array([1.0] * 19 + [0])
    with pytest.raises(ValueError, match="one class only"):
        DiagAttClassifier().fit(samples()[0], labels, sample_weight=weights)


def test_numbers_as_classes():
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        DiagAttClassifier().fit(*samples())


def test_responses_that_are_no_numbers():
    X, y = samples()
    with pytest.raises(ValueError, match="Complex data not supported"):
        DiagAttRegressor().fit(X, y + 1j)
    with pytest.raises(ValueError, match="y is not numeric"):
        DiagAttRegressor().fit(X, ["a"] * 20)


# ---------------------------------------------------------------------- weights, covariates


@pytest.mark.parametrize("estimator", [DiagAttRegressor, DiagAttClassifier])
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (
            [1.0] * 5 + [-0.5] + [1.0] * 14,
            r"sample_weight\[5\] = -0.5 is negative: weights are ≥ 0",
        ),
        ([0.0] * 20, "all sample weights are zero: at least one sample must count"),
        ([1.0] * 19, "sample_weight has 19 entries, X has 20 samples"),
        ([1.0] * 19 + [np.nan], r"sample_weight\[19\] is NaN"),
        (np.ones((20, 2)), "Sample weights must be 1D"),
    ],
)
def test_bad_weights(estimator, weights, message):
    X, y = samples()
    with pytest.raises(ValueError, match=message):
        estimator().fit(X, (y > 0).astype(int), sample_weight=weights)


def test_bad_covariates():
    X, y = samples()
    model = DiagAttRegressor(solver="gradient")
    with pytest.raises(ValueError, match="covariates have 3 lines, X has 20 samples"):
        model.fit(X, y, covariates=np.zeros((3, 1)))
    with pytest.raises(
        ValueError, match=r"covariates\[0, 0\] is NaN: drop the sample or impute the entry"
    ):
        model.fit(X, y, covariates=np.full((20, 1), np.nan))
    model.fit(X, y, covariates=y[:, None] ** 2)
    for other in (None, np.zeros((20, 2))):
        with pytest.raises(ValueError, match=r"fitted with 1 covariates, got [02]: pass the same"):
            model.predict(X, other)


# ---------------------------------------------------------------------- divergence, nothing lost


def test_a_diverging_fit_says_when_and_what_to_try():
    model = DiagAttRegressor(solver=Gradient(optimizer="adam", learning_rate=1e200))
    with pytest.raises(
        DivergedError, match=r"loss became (inf|nan) at epoch \d+: lower learning_rate"
    ):
        model.fit(*samples())


@pytest.mark.parametrize(
    ("solver", "size", "dtype"),
    [
        ("auto", 1e200, np.float64),
        ("gradient", 1e200, np.float64),
        ("likelihood", 1e200, np.float64),
        ("likelihood", 1e25, np.float32),
    ],
)
def test_rows_too_large_for_their_squares(solver, size, dtype):
    X, y = samples()
    large = [(size * sample).astype(dtype) for sample in X]
    message = (
        rf"row \d holds .*, which is too large: its square is beyond {large[0].dtype}. Standard"
    )
    with pytest.raises(ValueError, match=message):
        DiagAttRegressor(solver=solver).fit(large, y)


@pytest.mark.parametrize(
    "bad",
    [
        lambda X, y: (spoiled(2, 0, np.nan), y),
        lambda X, y: (X, y[1:]),
        lambda X, y: ([], y),
    ],
)
def test_a_refused_refit_keeps_the_model(bad):
    X, y = samples()
    model = fitted()
    before = model.predict(X)
    with pytest.raises(ValueError, match=r"."):
        model.fit(*bad(X, y))
    np.testing.assert_array_equal(model.predict(X), before)


def test_input_is_not_changed():
    X, y = samples()
    weights = np.linspace(0, 1, 20)
    copies = [sample.copy() for sample in X], y.copy(), weights.copy()
    DiagAttRegressor(random_state=0).fit(X, y, sample_weight=weights).transform(X)
    for sample, copy in zip(X, copies[0], strict=True):
        np.testing.assert_array_equal(sample, copy)
    np.testing.assert_array_equal(y, copies[1])
    np.testing.assert_array_equal(weights, copies[2])


def test_one_group_cannot_be_held_out():
    X, y = np.random.default_rng(0).normal(size=(12, 3, 2)), np.arange(12.0)
    with pytest.raises(ValueError, match="groups: all samples are of one group"):
        DiagAttRegressor(random_state=0).fit(X, y, groups=["a"] * 12)


def test_responses_that_vanish_in_single_precision():
    X = np.random.default_rng(0).normal(size=(12, 3, 2)).astype(np.float32)
    y = 1e-300 * np.arange(12.0)
    with pytest.raises(ValueError, match="y holds numbers that are too small for"):
        DiagAttRegressor(solver="likelihood").fit(X, y)
    seen = {"time": 1e-300 * np.arange(1, 13.0), "event": np.arange(12) % 2}
    with pytest.raises(ValueError, match="y holds numbers that are too small for"):
        DiagAttSurvival(solver="likelihood").fit(X, seen)


@pytest.mark.parametrize("solver", ["likelihood", "gradient", "mixture"])
@pytest.mark.parametrize(
    "error",
    [
        RuntimeError(
            "DefaultCPUAllocator: can't allocate memory: you tried to allocate 8000 bytes"
        ),
        MemoryError("Unable to allocate 74.5 GiB for an array with shape (100000, 100000)"),
    ],
)
def test_features_whose_square_is_larger_than_memory(solver, error, monkeypatch):
    def full(*_, **__):
        raise error

    monkeypatch.setattr(DiagAttRegressor, "_keep", full)
    with pytest.raises(ValueError, match="to 3 features needs more memory than there is: choose"):
        DiagAttRegressor(solver=solver).fit(*samples())


def test_what_can_be_read_once_only_is_no_list_of_samples():
    X = np.random.default_rng(0).normal(size=(12, 3, 2))
    with pytest.raises(ValueError, match="X is a generator: pass a list"):
        DiagAttRegressor(solver="likelihood").fit((m for m in X), np.arange(12.0))
    with pytest.raises(ValueError, match="X is a map: pass a list"):
        DiagAttRegressor(solver="likelihood").fit(map(np.asarray, X), np.arange(12.0))
    with pytest.raises(ValueError, match="y is a generator: pass a list"):
        DiagAttRegressor(solver="likelihood").fit(X, (v for v in np.arange(12.0)))
