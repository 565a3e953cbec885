import itertools

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError

from diagatt import RaggedRows, simulate
from diagatt.competitors.mdsp import (
    MDSPClassifier,
    MDSPFit,
    MDSPRegressor,
    early_rule,
    separation_prox,
)
from diagatt.families import get_family
from diagatt.solvers.problem import Samples
from tests.estimators.samples import ragged, responses

X = ragged(n=40, d=3, longest=5)
TASKS = ["gaussian", "two", "three"]


def model_of(kind, **parameters):
    return (MDSPRegressor if kind == "gaussian" else MDSPClassifier)(**parameters)


def problem_of(rows, y, family="gaussian", outputs=1):
    values, offsets = rows.to_torch()
    y = torch.as_tensor(y).to(values)
    return Samples(
        get_family(family), values, offsets, y, torch.ones_like(y), y.new_empty(len(y), 0), outputs
    )


@pytest.mark.parametrize("seed", range(6))
def test_prox_is_the_minimum_over_a_fine_grid(seed):
    rng = np.random.default_rng(seed)
    u, gamma = rng.normal(size=2), rng.normal(size=2)
    t = rng.uniform(0.05, 1.0)
    grid = np.array(list(itertools.product(np.linspace(-3, 3, 601), repeat=2)))
    penalty = np.minimum(np.abs(grid - gamma).sum(axis=1), np.abs(grid).sum(axis=1))
    values = 0.5 * ((u - grid) ** 2).sum(axis=1) + t * penalty
    tensors = (torch.from_numpy(a)[None] for a in (u, gamma, np.array([t])))
    c = separation_prox(*tensors)[0].numpy()
    at_prox = 0.5 * ((u - c) ** 2).sum() + t * min(np.abs(c - gamma).sum(), np.abs(c).sum())
    assert at_prox <= values.min() + 1e-12
    assert at_prox >= values.min() - 0.02  # what the grid's spacing may cost


def test_prox_takes_the_nearer_side():
    u = torch.tensor([[0.1, 0.0], [1.9, 2.1]])
    c = separation_prox(u, torch.full((2, 2), 2.0), torch.full((2, 1), 0.5))
    torch.testing.assert_close(c, torch.tensor([[0.0, 0.0], [2.0, 2.0]]))


