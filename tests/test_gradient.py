"""Empirical risk minimization: training, restarts, checkpoints, weights, scales."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from diagatt.estimators.averaging import average
from diagatt.solvers.adam import AdamRun
from diagatt.solvers.training import DivergedError, GradientSettings, initialize, risk
from sklearn.utils import check_random_state

from diagatt import DiagAttClassifier, DiagAttRegressor, DiagonalAttention, RaggedRows
from diagatt.families import get_family
from diagatt.modelfile import ModelFileError
from diagatt.segments import sample_of_row
from diagatt.solvers.checkpoint import Checkpoint
from diagatt.solvers.gradient import fit_gradient
from diagatt.solvers.problem import Problem

# Short fits need not find a row; what is tested here is something else.
pytestmark = pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")

D = 3


def ragged(n=40, seed=0, shortest=2, longest=6):
    """Samples whose first row, the largest, decides the response."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(rng.integers(shortest, longest + 1), D)) for _ in range(n)]
    for sample in X:
        sample[0] += 2
    y = np.array([sample[0] @ [1.0, -1.0, 0.5] for sample in X]) + 0.1 * rng.normal(size=n)
    return RaggedRows.from_samples(X), y


def make_problem(n=40, seed=0, weights=None, **options):
    return problem_of(*ragged(n, seed, **options), weights)


def problem_of(X, y, weights=None):
    n = len(X)
    values, offsets = X.to_torch()
    y = torch.from_numpy(y)
    weights = torch.ones(n, dtype=torch.float64) if weights is None else torch.as_tensor(weights)
    covariates = torch.empty(n, 0, dtype=torch.float64)
    return Problem(get_family("gaussian"), values, offsets, y, weights, covariates)


def adam(**options):
    parameters = {"optimizer": "adam", "batch_size": 8, "learning_rate": 0.02, "max_epochs": 6}
    return GradientSettings(**{**parameters, **options})


def trained(problem, settings, seed=1, checkpoint=None, **options):
    module = DiagonalAttention(D, **{"n_heads": 2, "score_form": "affine", **options}).double()
    initialize(module, problem, settings, seed)
    history = fit_gradient(module, problem, settings, seed, checkpoint)
    return module, history


def assert_identical(module, other):
    for (name, ours), theirs in zip(
        module.state_dict().items(), other.state_dict().values(), strict=True
    ):
        assert torch.equal(ours, theirs), name


# ---------------------------------------------------------------------- optima


def test_lbfgs_ends_where_the_gradient_of_the_objective_vanishes():
    problem = make_problem()
    settings = GradientSettings(optimizer="lbfgs", max_epochs=5000, ridge=1.0, score_ridge=0.1)
    module, history = trained(problem, settings)
    z = module(problem.values, problem.offsets, problem.covariates)
    objective = problem.mean_loss(z) + settings.penalty(module, problem)
    parameters = [p for p in module.parameters() if p.numel()]
    for gradient in torch.autograd.grad(objective, parameters):
        assert gradient.abs().max() < 1e-5
    losses = [h["loss"] for h in history]
    assert losses == sorted(losses, reverse=True)
    assert [h["epoch"] for h in history] == list(range(1, len(history) + 1))


def test_one_full_batch_step_of_adam_moves_every_entry_by_the_learning_rate():
    """Adam's first step is learning_rate · sign(gradient); the gradient is that of the risk."""
    problem = make_problem()
    settings = adam(batch_size=None, max_epochs=1, learning_rate=1e-3, ridge=2.0, score_ridge=0.3)
    module = DiagonalAttention(D, 2).double()
    initialize(module, problem, settings, 0)
    before = [p.detach().clone() for p in module.parameters()]
    z = module(problem.values, problem.offsets)
    objective = problem.mean_loss(z) + settings.penalty(module, problem)
    parameters = [p for p in module.parameters() if p.numel()]
    gradients = torch.autograd.grad(objective, parameters)
    fit_gradient(module, problem, settings, 0)
    moved = [p - b for p, b in zip(module.parameters(), before, strict=True) if p.numel()]
    for step, gradient in zip(moved, gradients, strict=True):
        large = gradient.abs() > 1e-4
        torch.testing.assert_close(step[large], -1e-3 * gradient[large].sign(), rtol=1e-3, atol=0)


