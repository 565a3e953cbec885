"""Estimators on samples with missing entries."""

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import StandardScaler

from diagatt import DiagAttClassifier, DiagAttRegressor, DiagAttSurvival, RaggedRows, simulate
from diagatt.metrics import rmse
from diagatt.solvers import Gradient, Likelihood, Mixture
from diagatt.stores import RowStore
from tests.closeness import assert_equal_up_to_rounding

pytestmark = pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")
N, D = 150, 3
SOLVERS = {
    "likelihood": Likelihood(),
    "gradient": Gradient(optimizer="adam", max_epochs=2),
    "mixture": Mixture(n_starts=1, optimizer="adam", max_epochs=2),
    "uniform": "uniform",
}


def with_holes(X, share=0.2, seed=0):
    values = np.array(X.values)
    values[np.random.default_rng(seed).random(values.shape) < share] = np.nan
    return X.with_values(values)


@pytest.fixture(scope="module")
def data():
    return simulate.regression(
        N, p=5, d=D, mu=(3,), sigma2=(4,), beta=[2, -1, 1], seed=0, dtype=np.float64
    )


def fitted(X, y, solver="likelihood", **given):
    solver = SOLVERS.get(solver, solver)
    return DiagAttRegressor(solver=solver, missing="marginalize", random_state=0, **given).fit(X, y)


@pytest.mark.parametrize("solver", SOLVERS)
def test_nothing_missing_changes_nothing(data, solver):
    plain = DiagAttRegressor(solver=SOLVERS[solver], random_state=0).fit(data.X, data.y)
    ours = fitted(data.X, data.y, solver)
    assert ours.missing_ == {"entries": 0, "rows": 0}
    assert np.array_equal(ours.predict(data.X), plain.predict(data.X))
    assert "missing entries" not in ours.summary().facts


def test_samples_of_which_nothing_is_known_are_refused(data):
    """Their prediction would be the same number for all of them."""
    values = np.array(data.X.values)
    values[5:10], values[17] = np.nan, np.nan  # all five rows of sample 1, and one row of sample 3
    X = data.X.with_values(values)
    model = fitted(data.X, data.y)
    for ask in (model.predict, model.locate, model.attention, lambda X: fitted(X, data.y)):
        with pytest.raises(ValueError, match="sample 1 has no observed entry: drop it"):
            ask(X)
    assert np.isfinite(model.predict(X[2:])).all()  # a row without entries leaves the others


@pytest.mark.parametrize("solver", SOLVERS)
def test_fit_predict_and_a_file(data, solver, tmp_path):
    X = with_holes(data.X)
    model = fitted(X, data.y, solver)
    missing = np.isnan(X.values)
    assert model.missing_ == {"entries": missing.sum(), "rows": missing.any(axis=1).sum()}
    assert len(model.row_means_) == (2 if solver == "likelihood" else 1)
    how = "integrated out" if solver == "likelihood" else "imputed"
    assert how in model.summary().facts["missing entries"]
    model.save(tmp_path / "m.safetensors")
    same = DiagAttRegressor.load(tmp_path / "m.safetensors")
    assert same.missing == "marginalize"
    for method in ("predict", "locate", "transform"):
        assert np.array_equal(getattr(model, method)(X), getattr(same, method)(X))
    weights = np.concatenate([a[:, 0] for a in same.attention(X)])
    assert np.isfinite(weights).all()


