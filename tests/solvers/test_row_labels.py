"""Known rows: the likelihood of labelled samples by hand, help, and refusals."""

import numpy as np
import pytest
import torch

from diagatt import DiagAttRegressor, simulate
from diagatt.solvers import Gradient, Likelihood, Mixture

pytestmark = pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")


@pytest.fixture(scope="module")
def weak():
    """Rows that are hard to find without labels."""
    return simulate.regression(150, p=8, d=3, mu=(1.0,), sigma2=(1.5,), seed=0, dtype=np.float64)


def labels_of(data, count):
    labels = np.full(len(data.y), -1)
    labels[:count] = data.rows[:count, 0]
    return labels


@pytest.mark.parametrize("solver", [Likelihood(), Mixture(n_starts=2)])
def test_labels_help_and_do_not_hurt(solver, weak):
    new = weak.draw(1000, seed=5)
    found = {}
    for count in (0, 50, 150):
        model = DiagAttRegressor(solver=solver, random_state=0)
        labels = None if count == 0 else labels_of(weak, count)
        model.fit(weak.X, weak.y, row_labels=labels)
        found[count] = (model.locate(new.X)[:, 0] == new.rows[:, 0]).mean()
    assert found[50] > found[0] - 0.03
    assert found[150] > found[0] - 0.01
    beta = weak.parameters.beta[0]
    assert np.abs(model.value_[0] - beta).max() < 0.3 * np.abs(beta).max() + 0.2


def test_all_rows_known_is_a_regression_on_them(weak):
    """With every row known, EM's response model is the ridge regression on active rows."""
    rows = np.stack([np.asarray(x)[r] for x, r in zip(weak.X, weak.rows[:, 0], strict=True)])
    model = DiagAttRegressor(solver=Likelihood(), ridge=2.0, random_state=0)
    model.fit(weak.X, weak.y, row_labels=weak.rows[:, 0])
    F = np.c_[rows, np.ones(len(rows))]
    beta = np.linalg.solve(F.T @ F + np.diag([2.0, 2.0, 2.0, 0.0]), F.T @ weak.y)
    np.testing.assert_allclose(model.value_[0], beta[:3], rtol=1e-6)
    assert model.intercept_ == pytest.approx(beta[3], rel=1e-5)


def test_the_density_of_a_labelled_sample_is_that_of_its_row(weak):
    model = DiagAttRegressor(solver=Mixture(n_starts=1), random_state=0).fit(weak.X, weak.y)
    module = model.to_module()
    problem = model._problem(weak.X, weak.y, None, None, row_labels=weak.rows[:, 0])
    given = (problem.y, problem.values, problem.offsets, problem.covariates, 0.7)
    with torch.no_grad():
        found = module.log_density(*given, log_known=problem.log_known)
        kappa = module.attention(problem.values, problem.offsets)[:, 0].reshape(150, 8)
    place = torch.tensor(weak.rows[:, 0])
    chosen = problem.values.reshape(150, 8, 3)[torch.arange(150), place]
    z = chosen @ torch.tensor(model.value_[0]) + float(model.intercept_)
    log_p = torch.distributions.Normal(z, 0.7**0.5).log_prob(problem.y)
    expected = kappa[torch.arange(150), place].log() + log_p
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_minus_one_everywhere_is_no_label(weak):
    none = np.full(150, -1)
    fits = [
        DiagAttRegressor(solver="likelihood", random_state=0).fit(weak.X, weak.y, row_labels=labels)
        for labels in (None, none)
    ]
    np.testing.assert_array_equal(fits[0].value_, fits[1].value_)


def test_refusals_say_what_to_do(weak):
    X, y, labels = weak.X, weak.y, weak.rows[:, 0]
    wrong = np.where(np.arange(150) == 3, 8, labels)
    with pytest.raises(ValueError, match="solver='likelihood' and solver='mixture'"):
        DiagAttRegressor(solver=Gradient()).fit(X, y, row_labels=labels)
    with pytest.raises(ValueError, match="n_heads=1"):
        DiagAttRegressor(2, solver="likelihood").fit(X, y, row_labels=labels)
    with pytest.raises(ValueError, match=r"row_labels\[3\] = 8, but sample 3 has 8 rows"):
        DiagAttRegressor(solver="likelihood").fit(X, y, row_labels=wrong)
    with pytest.raises(ValueError, match="one whole number per sample"):
        DiagAttRegressor(solver="likelihood").fit(X, y, row_labels=labels[:5])


def test_rows_that_are_clear_survive_a_bootstrap():
    data = simulate.regression(80, p=4, d=2, mu=(4.0,), sigma2=(4.0,), seed=0)
    model = DiagAttRegressor(solver="likelihood", random_state=0).fit(data.X, data.y)
    clear = model.stability(data.X, data.y, n_bootstraps=4)
    assert clear.shape == (80, 1)
    assert clear.mean() > 0.9
    noise = np.random.default_rng(0).normal(size=80)
    flat = simulate.regression(80, p=4, d=2, mu=(0.0,), sigma2=(1.0,), seed=0)
    model.fit(flat.X, noise)
    groups = np.arange(80) // 2
    assert model.stability(flat.X, noise, groups=groups, n_bootstraps=4).mean() < clear.mean()