def test_adam_weighs_loss_against_penalty_as_the_summed_objective_does():
    """Ten times the weights and ten times the penalties are the same objective."""
    weights = np.random.default_rng(0).uniform(0.5, 2, size=40)
    fits = [
        trained(make_problem(weights=c * weights), adam(ridge=5.0 * c, score_ridge=2.0 * c))[0]
        for c in (1, 10)
    ]
    torch.testing.assert_close(fits[1].value, fits[0].value, rtol=1e-6, atol=1e-8)
    torch.testing.assert_close(
        fits[1].query_key.matrix(), fits[0].query_key.matrix(), rtol=1e-6, atol=1e-8
    )


def test_history_of_adam_says_the_loss_before_each_step():
    problem = make_problem()
    _, history = trained(problem, adam(batch_size=None, init="zero", max_epochs=3))
    assert [h["epoch"] for h in history] == [1, 2, 3]
    assert history[0]["loss"] == pytest.approx(0.5 * float((problem.y**2).mean()))


# ---------------------------------------------------------------------- checkpoints


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"row_dropout": 0.3},
        {"value_dropout": 0.6},
        {"validation_fraction": 0.25, "patience": 100},
        {"validation_fraction": 0.25, "row_dropout": 0.2, "patience": 100, "batch_size": None},
    ],
    ids=["plain", "dropout", "values", "validation", "all"],
)
@pytest.mark.parametrize("stop", [1, 4])
def test_a_resumed_run_is_bit_identical(tmp_path, options, stop):
    problem, settings = make_problem(), adam(**options)
    undisturbed, history = trained(problem, settings)
    checkpoint = Checkpoint(tmp_path / "run.safetensors")
    trained(problem, replace(settings, max_epochs=stop), checkpoint=checkpoint)
    resumed, resumed_history = trained(problem, settings, checkpoint=checkpoint)
    assert_identical(resumed, undisturbed)
    assert resumed_history == history