def test_predictions_are_conditional_means(data):
    """z of a sample is Σ κ_j E[x_j | x_o] v + b, with κ from densities of observed entries."""
    from scipy.stats import multivariate_normal

    model = fitted(with_holes(data.X), data.y)
    x = data.X[0].copy()
    x[0, 1] = x[2, 0] = x[2, 2] = np.nan
    x[3] = np.nan
    (m0, m1), (C0, C1) = model.row_means_, model.row_covariances_
    logs, effects = [], []
    for row in x:
        o, m = ~np.isnan(row), np.isnan(row)
        ratio = 0.0
        if o.any():
            pair = [(m1, C1), (m0, C0)]
            one, zero = (multivariate_normal(a[o], C[np.ix_(o, o)]).logpdf(row[o]) for a, C in pair)
            ratio = one - zero
        gain = C1[np.ix_(m, o)] @ np.linalg.inv(C1[np.ix_(o, o)])
        full = row.copy()
        full[m] = m1[m] + gain @ (row[o] - m1[o])
        logs.append(ratio)
        effects.append(full @ model.value_[0])
    kappa = np.exp(logs - np.max(logs))
    kappa /= kappa.sum()
    np.testing.assert_allclose(model.attention([x])[0][:, 0], kappa, atol=1e-9)
    assert model.predict([x])[0] == pytest.approx(kappa @ effects + model.intercept_, rel=1e-9)


def test_marginalizing_is_better_than_imputing_means(data):
    test = data.draw(400, seed=7)
    X, new = with_holes(data.X, 0.3), with_holes(test.X, 0.3, seed=1)
    means = np.nanmean(X.values, axis=0)

    def imputed(rows):
        return rows.with_values(np.where(np.isnan(rows.values), means, rows.values))

    ours = fitted(X, data.y).predict(new)
    plain = DiagAttRegressor(solver="likelihood", random_state=0).fit(imputed(X), data.y)
    assert rmse(test.y, ours) < rmse(test.y, plain.predict(imputed(new)))


def test_masked_entries_are_missing(data):
    X = with_holes(data.X)
    hidden = np.isnan(X.values).reshape(N, 5, D)
    masked = np.ma.array(np.nan_to_num(X.values, nan=9.0).reshape(N, 5, D), mask=hidden)
    expected = fitted(X, data.y, "uniform").predict(X)
    ours = fitted(masked, data.y, "uniform")
    assert_equal_up_to_rounding(ours.predict(masked), expected)
    assert_equal_up_to_rounding(ours.predict(list(masked)), expected)
    with pytest.raises(ValueError, match="is masked: drop it"):
        DiagAttRegressor(solver="uniform").fit(masked, data.y)


def test_what_is_refused(data, tmp_path):
    X, y = with_holes(data.X), data.y
    with pytest.raises(ValueError, match=r"sample 0, row \d contains NaN: .*missing='marginalize'"):
        DiagAttRegressor(solver="uniform").fit(X, y)
    values = np.array(X.values)
    values[7, 1] = np.inf
    with pytest.raises(ValueError, match="sample 1, row 2 contains infinity"):
        fitted(X.with_values(values), y, "uniform")
    values = np.array(X.values)
    values[:, 1] = np.nan
    with pytest.raises(ValueError, match="feature 'x1' is missing in all rows: drop it"):
        fitted(X.with_values(values), y, "uniform")
    named = RaggedRows(values, X.offsets, ["age", "size", "dose"])
    with pytest.raises(ValueError, match="feature 'size' is missing in all rows"):
        fitted(named, y, "uniform")
    missing_y = np.where(np.arange(N) == 3, np.nan, y)
    with pytest.raises(ValueError, match=r"y\[3\]|sample 3|NaN"):
        fitted(X, missing_y, "uniform")
    with pytest.raises(ValueError, match="NaN"):
        DiagAttRegressor(solver="uniform", missing="marginalize").fit(
            X, y, covariates=missing_y[:, None]
        )
    store = RowStore.from_rows(tmp_path / "s", data.X, y)
    with pytest.raises(ValueError, match="missing='marginalize' is for samples in memory"):
        DiagAttRegressor(solver="uniform", missing="marginalize").fit(store)


def test_a_model_that_refuses_refuses_new_rows(data):
    model = DiagAttRegressor(solver="likelihood", random_state=0).fit(data.X, data.y)
    with pytest.raises(ValueError, match="contains NaN"):
        model.predict(with_holes(data.X))


