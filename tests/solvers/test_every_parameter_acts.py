"""No parameter is idle: changing it changes a fit, what is written or shown, or is refused.

The parameters are those of `__init__`; one without a case below fails.
"""

import numpy as np
import pytest
import torch
from sklearn.preprocessing import StandardScaler

from diagatt import DiagAttClassifier, DiagAttRegressor, RaggedRows
from diagatt.solvers import SOLVERS, Auto, Gradient, Likelihood, Mixture, Model, Refined, Uniform
from tests.models import estimator
from tests.solvers.samples import problem_of, ragged

pytestmark = [
    pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

OURS = [Auto, Gradient, Likelihood, Mixture, Refined, Uniform]
ESTIMATORS = [DiagAttRegressor, DiagAttClassifier]
ADAM = {"optimizer": "adam", "max_epochs": 2, "batch_size": 16}
SHORT = Gradient(**ADAM)
# Parameters of solvers: what else is set, and the value that must make a difference.
OF_SOLVERS = {
    Gradient: {
        "parameterization": (ADAM, "psd"),
        "rank": (ADAM, 1),
        "temperature": (ADAM, 5.0),
        "score_ridge": (ADAM, 10.0),
        "linear_ridge": (ADAM, 10.0),
        "value_bound": (ADAM, 0.1),
        "score_bound": (ADAM, 0.01),
        "optimizer": ({"max_epochs": 2}, "adam"),
        "learning_rate": (ADAM, 0.1),
        "batch_size": (ADAM, None),
        "max_epochs": (ADAM, 3),
        "tolerance": ({"optimizer": "lbfgs"}, 0.1),
        "row_dropout": (ADAM, 0.5),
        "value_dropout": (ADAM, 0.5),
        "validation_fraction": (ADAM, 0.3),
        "patience": ({**ADAM, "validation_fraction": 0.3, "max_epochs": 30, "init": "zero"}, 1),
        "init": (ADAM, "zero"),
        "init_scale": (ADAM, 1.0),
        "n_restarts": (ADAM, 2),
        "none": (ADAM, True),
    },
    Likelihood: {
        "covariance": ({}, "tied"),
        "rank": ({"covariance": "low_rank"}, 1),
        "shrinkage": ({}, 0.9),
        "max_iterations": ({}, 1),
        "tolerance": ({"shrinkage": 0.0}, 1e-9),
        "none": ({}, True),
        "readout": ({}, "mixture"),
    },
    Mixture: {
        "parameterization": (ADAM, "psd"),
        "rank": ({**ADAM, "parameterization": "factored"}, 1),
        "score_ridge": (ADAM, 1.0),
        "linear_ridge": (ADAM, 100.0),
        "optimizer": ({"max_epochs": 2}, "adam"),
        "learning_rate": (ADAM, 0.1),
        "batch_size": (ADAM, None),
        "max_epochs": (ADAM, 3),
        "tolerance": ({"optimizer": "lbfgs"}, 0.1),
        "n_starts": (ADAM, 1),
        "none": (ADAM, True),
    },
    Refined: {
        "first": ({"then": SHORT}, Likelihood("tied")),
        "then": ({}, SHORT),
    },
    Auto: {
        "contestants": ({"contestants": [Uniform()]}, [SHORT]),
        "folds": ({"contestants": [Uniform(), SHORT]}, 3),
        "combine": ({"contestants": [SHORT, Gradient(**ADAM, init_scale=0.2)]}, "best"),
    },
    Uniform: {},
}


def parameters_of(kinds):
    """Every parameter of every class, as arguments of a test."""
    pairs = [(kind, name) for kind in kinds for name in kind._get_param_names()]
    return [pytest.param(kind, name, id=f"{kind.__name__}-{name}") for kind, name in pairs]


def differ(one, other):
    """Return whether two footprints, dicts of arrays and texts, differ in any entry."""
    assert one.keys() == other.keys()
    return any(
        np.shape(one[key]) != np.shape(other[key])
        or np.asarray(one[key]).dtype != np.asarray(other[key]).dtype
        or not np.array_equal(one[key], other[key])
        for key in one
    )


# ---------------------------------------------------------------------- solvers


def solver_footprint(solver):
    """Parameters of the fit, its history and its report."""
    X, y = ragged(n=60)
    fitted = solver.fit(problem_of(X, y), Model(1), seed=0)
    with torch.no_grad():
        z = fitted.predictor(*X.to_torch())
    contest = [{k: v for k, v in line.items() if k != "seconds"} for line in fitted.contest]
    texts = {"history": repr(fitted.history), "report": repr(fitted.report + contest)}
    texts["readout"] = fitted.module.readout
    return {"W": fitted.module.query_key.matrix().detach(), "z": z, **texts}


def test_every_solver_has_cases_and_rules_for_its_parameters():
    ours = {kind for kind in SOLVERS.values() if kind.__module__.startswith("diagatt.")}
    assert ours == set(OURS) == set(OF_SOLVERS)
    for kind in OURS:
        assert set(kind._get_param_names()) == set(OF_SOLVERS[kind]) == set(kind.rules), kind


@pytest.mark.parametrize(("kind", "name"), parameters_of(OURS))
def test_every_parameter_of_a_solver_acts(kind, name):
    others, value = OF_SOLVERS[kind][name]
    before = solver_footprint(kind(**others))
    assert not differ(before, solver_footprint(kind(**others)))  # nothing is left to chance
    assert differ(before, solver_footprint(kind(**{**others, name: value})))


@pytest.mark.parametrize(("kind", "name"), parameters_of(OURS))
def test_every_parameter_of_a_solver_has_values_that_are_refused(kind, name):
    X, y = ragged()
    model = DiagAttRegressor(solver=kind(**{name: object()}))
    with pytest.raises(ValueError, match=rf"solver__{name} must be .*, got <object"):
        model.fit(X, y)


def test_max_epochs_also_limits_lbfgs():
    short, long = (solver_footprint(Gradient(optimizer="lbfgs", max_epochs=k)) for k in (2, 5))
    assert differ(short, long)


# ---------------------------------------------------------------------- estimators

# Parameters of the estimators: what else is set, and the value that must make a difference.
OF_ESTIMATORS = {
    "n_heads": ({"solver": "likelihood"}, 2),
    "solver": ({"solver": "likelihood"}, "uniform"),
    "family": (
        {"solver": "uniform"},
        {DiagAttRegressor: "poisson", DiagAttClassifier: "multinomial"},
    ),
    "score_form": ({"solver": "likelihood"}, "quadratic"),
    "coupling": ({"solver": "likelihood", "n_heads": 2}, "independent"),
    "ridge": ({"solver": "uniform"}, 100.0),
    "selection": ({"solver": "likelihood", "n_heads": [1, 2]}, "bic"),
    "random_state": ({"solver": "gradient", **ADAM}, 1),
    "encoder": ({"solver": "uniform"}, StandardScaler()),
}


def samples_for(kind):
    X, y = ragged(n=60)
    return X, (np.abs(y) if kind is DiagAttRegressor else (y > np.median(y)).astype(int))


def footprint(model):
    """What a fit leaves behind."""
    arrays = {name: getattr(model, name) for name in ("query_key_", "value_", "intercept_")}
    texts = {name: repr(getattr(model, name)) for name in ("history_", "criteria_", "selection_")}
    return {**arrays, **texts}


def fitted(kind, **options):
    return estimator(kind, **{"random_state": 0, **options}).fit(*samples_for(kind))


def check_warm_start(kind, **_):
    options = {"solver": "gradient", **ADAM}
    for warm in (False, True):
        model = fitted(kind, warm_start=warm, **options)
        before = footprint(model)
        model.fit(*samples_for(kind))
        assert differ(before, footprint(model)) == warm


def check_checkpoint(kind, tmp_path, **_):
    fitted(kind, solver="gradient", **ADAM, checkpoint=tmp_path / "state")
    assert (tmp_path / "state").stat().st_size > 0


def check_device(kind, monkeypatch, **_):
    with pytest.raises(ValueError, match="device must be a torch device that this machine has"):
        fitted(kind, device="meta")
    asked, to_torch = [], RaggedRows.to_torch

    def recorded(self, device=None, *arguments, **options):
        asked.append(device)
        return to_torch(self, device, *arguments, **options)

    monkeypatch.setattr(RaggedRows, "to_torch", recorded)
    device = torch.device("cpu")
    model = fitted(kind, solver="uniform", device=device)
    model.predict(samples_for(kind)[0])
    assert len(asked) >= 2
    assert all(given is device for given in asked)


def check_verbose(kind, capsys, **_):
    fitted(kind, solver="likelihood")
    assert capsys.readouterr().out == ""
    fitted(kind, solver="likelihood", verbose=True)
    assert "iteration" in capsys.readouterr().out


def check_missing(kind, **_):
    X, y = samples_for(kind)
    values = X.values.copy()
    values[3, 1] = np.nan
    for missing, refuses in (("refuse", True), ("marginalize", False)):
        model = estimator(kind, solver="uniform", missing=missing)
        if refuses:
            with pytest.raises(ValueError, match="contains NaN"):
                model.fit(X.with_values(values), y)
        else:
            assert model.fit(X.with_values(values), y).missing_ == {"entries": 1, "rows": 1}


# Parameters that say how and where to compute: the act itself is shown.
SHOWN = {
    "warm_start": check_warm_start,
    "checkpoint": check_checkpoint,
    "device": check_device,
    "verbose": check_verbose,
    "missing": check_missing,
}


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_every_parameter_of_an_estimator_has_a_case(kind):
    names = kind._get_param_names()
    assert set(names) == set(OF_ESTIMATORS) | set(SHOWN)
    assert len(names) <= 14


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), parameters_of(ESTIMATORS))
def test_every_parameter_of_an_estimator_acts(kind, name, tmp_path, monkeypatch, capsys):
    if name in SHOWN:
        SHOWN[name](kind, tmp_path=tmp_path, monkeypatch=monkeypatch, capsys=capsys)
        return
    others, value = OF_ESTIMATORS[name]
    value = value[kind] if isinstance(value, dict) else value
    before = footprint(fitted(kind, **others))
    assert not differ(before, footprint(fitted(kind, **others)))
    assert differ(before, footprint(fitted(kind, **{**others, name: value})))


@pytest.mark.parametrize(("kind", "name"), parameters_of(ESTIMATORS))
def test_every_parameter_of_an_estimator_has_values_that_are_refused(kind, name):
    model = kind(**{name: object()})
    with pytest.raises(ValueError, match=rf"{name} must be .*, got <object"):
        model.fit(*samples_for(kind))
