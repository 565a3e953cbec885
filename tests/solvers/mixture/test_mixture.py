"""The solver `Mixture`: descent, exact cases, located rows, stores, checkpoints, files."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from diagatt import DiagAttClassifier, DiagAttRegressor, RaggedRows, RowStore
from diagatt.estimators import containers
from diagatt.families import get_family
from diagatt.segments import segment_sum
from diagatt.solvers import Checkpoint, Gradient, Likelihood, Mixture, Model, Refined
from diagatt.solvers.criteria import information_criteria, log_densities
from diagatt.solvers.mixture import free_prevalence
from diagatt.solvers.mixture.objective import MixtureModule
from tests.golden.cases import draw
from tests.solvers.none import some_without
from tests.solvers.samples import make_problem, problem_of, ragged

pytestmark = pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")
ADAM = Mixture(optimizer="adam", max_epochs=3, batch_size=50)


def problem(family="gaussian", n=120, weights=None):
    X, y, Z, _ = draw(family, n)
    return problem_of(X, y, family, 3 if family == "multinomial" else 1, weights, Z)


def unusual(shape, n=400, seed=0, family="gaussian"):
    """One of ten rows of five features is shifted and decides; rows of any shape, variance 1."""
    rng = np.random.default_rng(seed)
    rows = {
        "normal": lambda: rng.normal(size=(n, 10, 5)),
        "t5": lambda: rng.standard_t(5, (n, 10, 5)) * np.sqrt(3 / 5),
        "skewed": lambda: rng.exponential(size=(n, 10, 5)) - 1,
    }[shape]()
    line, place = np.arange(n), rng.integers(10, size=n)
    rows[line, place] = 1.3 * rows[line, place] + np.array([1.6, -0.8, 0, 0, 0])
    z = rows[line, place] @ np.array([1.0, -1.0, 0.5, 1.0, 0.0])
    y = z + 0.5 * rng.normal(size=n) if family == "gaussian" else z + rng.logistic(size=n) > 0
    return RaggedRows.from_dense(rows), y, place


# ---------------------------------------------------------------------- what it minimizes


@pytest.mark.parametrize("family", ["bernoulli", "gamma", "gaussian", "multinomial", "poisson"])
@pytest.mark.parametrize("n_heads", [1, 2])
def test_the_objective_never_rises_and_ends_where_it_is_flat(family, n_heads):
    samples = problem(family)
    fitted = Mixture(tolerance=1e-7).fit(samples, Model(n_heads), seed=0)
    losses = np.array([line["loss"] for line in fitted.history[0]])
    assert (np.diff(losses) <= 1e-12 * np.abs(losses[1:])).all()
    again = Mixture(tolerance=1e-5).fit(samples, Model(n_heads), seed=0, start=fitted)
    gain = losses[-1] - again.history[0][-1]["loss"] if again.history[0] else 0.0
    assert gain <= 1e-6
    assert (fitted.dispersion is not None) == get_family(family).has_dispersion


def test_a_fit_has_the_smallest_objective_of_its_starts():
    samples = problem()
    fitted = Mixture(n_starts=5).fit(samples, Model(1), seed=0)
    assert [line["start"] for line in fitted.report[:3]] == ["pooled", "shy", "outlier"]
    assert len(fitted.report) == 5
    best = min(line["objective"] for line in fitted.report)
    assert fitted.history[0][-1]["loss"] <= best


def test_responses_in_another_unit_give_the_same_fit():
    samples = problem()
    one, other = (
        Mixture(tolerance=1e-8).fit(replace(samples, y=c * samples.y), Model(1), seed=0)
        for c in (1.0, 1000.0)
    )
    given = (samples.values, samples.offsets, samples.covariates)
    with torch.no_grad():
        z, scaled = one.module(*given), other.module(*given)
    torch.testing.assert_close(scaled / 1000, z, rtol=1e-5, atol=1e-5)
    assert other.dispersion == pytest.approx(1e6 * one.dispersion, rel=1e-5)


@pytest.mark.parametrize("family", ["gaussian", "bernoulli", "gamma"])
def test_a_repeated_sample_counts_like_a_weight_of_two(family):
    samples = problem(family)
    weights = torch.ones(120).double()
    weights[:40] = 2
    twice = samples.take(torch.tensor([*range(120), *range(40)]))
    solver = Mixture(tolerance=1e-9)
    fits = [solver.fit(s, Model(1), seed=0) for s in (twice, replace(samples, weights=weights))]
    one, other = (fitted.module(samples.values, samples.offsets) for fitted in fits)
    torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_one_row_samples_are_a_plain_glm():
    X, y, Z, w = draw(n=100)
    first = np.stack([sample[0] for sample in X])
    mixture = DiagAttRegressor(solver="mixture", ridge=0.5).fit(first, y, covariates=Z)
    uniform = DiagAttRegressor(solver="uniform", ridge=0.5).fit(first, y, covariates=Z)
    np.testing.assert_array_equal(mixture.predict(first, Z), uniform.predict(first, Z))
    samples = problem_of(RaggedRows.from_rows(first), y, weights=w, covariates=Z)
    fitted = Mixture().fit(samples, Model(1, ridge=0.5), seed=0)
    z = fitted.module(samples.values, samples.offsets, samples.covariates)[:, 0].detach()
    expected = float((samples.weights * (samples.y - z) ** 2).sum()) / samples.total_weight
    assert fitted.dispersion == pytest.approx(expected)


def test_the_log_likelihood_is_that_of_the_mixture():
    samples = problem("gamma")
    fitted = Mixture().fit(samples, Model(1), seed=0)
    criteria = information_criteria(fitted, samples)
    given = (samples.y, samples.values, samples.offsets, samples.covariates)
    densities = fitted.module.log_density(*given, fitted.dispersion).detach()
    assert criteria["log_likelihood"] == pytest.approx(float(densities.sum()))
    found = log_densities(fitted.module, samples, fitted.dispersion)
    torch.testing.assert_close(found, densities)


def test_of_classes_the_log_likelihood_is_minus_the_loss():
    X, y, _, _ = draw("bernoulli")
    model = DiagAttClassifier(solver="mixture", random_state=0).fit(X, y)
    chance = model.predict_proba(X)[np.arange(len(y)), y]
    assert model.criteria_[0]["log_likelihood"] == pytest.approx(np.log(chance).sum(), rel=1e-9)


# ---------------------------------------------------------------------- what it finds


@pytest.mark.slow
@pytest.mark.parametrize("family", ["gaussian", "bernoulli"])
@pytest.mark.parametrize("shape", ["t5", "skewed", "normal"])
def test_rows_of_any_shape_are_located(shape, family):
    """Far above the Gaussian-row likelihood if rows are not Gaussian, near it if they are."""
    found = {}
    kind = DiagAttRegressor if family == "gaussian" else DiagAttClassifier
    for solver in ("mixture", "likelihood"):
        hits = []
        for seed in range(3):
            X, y, _ = unusual(shape, seed=seed, family=family)
            new, _, place = unusual(shape, n=1000, seed=seed + 100, family=family)
            model = kind(solver=solver, random_state=0).fit(X, y)
            hits.append((model.locate(new)[:, 0] == place).mean())
        found[solver] = np.mean(hits)
    if shape == "normal":  # two classes say less about the active row than a number does
        price = 0.05 if family == "gaussian" else 0.1
        assert found["mixture"] > found["likelihood"] - price
    else:
        assert found["mixture"] > found["likelihood"] + 0.08


@pytest.mark.slow
def test_two_heads_find_two_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(250, 6, 3))
    places = np.array([rng.permutation(6)[:2] for _ in range(250)])
    line = np.arange(250)
    X[line, places[:, 0], 0] += 4
    X[line, places[:, 1], 0] -= 4
    y = X[line, places[:, 0], 1] - 2 * X[line, places[:, 1], 2] + 0.3 * rng.normal(size=250)
    model = DiagAttRegressor(2, solver=Mixture(tolerance=1e-4), random_state=0).fit(X, y)
    located = model.locate(X)
    hits = [(located == places[:, order]).mean() for order in ([0, 1], [1, 0])]
    assert max(hits) > 0.95
    assert model.score(X, y) > 0.9


# ---------------------------------------------------------------------- where it runs


@pytest.fixture
def _in_passes(monkeypatch):
    monkeypatch.setattr(containers, "READ_WHOLE", 0)


@pytest.mark.usefixtures("_in_passes")
@pytest.mark.parametrize("family", ["gaussian", "bernoulli"])
def test_a_store_is_fitted_like_rows_in_memory(family, tmp_path):
    X, y, Z, w = draw(family)
    face = DiagAttRegressor if family == "gaussian" else DiagAttClassifier
    everything = Mixture(optimizer="adam", max_epochs=4, batch_size=None)  # batches are alike
    size = X.nbytes / 2**20 / 4
    given = {"weights": w, "covariates": Z}
    RowStore.from_rows(tmp_path / "store", X, y, dtype="float64", shard_mib=size, **given)
    store = RowStore(tmp_path / "store", memory=2.0)
    here = face(solver=everything, random_state=0).fit(X, y, sample_weight=w, covariates=Z)
    there = face(solver=everything, random_state=0).fit(store)
    np.testing.assert_allclose(there.query_key_, here.query_key_, atol=1e-8)
    assert here.query_key_[0, 4, 4] == 0  # the softmax does not see a constant
    np.testing.assert_allclose(there.value_, here.value_, atol=1e-8)
    answers = there.predict(store), there.predict(X, covariates=Z)
    if family == "gaussian":
        np.testing.assert_allclose(*answers, rtol=1e-12, atol=1e-12)
    else:
        np.testing.assert_array_equal(*answers)
    assert there.criteria_[0] == pytest.approx(here.criteria_[0], rel=1e-6)


@pytest.mark.slow
def test_adam_approaches_the_minimum_of_lbfgs():
    samples = problem(n=240)
    exact = Mixture().fit(samples, Model(1), seed=0)
    solver = Mixture(optimizer="adam", batch_size=None, max_epochs=200, learning_rate=0.02)
    fitted = solver.fit(samples, Model(1), seed=0)
    likelihood = information_criteria(fitted, samples)["log_likelihood"]
    best = information_criteria(exact, samples)["log_likelihood"]
    assert likelihood == pytest.approx(best, abs=0.01 * samples.n_samples)


def test_an_interrupted_fit_goes_on_where_it_was(tmp_path):
    X, y = ragged(80)
    samples = problem_of(X, y)
    file = tmp_path / "state.safetensors"
    whole = ADAM.fit(samples, Model(1), seed=0)
    short = Mixture(optimizer="adam", max_epochs=1, batch_size=50)
    short.fit(samples, Model(1), seed=0, checkpoint=Checkpoint(file))
    resumed = ADAM.fit(samples, Model(1), seed=0, checkpoint=Checkpoint(file))
    for one, other in zip(whole.module.parameters(), resumed.module.parameters(), strict=True):
        assert torch.equal(one, other)
    assert resumed.dispersion == whole.dispersion


@pytest.mark.parametrize("family", ["bernoulli", "gamma", "gaussian", "multinomial", "poisson"])
def test_a_saved_model_answers_as_before(family, tmp_path):
    X, y, Z, w = draw(family, n=100)
    face = DiagAttClassifier if get_family(family).classifies else DiagAttRegressor
    solver = Mixture(max_epochs=5, n_starts=1)
    with pytest.warns(UserWarning, match="before it converged"):
        model = face(2, solver=solver, family=family).fit(X, y, sample_weight=w, covariates=Z)
    assert model.readout_ == "mixture"
    model.save(tmp_path / "model.safetensors")
    again = face.load(tmp_path / "model.safetensors")
    assert again.readout_ == "mixture"
    assert repr(again.solver) == repr(solver)
    ask = "predict_proba" if family in ("bernoulli", "multinomial") else "predict"
    answer = getattr(again, ask)(X, covariates=Z)
    np.testing.assert_array_equal(answer, getattr(model, ask)(X, covariates=Z))
    np.testing.assert_array_equal(again.locate(X), model.locate(X))
    assert again.certainty(X).rows.shape == (100, 2)
    assert "mixture" in str(again.summary())


def test_predictions_are_means_over_rows():
    X, y, _, _ = draw("poisson", n=100)
    model = DiagAttRegressor(solver="mixture", family="poisson", random_state=0).fit(X, y)
    means = [
        float(kappa[:, 0] @ np.exp(rows @ model.value_[0] + model.intercept_))
        for rows, kappa in zip(X, model.attention(X), strict=True)
    ]
    np.testing.assert_allclose(model.predict(X), means, rtol=1e-10)


def test_a_file_without_a_readout_is_pooled(tmp_path):
    """Files of format 2 that were written before there was a choice."""
    X, y, _, _ = draw(n=80)
    model = DiagAttRegressor(solver="likelihood").fit(X, y)
    del model.readout_
    model.save(tmp_path / "old.safetensors")
    old = DiagAttRegressor.load(tmp_path / "old.safetensors")
    assert old.readout_ == "pooled"
    np.testing.assert_array_equal(old.predict(X), model.predict(X))


# ---------------------------------------------------------------------- in company


@pytest.mark.slow
def test_other_solvers_go_on_from_a_mixture_and_a_mixture_from_theirs():
    samples = make_problem(80)
    refined = Refined(Mixture(), Gradient(max_epochs=2, optimizer="adam"))
    assert refined.fit(samples, Model(1), seed=0).module.readout == "pooled"
    start = Likelihood().fit(samples, Model(1), seed=0)
    fitted = Mixture().fit(samples, Model(1), seed=0, start=start)
    assert fitted.module.readout == "mixture"
    assert fitted.report == []


@pytest.mark.parametrize(
    ("solver", "words"),
    [
        (Mixture("factored", rank=9), "rank must lie between 1 and 4, got 9"),
        (Mixture(rank=1), "a full W has no rank"),
    ],
)
def test_what_cannot_be_done_is_refused(solver, words):
    X, y = ragged()
    with pytest.raises(ValueError, match=words):
        DiagAttRegressor(solver=solver).fit(X, y)


@pytest.mark.usefixtures("_in_passes")
def test_lbfgs_refuses_a_store(tmp_path):
    X, y = ragged()
    RowStore.from_rows(tmp_path / "store", X, y, dtype="float64")
    with pytest.raises(ValueError, match="needs all rows in memory"):
        DiagAttRegressor(solver=Mixture(optimizer="lbfgs")).fit(RowStore(tmp_path / "store"))


@pytest.mark.slow
@pytest.mark.parametrize("parameterization", ["factored", "psd"])
def test_low_ranks_learn(parameterization):
    X, y, place = unusual("normal", n=300)
    solver = Mixture(parameterization, rank=2, tolerance=1e-4)
    model = DiagAttRegressor(solver=solver, random_state=0).fit(X, y)
    assert np.linalg.matrix_rank(model.query_key_[0], tol=1e-6) == 2
    assert (model.locate(X)[:, 0] == place).mean() > 0.3  # by chance: 0.1


@pytest.fixture(scope="module")
def drawn():
    X, y, place = some_without(300, 0.5, seed=2)
    return problem_of(X, y), float(np.mean(place >= 0))


def share_of(fitted, problem):
    """Mean probability of the fit itself that a sample has a row."""
    with torch.no_grad():
        kappa = fitted.module.attention(problem.values, problem.offsets)
        return float(segment_sum(kappa, problem.offsets).mean())


def test_without_a_penalty_it_is_that_of_the_fit(drawn):
    """All slopes are 0 already, that of the size of scores included."""
    problem, _ = drawn
    solver = Mixture(none=True, n_starts=1, score_ridge=0.0, linear_ridge=0.0, tolerance=1e-8)
    fitted = solver.fit(problem, Model(), seed=0)
    assert fitted.prevalence == pytest.approx(share_of(fitted, problem), abs=1e-3)


def test_a_strong_penalty_does_not_move_it_far(drawn):
    problem, share = drawn
    fitted = Mixture(none=True, n_starts=1, score_ridge=300.0, linear_ridge=100.0).fit(
        problem, Model(), seed=0
    )
    off = abs(share_of(fitted, problem) - share)  # of the fit itself
    assert off > 0.05
    assert abs(fitted.prevalence - share) < off / 2


def test_the_size_of_scores_does_not_matter(drawn):
    problem, _ = drawn
    solver = Mixture(none=True, n_starts=1)
    fitted = solver.fit(problem, Model(), seed=0)
    shares = []
    for size in (1.0, 0.5):
        module = MixtureModule(fitted.module, 1.0)
        module.set_phi(fitted.dispersion)
        with torch.no_grad():
            module.attention.query_key.set_matrix(size * module.attention.query_key.matrix())
        shares.append(free_prevalence(module, problem, solver.training(Model())))
    assert shares[0] == pytest.approx(shares[1], abs=2e-3)
    assert shares[0] == pytest.approx(fitted.prevalence, abs=2e-3)


def test_a_fit_to_which_all_samples_have_a_row_may_be_wrong(drawn):
    """The slope in the score of "none" is zero there, but other shares explain more."""
    problem, share = drawn
    solver = Mixture(none=True, n_starts=1)
    fitted = solver.fit(problem, Model(), seed=0)
    module = MixtureModule(fitted.module, 1.0)
    module.set_phi(fitted.dispersion)
    with torch.no_grad():
        module.attention.none_score.sub_(200.0)
    found = free_prevalence(module, problem, solver.training(Model()))
    assert found == pytest.approx(fitted.prevalence, abs=2e-3)
    assert abs(found - share) < 0.05