@pytest.mark.parametrize(
    "given", [{"n_heads": 2}, {"score_form": "contextual"}, {"encoder": StandardScaler()}], ids=str
)
def test_what_cannot_be_integrated_is_imputed(data, given):
    X = with_holes(data.X)
    model = fitted(X, data.y, **given)
    assert len(model.row_means_) == 1
    assert np.isfinite(model.predict(X)).all()


def test_classes_labels_times_and_single_rows(data):
    X, y = with_holes(data.X), data.y
    given = {"solver": Likelihood(max_iterations=5), "missing": "marginalize", "random_state": 0}
    two = DiagAttClassifier(**given).fit(X, y > 0)
    assert len(two.row_means_) == 2
    assert two.score(X, y > 0) > 0.7
    three = DiagAttClassifier(**given).fit(X, np.digitize(y, [-3, 3]))
    assert len(three.row_means_) == 1
    times = {"time": np.exp(y / y.std()), "event": np.ones(N, dtype=bool)}
    hazard = DiagAttSurvival(**given).fit(X, times)
    assert np.isfinite(hazard.predict(X)).all()
    flat = DiagAttRegressor(missing="marginalize").fit(X.values[:N], y)
    assert np.isfinite(flat.predict(X.values[:N])).all()


def test_out_of_fold_answers(data):
    X = with_holes(data.X)
    model = fitted(X, data.y).calibrate(X, data.y)
    assert model.existence_["statistic"] > 3
    ends = model.predict_interval(X)
    assert 0.85 < np.mean((ends[:, 0] < data.y) & (data.y < ends[:, 1])) <= 1
    assert np.isfinite(model.certainty(X).posterior).all()
    assert model.__sklearn_tags__().input_tags.allow_nan
    scores = cross_val_score(
        DiagAttRegressor(solver="uniform", missing="marginalize"), X, data.y, cv=3
    )
    assert np.isfinite(scores).all()


def test_row_weights_and_none_beside_missing_entries(data):
    """A row of weight 2 is that row twice, also where entries are missing."""
    X = with_holes(data.X)
    weight = np.random.default_rng(0).integers(1, 3, X.n_rows)
    twice = np.repeat(np.arange(X.n_rows), weight)
    lengths = np.add.reduceat(weight, X.offsets[:-1])
    copies = RaggedRows(X.values[twice], np.r_[0, np.cumsum(lengths)])
    weighted = X.with_row_weight(weight)
    settings = {"solver": Likelihood(shrinkage=0.0, max_iterations=5)}
    one, two = fitted(weighted, data.y, **settings), fitted(copies, data.y, **settings)
    np.testing.assert_allclose(one.value_, two.value_, rtol=1e-2)
    model = fitted(X, data.y, solver=Likelihood(none=True, max_iterations=5))
    assert 0 < model.prevalence_ <= 1
    assert len(model.row_means_) == 2


@pytest.mark.parametrize("solver", SOLVERS)
def test_rows_without_an_entry_are_left_out_of_the_fit(data, solver):
    """As where arrays are padded with NaN; any of these rows could be the active one."""
    X = with_holes(data.X[:60], share=0.1)
    padded = [np.concatenate([m, np.full((7 - len(m), D), np.nan)]) for m in X]
    X, y = [m[~np.isnan(m).all(axis=1)] for m in padded], data.y[:60]
    short, long = fitted(X, y, solver), fitted(padded, y, solver)
    np.testing.assert_array_equal(long.predict(X), short.predict(X))
    assert long.n_rows_ == short.n_rows_


def test_labels_of_rows_without_an_entry(data):
    padded = [np.concatenate([m, np.full((1, D), np.nan)]) for m in data.X]
    model = DiagAttRegressor(solver="likelihood", missing="marginalize")
    with pytest.raises(ValueError, match="row_labels count rows that have no observed entry: drop"):
        model.fit(padded, data.y, row_labels=data.rows[:, 0])
