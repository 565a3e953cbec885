"""Checkpoints: a resumed run is the undisturbed one, and that of another run is refused."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn import clone

from diagatt import DiagAttRegressor
from diagatt.families import get_family
from diagatt.modelfile import ModelFileError
from diagatt.scores import get_score_form
from diagatt.solvers import Checkpoint, Gradient, Likelihood, Model
from diagatt.solvers.gradient.adam import AdamRun
from diagatt.solvers.likelihood.em import EM
from tests.models import regressor
from tests.solvers.gradient.training import assert_identical
from tests.solvers.samples import make_problem, ragged

pytestmark = pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")

MODEL = Model(2, get_score_form("affine"), "independent", ridge=0.0)


def adam(**options):
    common = {"optimizer": "adam", "batch_size": 8, "learning_rate": 0.02, "max_epochs": 6}
    return Gradient(**{**common, "score_ridge": 0.0, **options})


def changed(solver, **options):
    return clone(solver).set_params(**options)


def trained(problem, solver, checkpoint=None, model=MODEL, seed=1):
    fitted = solver.fit(problem, model, seed=seed, checkpoint=checkpoint)
    return fitted.module, fitted.history[0]


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
    problem, solver = make_problem(), adam(**options)
    undisturbed, history = trained(problem, solver)
    checkpoint = Checkpoint(tmp_path / "run.safetensors")
    trained(problem, changed(solver, max_epochs=stop), checkpoint)
    resumed, resumed_history = trained(problem, solver, checkpoint)
    assert_identical(resumed, undisturbed)
    assert resumed_history == history


def test_a_run_killed_between_two_writes_resumes_bit_identically(tmp_path, monkeypatch):
    problem, solver = make_problem(), adam(row_dropout=0.3, max_epochs=9)
    undisturbed, history = trained(problem, solver)
    checkpoint, run_epoch = Checkpoint(tmp_path / "run", every=3), AdamRun.run_epoch

    def interrupted(run, epoch):
        if epoch == 6:
            raise KeyboardInterrupt
        return run_epoch(run, epoch)

    monkeypatch.setattr(AdamRun, "run_epoch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        trained(problem, solver, checkpoint)
    monkeypatch.setattr(AdamRun, "run_epoch", run_epoch)
    resumed, resumed_history = trained(problem, solver, checkpoint)
    assert_identical(resumed, undisturbed)
    assert resumed_history == history


def test_resuming_a_finished_run_changes_nothing(tmp_path):
    problem, solver = make_problem(), adam(validation_fraction=0.3, patience=2, max_epochs=60)
    checkpoint = Checkpoint(tmp_path / "run")
    first, history = trained(problem, solver, checkpoint)
    again, again_history = trained(problem, solver, checkpoint)
    assert_identical(first, again)
    assert again_history == history


def test_estimators_resume_every_restart(tmp_path):
    X, y = ragged()
    common = {"n_restarts": 2, "solver": "gradient", "optimizer": "adam", "random_state": 0}
    undisturbed = regressor(**common, max_epochs=5).fit(X, y)
    path = tmp_path / "run.safetensors"
    regressor(**common, max_epochs=2, checkpoint=path).fit(X, y)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run-1.safetensors", "run.safetensors"]
    resumed = regressor(**common, max_epochs=5, checkpoint=path).fit(X, y)
    np.testing.assert_array_equal(resumed.query_key_, undisturbed.query_key_)
    np.testing.assert_array_equal(resumed.value_, undisturbed.value_)
    assert resumed.history_ == undisturbed.history_


OTHER_RUNS = {
    "responses": lambda p, s, m: (replace(p, y=p.y + 1), s, m),
    "rows": lambda p, s, m: (replace(p, values=p.values + 1), s, m),
    "weights": lambda p, s, m: (replace(p, weights=2 * p.weights), s, m),
    "family": lambda p, s, m: (replace(p, family=get_family("poisson")), s, m),
    "learning rate": lambda p, s, m: (p, changed(s, learning_rate=0.5), m),
    "temperature": lambda p, s, m: (p, changed(s, temperature=3.0), m),
    "coupling": lambda p, s, m: (p, s, replace(m, coupling="distinct")),
    "bound": lambda p, s, m: (p, changed(s, value_bound=1.0), m),
    "heads": lambda p, s, m: (p, s, replace(m, n_heads=1)),
    "ridge": lambda p, s, m: (p, s, replace(m, ridge=0.5)),
    "score form": lambda p, s, m: (p, s, replace(m, score_form=get_score_form("quadratic"))),
}


@pytest.mark.parametrize("other", OTHER_RUNS)
def test_the_checkpoint_of_another_run_is_refused(tmp_path, other):
    problem, solver = make_problem(), adam(max_epochs=2)
    problem = replace(problem, y=problem.y.abs())
    checkpoint = Checkpoint(tmp_path / "run")
    trained(problem, solver, checkpoint)
    assert_refused(checkpoint, *OTHER_RUNS[other](problem, solver, MODEL))


def assert_refused(checkpoint, problem, solver, model):
    """Check that another run does not touch the file."""
    before = checkpoint.path.read_bytes()
    with pytest.raises(ModelFileError, match="other data or other settings: delete it"):
        trained(problem, solver, checkpoint, model)
    assert checkpoint.path.read_bytes() == before


def test_another_seed_is_another_run(tmp_path):
    checkpoint = Checkpoint(tmp_path / "run")
    trained(make_problem(), adam(max_epochs=2), checkpoint)
    with pytest.raises(ModelFileError, match="other data or other settings: delete it"):
        trained(make_problem(), adam(max_epochs=2), checkpoint, seed=2)


def test_other_covariates_are_other_data(tmp_path):
    problem, solver = make_problem(), adam(max_epochs=2)
    checkpoint = Checkpoint(tmp_path / "run")
    for shift, expectation in [(0.0, None), (1.0, ModelFileError)]:
        covariates = torch.arange(40.0, dtype=torch.float64)[:, None] / 40 + shift
        shifted = replace(problem, covariates=covariates)
        if expectation is None:
            trained(shifted, solver, checkpoint)
        else:
            with pytest.raises(expectation):
                trained(shifted, solver, checkpoint)


def test_a_saved_estimator_is_no_checkpoint(tmp_path):
    X, y = ragged()
    path = tmp_path / "model"
    regressor(random_state=0, solver="gradient").fit(X, y).save(path)
    with pytest.raises(ModelFileError, match="other data or other settings"):
        trained(make_problem(), adam(), Checkpoint(path))


# ---------------------------------------------------------------------- EM


@pytest.mark.parametrize("every", [1, 2])
def test_em_goes_on_bit_identically_after_an_interruption(tmp_path, monkeypatch, every):
    problem, solver = make_problem(n=60), Likelihood(tolerance=1e-8)
    undisturbed, history = trained(problem, solver)
    checkpoint, iterate, passes = Checkpoint(tmp_path / "run", every), EM._iterate, []

    def interrupted(self, now):
        if self.settings.tolerance == solver.tolerance:  # starts compete at another one
            passes.append(now)
            if len(passes) > 3:
                raise KeyboardInterrupt
        iterate(self, now)

    monkeypatch.setattr(EM, "_iterate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        trained(problem, solver, checkpoint)
    monkeypatch.setattr(EM, "_iterate", iterate)
    resumed, resumed_history = trained(problem, solver, checkpoint)
    assert_identical(resumed, undisturbed)
    assert resumed_history == history


OTHER_EM_RUNS = {
    "responses": lambda p, s, m: (replace(p, y=p.y + 1), s, m),
    "covariance": lambda p, s, m: (p, changed(s, covariance="tied"), m),
    "tolerance": lambda p, s, m: (p, changed(s, tolerance=1e-6), m),
    "coupling": lambda p, s, m: (p, s, replace(m, coupling="distinct")),
    "ridge": lambda p, s, m: (p, s, replace(m, ridge=0.5)),
    "score form": lambda p, s, m: (p, s, replace(m, score_form=get_score_form("quadratic"))),
}


@pytest.mark.parametrize("other", OTHER_EM_RUNS)
def test_the_checkpoint_of_another_em_is_refused(tmp_path, other):
    problem, solver = make_problem(), Likelihood(max_iterations=2)
    checkpoint = Checkpoint(tmp_path / "run")
    trained(problem, solver, checkpoint)
    assert_refused(checkpoint, *OTHER_EM_RUNS[other](problem, solver, MODEL))


def test_a_path_stands_for_a_checkpoint(tmp_path):
    assert Checkpoint.of(None) is None
    assert Checkpoint.of(tmp_path) == Checkpoint(tmp_path, every=1)
    assert Checkpoint.of(Checkpoint(tmp_path, 5)).every == 5
    assert Checkpoint(tmp_path / "run.bin", 5).of_restart(0) == Checkpoint(tmp_path / "run.bin", 5)
    assert Checkpoint("run.bin").of_restart(2).path.name == "run-2.bin"


@pytest.mark.parametrize("solver", [Gradient(optimizer="lbfgs", max_epochs=3), "uniform"])
def test_a_checkpoint_that_no_fit_keeps_is_told_of(solver, tmp_path):
    """One of an earlier fit that lies there is not taken for one of this fit."""
    X, y = ragged()
    path = tmp_path / "state"
    for _ in range(2):
        with pytest.warns(UserWarning, match="state was not used: fits by L-BFGS, fits without"):
            DiagAttRegressor(solver=solver, checkpoint=path).fit(X, y)
        path.write_bytes(b"of an earlier fit")


@pytest.mark.parametrize("solver", [adam(max_epochs=1), Likelihood()])
def test_a_checkpoint_that_is_kept_is_not_told_of(solver, tmp_path):
    X, y = ragged()
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "checkpoint")
        for _ in range(2):  # the second fit continues
            given = {"solver": solver, "random_state": 0}
            DiagAttRegressor(**given, checkpoint=tmp_path / "state").fit(X, y)