def test_a_run_killed_between_two_writes_resumes_bit_identically(tmp_path, monkeypatch):
    problem, settings = make_problem(), adam(row_dropout=0.3, max_epochs=9)
    undisturbed, history = trained(problem, settings)
    checkpoint, run_epoch = Checkpoint(tmp_path / "run", every=3), AdamRun.run_epoch

    def interrupted(run, epoch):
        if epoch == 6:
            raise KeyboardInterrupt
        return run_epoch(run, epoch)

    monkeypatch.setattr(AdamRun, "run_epoch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        trained(problem, settings, checkpoint=checkpoint)
    monkeypatch.setattr(AdamRun, "run_epoch", run_epoch)
    resumed, resumed_history = trained(problem, settings, checkpoint=checkpoint)
    assert_identical(resumed, undisturbed)
    assert resumed_history == history


def test_resuming_a_finished_run_changes_nothing(tmp_path):
    problem, settings = make_problem(), adam(validation_fraction=0.3, patience=2, max_epochs=60)
    checkpoint = Checkpoint(tmp_path / "run")
    first, history = trained(problem, settings, checkpoint=checkpoint)
    again, again_history = trained(problem, settings, checkpoint=checkpoint)
    assert_identical(first, again)
    assert again_history == history


def test_estimators_resume_every_restart(tmp_path):
    X, y = ragged()
    common = {"n_restarts": 2, "solver": "gradient", "optimizer": "adam", "random_state": 0}
    undisturbed = DiagAttRegressor(**common, max_epochs=5).fit(X, y)
    path = tmp_path / "run.safetensors"
    DiagAttRegressor(**common, max_epochs=2, checkpoint=path).fit(X, y)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run-1.safetensors", "run.safetensors"]
    resumed = DiagAttRegressor(**common, max_epochs=5, checkpoint=path).fit(X, y)
    np.testing.assert_array_equal(resumed.query_key_, undisturbed.query_key_)
    np.testing.assert_array_equal(resumed.value_, undisturbed.value_)
    assert resumed.history_ == undisturbed.history_


OTHER_RUNS = {
    "responses": lambda p, s: (replace(p, y=p.y + 1), s, {}),
    "rows": lambda p, s: (replace(p, values=p.values + 1), s, {}),
    "weights": lambda p, s: (replace(p, weights=2 * p.weights), s, {}),
    "family": lambda p, s: (replace(p, family=get_family("poisson")), s, {}),
    "learning rate": lambda p, s: (p, replace(s, learning_rate=0.5), {}),
    "temperature": lambda p, s: (p, s, {"temperature": 3.0}),
    "coupling": lambda p, s: (p, s, {"coupling": "distinct"}),
    "bound": lambda p, s: (p, s, {"value_bound": 1.0}),
    "heads": lambda p, s: (p, s, {"n_heads": 1}),
}


@pytest.mark.parametrize("other", OTHER_RUNS)
def test_the_checkpoint_of_another_run_is_refused(tmp_path, other):
    problem, settings = make_problem(), adam(max_epochs=2)
    problem = replace(problem, y=problem.y.abs())
    checkpoint = Checkpoint(tmp_path / "run")
    trained(problem, settings, checkpoint=checkpoint)
    before = checkpoint.path.read_bytes()
    changed, other_settings, options = OTHER_RUNS[other](problem, settings)
    with pytest.raises(ModelFileError, match="other data or other settings: delete it"):
        trained(changed, other_settings, checkpoint=checkpoint, **options)
    assert checkpoint.path.read_bytes() == before


def test_other_covariates_are_other_data(tmp_path):
    problem, settings = make_problem(), adam(max_epochs=2)
    checkpoint = Checkpoint(tmp_path / "run")
    for shift, expectation in [(0.0, None), (1.0, ModelFileError)]:
        covariates = torch.arange(40.0, dtype=torch.float64)[:, None] / 40 + shift
        changed = replace(problem, covariates=covariates)
        if expectation is None:
            trained(changed, settings, checkpoint=checkpoint, n_covariates=1)
        else:
            with pytest.raises(expectation):
                trained(changed, settings, checkpoint=checkpoint, n_covariates=1)


def test_a_saved_estimator_is_no_checkpoint(tmp_path):
    X, y = ragged()
    path = tmp_path / "model"
    DiagAttRegressor(random_state=0, solver="gradient").fit(X, y).save(path)
    with pytest.raises(ModelFileError, match="other data or other settings"):
        trained(make_problem(), adam(), checkpoint=Checkpoint(path))


# ---------------------------------------------------------------------- held-out part, dropout


def test_early_stopping_keeps_the_best_epoch():
    problem = make_problem(n=30)
    settings = adam(validation_fraction=0.3, patience=3, max_epochs=300, learning_rate=0.1)
    module = DiagonalAttention(D, 2).double()
    initialize(module, problem, settings, 0)
    run = AdamRun(module, problem, settings, seed=0)
    losses = [h["validation_loss"] for h in run.run()]
    best = int(np.argmin(losses))
    assert len(losses) == best + 1 + settings.patience < 300
    assert risk(module, run.held_out) == losses[best]
    # The same seed with as many epochs as the best ends at the same parameters.
    shorter = DiagonalAttention(D, 2).double()
    initialize(shorter, problem, settings, 0)
    AdamRun(shorter, problem, replace(settings, max_epochs=best + 1), seed=0).run()
    assert_identical(shorter, module)


def test_held_out_and_training_samples_are_a_partition():
    problem = make_problem(n=20)
    run = AdamRun(DiagonalAttention(D).double(), problem, adam(validation_fraction=0.25), seed=3)
    assert (run.held_out.n_samples, run.problem.n_samples) == (5, 15)
    together = torch.cat([run.held_out.y, run.problem.y])
    torch.testing.assert_close(together.sort().values, problem.y.sort().values, rtol=0, atol=0)


def test_taking_samples_equals_taking_from_a_list():
    problem = make_problem(n=10)
    chosen = torch.tensor([7, 2, 2, 9])
    part = problem.take(chosen)
    samples = [
        problem.values[a:b] for a, b in zip(problem.offsets, problem.offsets[1:], strict=False)
    ]
    torch.testing.assert_close(part.values, torch.cat([samples[i] for i in chosen]))
    assert part.offsets.diff().tolist() == [len(samples[i]) for i in chosen]
    torch.testing.assert_close(part.y, problem.y[chosen])


@pytest.mark.parametrize("share", [0.1, 0.6, 0.99])
def test_row_dropout_keeps_a_row_of_every_sample_and_about_its_share(share):
    problem = make_problem(n=300, shortest=1, longest=9)
    numbered = torch.arange(len(problem.values), dtype=torch.float64)[:, None]
    dropped = replace(problem, values=numbered).drop_rows(share, torch.Generator().manual_seed(0))
    kept = dropped.values[:, 0].long()
    assert (dropped.offsets.diff() >= 1).all()
    assert torch.equal(kept, kept.sort().values)  # rows stay in order, within their samples
    assert torch.equal(sample_of_row(problem.offsets)[kept], sample_of_row(dropped.offsets))
    # A sample of p rows keeps p(1 − share) on average, and one more when all fell.
    p = problem.offsets.diff().double()
    expected = float((p * (1 - share) + share**p).sum())
    assert len(kept) == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize("parameterization", ["full", "factored", "psd"])
def test_a_step_for_the_values_keeps_the_scores(parameterization):
    problem = make_problem()
    module = DiagonalAttention(problem.n_features, parameterization=parameterization).double()
    run = AdamRun(module, problem, adam(score_ridge=1.0), seed=0)
    run.step(problem, problem.n_samples)  # Adam has momentum now
    W, v = module.query_key.matrix().detach().clone(), module.value.detach().clone()
    run.step(problem, problem.n_samples, keep_scores=True)
    torch.testing.assert_close(module.query_key.matrix(), W, rtol=0, atol=0)
    assert (module.value - v).abs().min() > 0


def test_value_dropout_teaches_values_about_rows_that_are_not_attended():
    """Two rows say the same in other features; attention takes the first, values learn both."""
    rng = np.random.default_rng(0)
    signal = rng.normal(size=(400, 1))
    X = np.zeros((400, 2, 4))
    X[:, 0] = np.hstack([signal, np.zeros((400, 1)), np.full((400, 1), 3.0), np.zeros((400, 1))])
    X[:, 1] = np.hstack([np.zeros((400, 1)), signal, np.zeros((400, 1)), np.full((400, 1), 3.0)])
    rows, y = RaggedRows.from_samples(list(X)), signal[:, 0]
    slopes = {}
    for share in (0.0, 0.5):
        module = DiagonalAttention(4).double()
        module.query_key.set_matrix(torch.diag(torch.tensor([0.0, 0.0, 400.0, 0.0]))[None])
        AdamRun(module, problem_of(rows, y), adam(value_dropout=share, max_epochs=60), 0).run()
        slopes[share] = module.value[0, :2, 0].tolist()
    assert slopes[0.5] == pytest.approx([1, 1], abs=0.05)
    assert abs(slopes[0.0][1]) < 0.05


@pytest.mark.parametrize("parameterization", ["full", "factored", "psd"])
def test_bounds_hold_after_training(parameterization):
    X, y = ragged()
    model = DiagAttRegressor(
        2,
        solver="gradient",
        parameterization=parameterization,
        rank=2,
        value_bound=0.7,
        score_bound=0.2,
        learning_rate=0.1,
        random_state=0,
    ).fit(X, y)
    assert np.linalg.norm(model.value_) <= 0.7 + 1e-9
    assert np.linalg.norm(model.query_key_, 2, axis=(1, 2)).max() <= 0.2 + 1e-9
    assert np.linalg.matrix_rank(model.query_key_, tol=1e-8).max() <= 2


def test_rank_of_a_full_matrix_is_kept_by_default_settings():
    X, y = ragged()
    model = DiagAttRegressor(solver="gradient", rank=1, random_state=0).fit(X, y)
    assert np.linalg.matrix_rank(model.query_key_, tol=1e-8).tolist() == [1]


@pytest.mark.parametrize(
    "option",
    [
        {"row_dropout": 0.1},
        {"value_dropout": 0.1},
        {"validation_fraction": 0.1},
        {"value_bound": 1.0},
        {"rank": 1},
    ],
)
def test_lbfgs_refuses_what_needs_batches(option):
    X, y = ragged()
    model = DiagAttRegressor(solver="gradient", optimizer="lbfgs", **option)
    with pytest.raises(ValueError, match=r"takes no row_dropout.*use optimizer='adam'"):
        model.fit(X, y)


# ---------------------------------------------------------------------- restarts, warm start


def gradient_regressor(**options):
    return DiagAttRegressor(**{"solver": "gradient", "random_state": 0, **options})


@pytest.mark.parametrize("coupling", ["independent", "distinct"])
@pytest.mark.parametrize("n_heads", [1, 2])
def test_restarts_are_averaged(n_heads, coupling):
    X, y = ragged()
    options = {"n_heads": n_heads, "coupling": coupling, "optimizer": "adam", "max_epochs": 3}
    model = gradient_regressor(n_restarts=3, init_scale=1.0, **options).fit(X, y)
    seed = check_random_state(0).randint(2**31 - 1)
    problem = make_problem()
    settings = GradientSettings(
        optimizer="adam",
        learning_rate=model.learning_rate,
        batch_size=model.batch_size,
        max_epochs=3,
        ridge=1.0,
        score_ridge=0.1,
        init_scale=1.0,
    )
    fits = [
        trained(problem, settings, seed=int(s), n_heads=n_heads, coupling=coupling)[0]
        for s in np.random.SeedSequence(seed).generate_state(3)
    ]
    with torch.no_grad():
        singles = [fit(problem.values, problem.offsets)[:, 0].numpy() for fit in fits]
    assert np.ptp(singles, axis=0).max() > 1e-3  # the restarts do differ
    np.testing.assert_allclose(model.predict(X), np.mean(singles, axis=0), atol=1e-10)
    assert model.value_.shape == (3 * n_heads, D)
    assert len(model.history_) == model.n_restarts_ == 3
    assert model.n_heads_ == n_heads
    assert all(weights.shape[1] == n_heads for weights in model.attention(X))


def test_averaging_puts_heads_in_the_order_of_the_first_restart():
    problem, generator = make_problem(), torch.Generator().manual_seed(0)
    first = DiagonalAttention(D, 3).double()
    first.reset_parameters(1.0, generator)
    swapped = DiagonalAttention(D, 3).double()
    order = [2, 0, 1]
    with torch.no_grad():
        first.value.copy_(torch.randn(3, D, 1, generator=generator))
        swapped.query_key.set_matrix(first.query_key.matrix()[order])
        swapped.value.copy_(first.value[order])
    both = average([first, swapped], problem)
    torch.testing.assert_close(both.query_key.matrix()[:3], both.query_key.matrix()[3:])
    torch.testing.assert_close(
        both(problem.values, problem.offsets), first(problem.values, problem.offsets)
    )


def test_restart_agreement_is_the_share_of_equal_votes():
    X, y = ragged()
    model = gradient_regressor(n_heads=2, n_restarts=4, init_scale=1.0, max_epochs=2).set_params(
        optimizer="adam", coupling="independent"
    )
    model.fit(X, y)
    module, (values, offsets) = model.to_module(), X.to_torch()
    with torch.no_grad():
        kappa = module.attention(values, offsets).numpy().reshape(-1, 4, 2)
    expected = []
    for i, weights in enumerate(np.split(kappa, X.offsets[1:-1])):
        votes = weights.argmax(axis=0)  # (M, R)
        np.testing.assert_array_equal(model.locate(X[[i]])[0], weights.mean(axis=1).argmax(axis=0))
        expected.append((votes == weights.mean(axis=1).argmax(axis=0)).mean(axis=0))
    agreement = model.restart_agreement(X)
    np.testing.assert_allclose(agreement, expected)
    assert ((agreement >= 0) & (agreement <= 1)).all()
    assert (agreement < 1).any()
    np.testing.assert_allclose(np.concatenate(model.attention(X)), kappa.mean(axis=1), atol=1e-12)


def test_one_restart_always_agrees_with_itself():
    X, y = ragged()
    assert (gradient_regressor(n_heads=2).fit(X, y).restart_agreement(X) == 1).all()


@pytest.mark.parametrize("n_restarts", [1, 2])
def test_warm_start_continues_where_the_fit_ended(n_restarts):
    X, y = ragged()
    model = gradient_regressor(
        optimizer="adam", max_epochs=5, batch_size=None, warm_start=True, n_restarts=n_restarts
    )
    first = [history[-1]["loss"] for history in model.fit(X, y).history_]
    before = model.predict(X)
    second = [history[0]["loss"] for history in model.fit(X, y).history_]
    if n_restarts == 1:  # the first entry of a full batch is the loss at the start
        assert second[0] == pytest.approx(0.5 * np.mean((y - before) ** 2))
    assert np.mean(second) < np.mean(first) + 1e-3
    cold = gradient_regressor(optimizer="adam", max_epochs=5, batch_size=None).fit(X, y)
    assert np.mean((model.predict(X) - y) ** 2) < np.mean((cold.predict(X) - y) ** 2)


def test_warm_start_at_an_optimum_stays_there():
    X, y = ragged()
    model = gradient_regressor(warm_start=True, max_epochs=5000).fit(X, y)
    before = model.predict(X)
    np.testing.assert_allclose(model.fit(X, y).predict(X), before, atol=1e-4)


def test_warm_start_with_another_number_of_heads_is_refused():
    X, y = ragged()
    model = gradient_regressor(warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="warm_start continues a fit of the same n_heads"):
        model.set_params(n_heads=2).fit(X, y)


# ---------------------------------------------------------------------- trouble, invariances


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_a_diverging_fit_names_the_epoch_and_the_remedy(family):
    X, y = ragged()
    model = gradient_regressor(optimizer="adam", learning_rate=1e200, family=family)
    with pytest.raises(DivergedError, match=r"at epoch \d+: lower learning_rate.*standardize"):
        model.fit(X, np.abs(y))


@pytest.mark.parametrize("factor", [1e-4, 1000.0])
def test_scaling_the_response_scales_predictions(factor):
    X, y = ragged()
    fitted = gradient_regressor(n_heads=2).fit(X, y)
    scaled = gradient_regressor(n_heads=2).fit(X, factor * y)
    np.testing.assert_allclose(scaled.predict(X) / factor, fitted.predict(X), atol=1e-4)
    np.testing.assert_array_equal(scaled.locate(X), fitted.locate(X))
    losses = (model.history_[0][-1]["loss"] for model in (scaled, fitted))
    assert next(losses) / factor**2 == pytest.approx(next(losses), rel=1e-6)


@pytest.mark.parametrize("estimator", [DiagAttRegressor, DiagAttClassifier])
def test_a_doubled_sample_is_a_sample_of_weight_two(estimator):
    X, y = ragged()
    if estimator is DiagAttClassifier:
        y = (y > np.median(y)).astype(int)
    again = np.r_[np.arange(40), np.arange(0, 40, 3)]
    weights = np.bincount(again).astype(float)
    model = estimator(2, solver="gradient", random_state=0, max_epochs=5000)
    weighted = model.fit(X, y, sample_weight=weights).to_module()
    doubled = model.fit(X[again], y[again]).to_module()
    values, offsets = X.to_torch()
    torch.testing.assert_close(
        weighted(values, offsets), doubled(values, offsets), rtol=1e-4, atol=1e-4
    )


def test_a_sample_of_weight_zero_is_absent():
    X, y = ragged()
    weights = np.ones(40)
    weights[::4] = 0
    present = weights > 0
    spoiled = np.where(present, y, 1e6)
    model = gradient_regressor()
    expected = model.fit(X[present], y[present]).predict(X)
    np.testing.assert_allclose(model.fit(X, spoiled, sample_weight=weights).predict(X), expected)
