"""Several outcomes share the attention; each class has rows that indicate it."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import cross_val_predict, cross_val_score
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor

from diagatt import DiagAttClassifier, DiagAttRegressor, simulate
from diagatt.metrics import crlr
from diagatt.solvers import Auto, Gradient, Likelihood, Mixture, Uniform
from tests.closeness import assert_equal_up_to_rounding

pytestmark = pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")
N, D, COUNT = 200, 3, 3
B = np.array([[1.0, 0.0, -0.5], [0.0, 1.0, 0.5], [-0.5, 0.5, 1.0]])  # (D, COUNT)
UNITS = np.array([1.0, 100.0, 0.01])
SOLVERS = [Uniform(), Gradient(), Likelihood(), Mixture(n_starts=1)]


@pytest.fixture(scope="module")
def data():
    return simulate.regression(N, 5, D, mu=(3,), sigma2=(4,), noise=0, seed=0, dtype=np.float64)


@pytest.fixture(scope="module")
def eta(data):
    return np.array([x[r[0]] for x, r in zip(data.X, data.rows, strict=True)]) @ B


@pytest.fixture(scope="module")
def numbers(eta):
    return eta + np.random.default_rng(1).normal(size=eta.shape)


@pytest.fixture(scope="module")
def labels(eta):
    return (eta + np.random.default_rng(2).logistic(size=eta.shape) > 0).astype(int)


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: s.name)
def test_units_and_order_of_outcomes_do_not_matter(data, numbers, solver):
    model = DiagAttRegressor(solver=solver, random_state=0).fit(data.X, numbers)
    other = DiagAttRegressor(solver=solver, random_state=0)
    turned = [2, 0, 1]
    other.fit(data.X, (numbers * UNITS + [1.0, 0.0, 0.0])[:, turned])
    expected = (model.predict(data.X) * UNITS + [1.0, 0.0, 0.0])[:, turned]
    # L-BFGS ends where no entry of the gradient is above 1e-6 or 1e-8, on a path of its own.
    scale = expected.std(axis=0)
    np.testing.assert_allclose(other.predict(data.X) / scale, expected / scale, atol=2e-3)
    assert model.predict(data.X).shape == numbers.shape
    assert model.score(data.X, numbers) == pytest.approx(r2_score(numbers, model.predict(data.X)))


def test_without_attention_outcomes_are_fitted_as_each_by_itself(data, numbers, labels):
    scaled = numbers * UNITS
    model = DiagAttRegressor(solver="uniform").fit(data.X, scaled)
    single = [DiagAttRegressor(solver="uniform").fit(data.X, y) for y in scaled.T]
    found = np.column_stack([one.predict(data.X) for one in single])
    assert_equal_up_to_rounding(model.predict(data.X) / UNITS, found / UNITS, operations=1e6)
    np.testing.assert_allclose(model.intercept_, [one.intercept_ for one in single], rtol=1e-8)
    ratio = model.value_se_ / [one.value_se_ for one in single]
    # Three times the parameters raise the leverage of samples, and with it the sandwich, a little.
    assert (ratio > 1).all()
    assert (ratio < 1.2).all()
    classifier = DiagAttClassifier(solver="uniform").fit(data.X, labels)
    single = [DiagAttClassifier(solver="uniform").fit(data.X, y) for y in labels.T]
    found = np.column_stack([one.predict_proba(data.X)[:, 1] for one in single])
    np.testing.assert_allclose(classifier.predict_proba(data.X), found, atol=1e-8)


def test_the_likelihood_of_a_mixture_is_that_of_all_outcomes_together(data, numbers):
    """Brute force: log Σ_j κ_j Π_k p(y_k | ⟨v_k, x_j⟩ + b_k)."""
    model = DiagAttRegressor(solver=Mixture(n_starts=1), random_state=0)
    model.fit(data.X, numbers * UNITS)
    kappa = model.attention(data.X)
    z = [x @ model.value_[0].T + model.intercept_ for x in data.X]  # (p, COUNT) each
    y = numbers * UNITS

    def log_likelihood(phi):
        spread = np.sqrt(phi) * y.std(axis=0)
        terms = [
            np.log(k[:, 0]) + stats.norm.logpdf(one, own, spread).sum(axis=1)
            for k, own, one in zip(kappa, z, y, strict=True)
        ]
        return sum(np.logaddexp.reduce(term) for term in terms)

    best = max(log_likelihood(phi) for phi in np.linspace(0.1, 0.5, 41))
    assert model.criteria_[0]["log_likelihood"] == pytest.approx(best, rel=2e-3)


def test_shared_attention_finds_rows_that_no_outcome_finds_alone(data, eta):
    y = eta + 6.0 * np.random.default_rng(1).normal(size=eta.shape)
    solver = Mixture(n_starts=1)
    shared = DiagAttRegressor(solver=solver, random_state=0).fit(data.X, y)
    alone = [DiagAttRegressor(solver=solver, random_state=0).fit(data.X, one) for one in y.T]
    own = [crlr(data.rows, one.locate(data.X)) for one in alone]
    assert crlr(data.rows, shared.locate(data.X)) > np.mean(own)


@pytest.mark.parametrize("solver", [Gradient(), Likelihood(), Mixture(n_starts=1)], ids=str)
def test_labels_are_predicted_and_kept(data, labels, solver, tmp_path):
    frame = pd.DataFrame(labels, columns=["fever", "cough", "rash"])
    model = DiagAttClassifier(solver=solver, random_state=0).fit(data.X, frame)
    p = model.predict_proba(data.X)
    assert p.shape == labels.shape
    assert np.array_equal(model.predict(data.X), (p > 0.5).astype(int))
    assert model.score(data.X, labels) == (model.predict(data.X) == labels).all(axis=1).mean()
    assert roc_auc_score(labels, p) > 0.75
    model.save(tmp_path / "m.safetensors")
    again = DiagAttClassifier.load(tmp_path / "m.safetensors")
    assert np.array_equal(again.predict_proba(data.X), p)
    assert again.n_outputs_ == COUNT
    assert "head 0 rash" in str(again.summary())


def test_the_default_compares_ways_to_fit_several_outcomes(data, numbers, labels, tmp_path):
    few = Auto([Uniform(), Likelihood()], folds=2)
    model = DiagAttRegressor(solver=few, random_state=0).fit(data.X, numbers * UNITS)
    assert r2_score(numbers * UNITS, model.predict(data.X)) > 0.5
    # Densities are those of outcomes in their own units.
    plain = DiagAttRegressor(solver=few, random_state=0).fit(data.X, numbers)
    assert model.log_score_ == pytest.approx(plain.log_score_ - np.log(UNITS).sum(), abs=1e-6)
    model.save(tmp_path / "m.safetensors")
    again = DiagAttRegressor.load(tmp_path / "m.safetensors")
    assert np.array_equal(again.predict(data.X), model.predict(data.X))
    ends, plain_ends = model.predict_interval(data.X), plain.predict_interval(data.X)
    np.testing.assert_allclose(ends, plain_ends * np.reshape(UNITS, (1, -1, 1)), rtol=1e-6)
    many = DiagAttClassifier(solver=Auto(folds=2), random_state=0)
    many.fit(data.X[:90], labels[:90])
    assert many.predict_proba(data.X).shape == labels.shape
    assert many.report_[0]["auc"] > 0.5


def test_several_heads_and_counts(data, eta):
    counts = np.random.default_rng(0).poisson(np.exp(0.4 * eta))
    short = Gradient(optimizer="adam", max_epochs=2)
    model = DiagAttRegressor(2, family="poisson", solver=short, random_state=0)
    assert (model.fit(data.X, counts).predict(data.X) > 0).all()
    quick = Likelihood(max_iterations=5)
    two = DiagAttRegressor(2, solver=quick, random_state=0).fit(data.X[:60], eta[:60])
    assert two.value_.shape == (2, COUNT, D)
    with pytest.raises(ValueError, match="not of 'poisson': use solver='mixture'"):
        DiagAttRegressor(family="poisson", solver=Likelihood()).fit(data.X, counts)


def test_offsets_weights_and_warm_starts(data, numbers):
    """An offset is in the units of y; a sample of weight 2 is that sample twice."""
    known = np.random.default_rng(0).normal(size=(N, COUNT))
    y = (numbers + known) * UNITS
    model = DiagAttRegressor(solver="uniform").fit(data.X, y, offset=known * UNITS)
    plain = DiagAttRegressor(solver="uniform").fit(data.X, numbers)
    found = model.predict(data.X, offset=known * UNITS) / UNITS - known
    # The unit of an outcome, and with it the ridge, is that of y with its offset.
    np.testing.assert_allclose(found, plain.predict(data.X), atol=0.05)
    weights = np.where(np.arange(N) < 50, 2.0, 1.0)
    twice = [*data.X, *data.X[:50]]
    solver = Likelihood()
    a = DiagAttRegressor(solver=solver, random_state=0).fit(data.X, numbers, weights)
    b = DiagAttRegressor(solver=solver, random_state=0).fit(twice, np.r_[numbers, numbers[:50]])
    np.testing.assert_allclose(a.predict(data.X), b.predict(data.X), atol=0.05)
    warm = DiagAttRegressor(solver=Gradient(), warm_start=True, random_state=0)
    warm.fit(data.X, numbers * UNITS)
    before = warm.predict(data.X)
    warm.fit(data.X, numbers * UNITS)
    np.testing.assert_allclose(warm.predict(data.X) / UNITS, before / UNITS, atol=1e-4)
    assert warm.n_iter_ < 10


def test_separate_attention_is_scikit_learns_wrapper(data, numbers, labels):
    X = list(data.X)
    model = MultiOutputRegressor(DiagAttRegressor(solver=Likelihood(), random_state=0))
    separate = model.fit(X, numbers).predict(X)
    alone = DiagAttRegressor(solver=Likelihood(), random_state=0).fit(X, numbers[:, 1])
    assert np.array_equal(separate[:, 1], alone.predict(X))
    assert model.estimators_[1].locate(X).shape == (N, 1)
    model = MultiOutputClassifier(DiagAttClassifier(solver=Likelihood(), random_state=0))
    assert len(model.fit(data.X, labels).predict_proba(data.X)) == COUNT
    shared = DiagAttClassifier(solver=Uniform())
    assert cross_val_predict(shared, data.X, labels, cv=2).shape == labels.shape
    assert cross_val_score(shared, data.X, labels, cv=2, scoring="roc_auc").mean() > 0.5


# ---------------------------------------------------------------------- rows of a class


def test_rows_of_a_class_are_its_posterior(data, eta):
    """Brute force: κ_j P(y = k | x_j) over its sum."""
    grade = np.digitize(eta[:, 0], [-1.0, 1.0])
    names = np.array(["low", "middle", "high"])
    model = DiagAttClassifier(solver=Mixture(n_starts=1), random_state=0).fit(data.X, names[grade])
    kappa = model.attention(data.X)
    z = [x @ model.value_[0].T + model.intercept_ for x in data.X]
    for name in names:
        k = model.classes_.tolist().index(name)
        found = model.attention(data.X, target=name)
        for own, weights, logits in zip(found, kappa, z, strict=True):
            p = np.exp(logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))[:, k]
            joint = weights[:, 0] * p
            np.testing.assert_allclose(own[:, 0], joint / joint.sum(), rtol=1e-9)
        located = model.locate(data.X, target=name)
        assert np.array_equal(located[:, 0], [w[:, 0].argmax() for w in found])


def test_rows_of_labels_and_of_several_heads(data, labels):
    model = DiagAttClassifier(solver=Gradient(), random_state=0).fit(data.X, labels)
    kappa, found = model.attention(data.X[:5]), model.attention(data.X[:5], target=2)
    for x, own, weights in zip(data.X, found, kappa, strict=False):
        joint = weights[:, 0] / (1 + np.exp(-(x @ model.value_[0, 2] + model.intercept_[2])))
        np.testing.assert_allclose(own[:, 0], joint / joint.sum(), rtol=1e-9)
    two = DiagAttClassifier(2, solver=Likelihood(max_iterations=5), random_state=0)
    two.fit(data.X[:80], labels[:80, 0])
    both = [two.attention(data.X[:5], target=c) for c in (0, 1)]
    p = two.predict_proba(data.X[:5])
    assert all(np.allclose(w.sum(axis=0), 1) for own in both for w in own)
    # Given neither class, the two mix to the attention; so much the readout of pooled rows allows.
    for i, w in enumerate(two.attention(data.X[:5])):
        mixed = p[i, 0] * both[0][i] + p[i, 1] * both[1][i]
        assert np.abs(mixed - w).max() < 0.2


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (
            lambda X: DiagAttRegressor(solver="uniform").fit(X, np.full((N, 2), np.nan)),
            r"y\[0, 0\] is NaN",
        ),
        (lambda X: DiagAttRegressor(family="huber").fit(X, np.zeros((N, 2))), "not for 'huber'"),
        (lambda X: DiagAttRegressor().fit(X, np.zeros((N - 1, 2))), "y has 199 lines, X has 200"),
        (lambda X: DiagAttClassifier().fit(X, np.arange(2 * N).reshape(N, 2)), r"y\[1, 0\] = 2"),
        (lambda X: DiagAttClassifier().fit(X, np.zeros((N, 2))), "column 0 of y is 0 in all"),
        (lambda X: DiagAttClassifier(family="ordinal").fit(X, np.eye(N)[:, :2]), "2 columns of"),
    ],
)
def test_bad_outcomes_are_refused_in_a_sentence(data, ask, said):
    with pytest.raises(ValueError, match=said):
        ask(data.X)


def test_a_target_is_a_class_of_the_model(data, labels, numbers):
    model = DiagAttClassifier(solver="uniform").fit(data.X, labels[:, 0])
    with pytest.raises(ValueError, match="target=7 is no class of this model: it has 0, 1"):
        model.attention(data.X, target=7)
    with pytest.raises(ValueError, match="target is for classes"):
        DiagAttRegressor(solver="uniform").fit(data.X, numbers).locate(data.X, target=0)


@pytest.mark.parametrize("solver", ["likelihood", Auto([Uniform(), Likelihood()], folds=2)])
def test_one_of_several_outcomes_is_a_model_of_its_own(solver, tmp_path):
    data = simulate.regression(60, p=4, d=2, mu=(3,), sigma2=(4,), seed=0, dtype=np.float64)
    y = np.column_stack([data.y, 100 * np.sin(data.y)])
    model = DiagAttRegressor(solver=solver, random_state=0).fit(data.X, y)
    for k in (0, 1):
        one = model.outcome(k)
        np.testing.assert_allclose(one.predict(data.X), model.predict(data.X)[:, k], rtol=1e-12)
        np.testing.assert_array_equal(one.locate(data.X), model.locate(data.X))
    one.save(tmp_path / "m.safetensors")
    again = DiagAttRegressor.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.predict(data.X), one.predict(data.X))
    assert model.n_outputs_ == 2
    with pytest.raises(ValueError, match="there is no outcome 'z'"):
        model.outcome("z")


def test_one_of_several_labels_is_a_classifier_of_its_own():
    data = simulate.regression(60, p=4, d=2, mu=(3,), sigma2=(4,), seed=0, dtype=np.float64)
    labels = np.column_stack([data.y > 0, data.y > 1]).astype(int)
    model = DiagAttClassifier(solver="likelihood", random_state=0).fit(data.X, labels)
    one = model.outcome(1)
    np.testing.assert_allclose(one.predict_proba(data.X)[:, 1], model.predict_proba(data.X)[:, 1])
    np.testing.assert_array_equal(one.predict(data.X), model.predict(data.X)[:, 1])


@pytest.mark.parametrize("labels", [False, True])
def test_every_outcome_has_its_interval_or_set(labels, tmp_path):
    """Each covers its share of new samples, and is that of the model of the outcome alone."""
    data = simulate.regression(600, p=4, d=2, mu=(3,), sigma2=(4,), seed=0, dtype=np.float64)
    noise = np.random.default_rng(0).normal(size=600)
    y = np.column_stack([data.y, 100 * (data.y / 2 + noise)])
    y = (y > 0).astype(int) if labels else y
    train, new = slice(0, 200), slice(200, 600)
    kind = DiagAttClassifier if labels else DiagAttRegressor
    model = kind(solver="likelihood", random_state=0).fit(data.X[train], y[train])
    model.calibrate(data.X[train], y[train])
    model.save(tmp_path / "m.safetensors")
    again = kind.load(tmp_path / "m.safetensors")
    if labels:
        sets = again.predict_set(data.X[new], level=0.9)
        held = np.array([[y[200 + i, k] in sets[i][k] for k in (0, 1)] for i in range(400)])
        alone = model.outcome("y1").predict_set(data.X[new], level=0.9)
        assert all(np.array_equal(one[1], own) for one, own in zip(sets, alone, strict=True))
    else:
        ends = again.predict_interval(data.X[new], level=0.9)
        assert ends.shape == (400, 2, 2)
        held = (ends[..., 0] <= y[new]) & (y[new] <= ends[..., 1])
        alone = model.outcome("y1").predict_interval(data.X[new], level=0.9)
        np.testing.assert_array_equal(ends[:, 1], alone)
    # 4 standard errors of a share of 400, and of what 200 residuals leave open
    assert (held.mean(axis=0) > 0.9 - 4 * (0.09 / 400 + 0.09 / 200) ** 0.5).all()