@pytest.mark.parametrize("alpha", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("kind", TASKS)
def test_objective_never_rises(kind, alpha):
    model = model_of(kind, alpha=alpha, max_steps=60, tolerance=0.0)
    history = np.array(model.fit(X, responses(X, kind)).history_)
    assert len(history) > 5
    assert (np.diff(history) <= 1e-10 * history[:-1]).all()
    assert history[-1] < history[0]


@pytest.mark.parametrize("kind", TASKS)
def test_history_is_the_objective_of_the_docstring(kind):
    y = responses(X, kind)
    model = model_of(kind, alpha=0.3, max_steps=7).fit(X, y)
    codes = y if kind == "gaussian" else np.searchsorted(model.classes_, y)
    names = {"gaussian": ("gaussian", 1), "two": ("bernoulli", 1), "three": ("multinomial", 3)}
    family, K = names[kind]
    fit = MDSPFit(problem_of(X, codes, family, K), 0.3).run(max_steps=7, tolerance=1e-6)
    gamma = fit.gamma.numpy()
    total, z = 0.0, []
    for i, sample in enumerate(X):
        C = fit.coefficients[X.offsets[i] : X.offsets[i + 1]].numpy()
        z.append((sample[:, :, None] * C.reshape(len(sample), 3, K)).sum(axis=(0, 1)))
        near = np.abs(C - gamma[: len(C)]).sum(axis=1)
        total += 0.3 * np.minimum(near, np.abs(C).sum(axis=1)).sum()
    z = torch.from_numpy(np.array(z))
    total += float(get_family(family).loss(torch.as_tensor(codes, dtype=z.dtype), z).sum())
    assert fit.history[-1] == pytest.approx(total)
    np.testing.assert_allclose(model.gamma_, gamma)


def test_converged_fit_of_one_row_is_the_lasso():
    """With γ = 0 and one observation: all on the largest |x|, residual λ/max|x|."""
    rows = RaggedRows.from_rows([[1.0, -4.0, 2.0]])
    fit = MDSPFit(problem_of(rows, [3.0]), 0.8, torch.zeros(1, 3, dtype=torch.float64))
    fit.run(max_steps=5000, tolerance=1e-14)
    expected = [[0.0, -(3.0 - 0.8 / 4.0) / 4.0, 0.0]]
    np.testing.assert_allclose(fit.coefficients.numpy(), expected, atol=1e-6)


def test_converged_fit_shows_a_response_it_was_shown():
    data = simulate.regression(200, p=6, d=4, seed=0, dtype=np.float64)
    model = MDSPRegressor(0.01).fit(data.X, data.y)
    new = data.draw(50, seed=1)
    residual = new.y - model.predict(new.X, y=new.y)
    largest = np.array([np.abs(s).max() for s in new.X])
    assert (np.abs(residual) <= 0.01 / largest + 0.02).all()
    assert model.score(new.X, new.y) > 0.99


def test_converged_fit_of_a_sample_does_not_depend_on_its_company():
    y = responses(X)
    model = MDSPRegressor(0.3).fit(X, y)
    together = model.predict(X, y)
    for i in range(0, 40, 7):
        np.testing.assert_allclose(model.predict(X[i : i + 1], y[i : i + 1])[0], together[i])


@pytest.mark.parametrize("steps", [1, 10])
def test_stopped_fit_leaves_the_share_that_its_steps_say(steps):
    """Without penalty a step of size t multiplies the residual by 1 − t‖X_i‖² and moves along X_i;
    t is at most 1/‖X_i‖²."""
    data = simulate.regression(300, p=6, d=5, seed=0, dtype=np.float64)
    model = MDSPRegressor.stopped(alpha=0.0, max_steps=steps, random_state=0).fit(data.X, data.y)
    new = data.draw(50, seed=1)
    coefficients = model.coefficients(new.X, new.y)
    for x, y, C in zip(new.X, new.y, coefficients, strict=True):
        squares = (x**2).sum()
        share = (1 - min(model.step_size_ * squares, 1)) ** steps
        residual = y - (x * model.gamma_).sum()
        expected = model.gamma_ + (1 - share) * residual / squares * x
        np.testing.assert_allclose(C, expected, atol=1e-12)


def test_stopped_fit_follows_its_rule():
    """T·mean‖X_i‖² = 0.0096·s√(pd)/n^⅓ and γ ~ N(0, 0.70²·√d/(np)), p the mean length."""
    rows = ragged(n=300, d=40, longest=30)
    y = responses(rows) + 5
    model = MDSPRegressor.stopped(random_state=0).fit(rows, y)
    p = np.mean(rows.lengths)
    s = np.sqrt(np.mean(y**2))
    squares = np.mean([(x**2).sum() for x in rows])
    length = 0.0096 * s * np.sqrt(p * 40) / 300 ** (1 / 3) / squares
    assert model.step_size_ == pytest.approx(length / 10)
    spread = 0.70 * 40**0.25 / np.sqrt(300 * p)
    assert model.gamma_.shape == (30, 40)
    assert model.gamma_.std() == pytest.approx(spread, rel=0.06)  # 1200 draws: SD 2 %
    assert abs(model.gamma_.mean()) < 3 * spread / np.sqrt(1200)


@pytest.mark.parametrize(("kind", "outputs"), [("two", 1), ("three", 3)])
def test_rule_for_classes_takes_one_for_the_scale(kind, outputs):
    y = responses(X, kind)
    model = MDSPClassifier.stopped(random_state=0).fit(X, y)
    assert model.gamma_.shape == (5, 3 * outputs)
    ones, spread = early_rule(problem_of(X, np.ones(40)))
    assert model.step_size_ == pytest.approx(ones / 10)
    assert early_rule(problem_of(X, 7 * np.ones(40))) == pytest.approx((7 * ones, spread))
    assert model.predict(X, y).shape == (40,)


def test_stopped_fit_starts_without_a_look_at_the_rows():
    """Correlated rows tell as little: same centres, same step but for scales, same residuals."""
    fits = []
    for rho in (0.0, 0.6):
        data = simulate.regression(1000, p=30, d=20, rho=rho, seed=0)
        model = MDSPRegressor.stopped(random_state=3).fit(data.X, data.y)
        scale = np.sqrt(np.mean(data.y**2))
        fits.append((model.gamma_, np.std(data.y - model.predict(data.X, data.y)) / scale))
    np.testing.assert_array_equal(fits[0][0], fits[1][0])
    assert fits[0][1] == pytest.approx(fits[1][1], rel=0.03)


def test_seed_decides_the_centres_and_nothing_else():
    y = responses(X)
    a, b, c = (MDSPRegressor.stopped(random_state=k).fit(X, y) for k in (0, 0, 1))
    np.testing.assert_array_equal(a.gamma_, b.gamma_)
    assert (a.gamma_ != c.gamma_).all()
    assert a.step_size_ == c.step_size_


@pytest.mark.parametrize("kind", TASKS)
def test_new_samples_go_by_the_training_samples_rule(kind):
    """Not by their own number, and not by the scale of their responses."""
    y = responses(X, kind)
    model = model_of(kind, stop_early=True, max_steps=10, random_state=0).fit(X, y)
    z = model._linear_predictor(X, y)
    alone = [model._linear_predictor(X[i : i + 1], y[i : i + 1]) for i in range(0, 40, 7)]
    np.testing.assert_allclose(np.concatenate(alone), z[::7], rtol=1e-7, atol=1e-7)


def test_padding_with_zero_rows_changes_nothing():
    """Zero rows stay where they start, at no cost."""
    y = responses(X)
    padded, mask = X.to_padded()
    model = MDSPRegressor(max_steps=30).fit(X, y)
    short, long = model.coefficients(X, y), model.coefficients(padded, y)
    for C, C_padded, real in zip(short, long, mask, strict=True):
        np.testing.assert_allclose(C_padded[real], C)
        np.testing.assert_array_equal(C_padded[~real], model.gamma_[~real])
    np.testing.assert_allclose(model.predict(padded, y), model.predict(X, y))


@pytest.mark.parametrize("kind", TASKS)
def test_without_the_response_an_error_explains_why(kind):
    model = model_of(kind, max_steps=5)
    with pytest.raises(NotFittedError):
        model.predict(X)
    model.fit(X, responses(X, kind))
    for method in (model.predict, model.locate, model.coefficients):
        with pytest.raises(ValueError, match="nothing links them to its rows"):
            method(X)


@pytest.mark.parametrize("kind", ["two", "three"])
def test_classes_are_fitted(kind):
    y = responses(X, kind)
    model = MDSPClassifier(0.01, max_steps=200).fit(X, y)
    assert model.score(X, y) == 1.0
    np.testing.assert_allclose(model.predict_proba(X, y).sum(axis=1), 1)
    with pytest.raises(ValueError, match=r"y\[0\] = 'maybe' is not one of the classes"):
        model.predict(X[:1], y=["maybe"])


def test_locate_ranks_rows_by_the_norm_of_their_coefficients():
    y = responses(X)
    model = MDSPRegressor(max_steps=20, n_located=2).fit(X, y)
    located = model.locate(X, y)
    for rows, C in zip(located, model.coefficients(X, y), strict=True):
        order = np.argsort(-np.linalg.norm(C, axis=1))[:2]
        assert rows[rows >= 0].tolist() == order.tolist()


def test_penalty_is_tuned_on_held_out_samples_with_their_responses():
    y = responses(X)
    model = MDSPRegressor("auto", max_steps=20, selection=4, random_state=0).fit(X, y)
    assert [r["alpha_"] for r in model.selection_] == [0.01, 0.1, 1.0]
    assert model.alpha_ == min(model.selection_, key=lambda r: r["loss"])["alpha_"]


def test_longer_test_sample_is_refused():
    model = MDSPRegressor(max_steps=5).fit(X, responses(X))
    with pytest.raises(ValueError, match="sample 0 has 6 rows, the longest training sample had 5"):
        model.predict([np.zeros((6, 3))], y=[1.0])


def test_memory_stays_a_small_multiple_of_the_data():
    import tracemalloc

    data = simulate.regression(300, p=50, d=40, seed=0)
    tracemalloc.start()
    MDSPRegressor(max_steps=10).fit(data.X, data.y)
    peak = tracemalloc.get_traced_memory()[1]  # NumPy's part: medians
    tracemalloc.stop()
    assert peak < 2 * data.X.nbytes
