"""No parameter of any other estimator is idle, as `tests/solvers` shows for ours and the solvers'.

The parameters are those of `__init__`; one without a case below fails.
"""

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.preprocessing import StandardScaler

from diagatt import DiagAttClassifier, DiagAttRegressor, RaggedRows
from diagatt.encoders import MLP
from diagatt.estimators.times import ReadsTimes
from diagatt.lifetimes import make_times
from diagatt.persistence import registered
from diagatt.solvers import Gradient
from tests.estimators.samples import responses
from tests.solvers.test_every_parameter_acts import ESTIMATORS, differ, parameters_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

OTHERS = [kind for kind in registered().values() if kind not in ESTIMATORS]
X = RaggedRows.from_samples(
    [np.random.default_rng(k).normal(size=(2 + k % 3, 3)) for k in range(60)]
)
SHORT = Gradient(optimizer="adam", max_epochs=2, batch_size=16)
ADAM = {"optimizer": "adam", "batch_size": 16, "max_epochs": 2}

# Which rows are named is seen by nobody else.
# A value that is refused, and why.
DEVICE = ("meta", "device must be a torch device")
LOCATING = {"n_located": ({}, 1)}
TRAINED = {
    "optimizer": ({"max_epochs": 2}, "adam"),
    "learning_rate": (ADAM, 0.1),
    "batch_size": (ADAM, 8),
    "max_epochs": (ADAM, 3),
    "tolerance": ({"optimizer": "lbfgs"}, 0.1),
    "ridge": (ADAM, 100.0),
    "score_ridge": (ADAM, 100.0),
    "init_scale": (ADAM, 0.1),
    "selection": ({**ADAM, "max_epochs": [1, 2]}, 3),
    "random_state": (ADAM, 1),
    "device": DEVICE,
    "verbose": "shown",
    **LOCATING,
}
POOLED = {
    "pool": ({}, "max"),
    "ridge": ({}, 100.0),
    "family": ({}, "other"),
    "selection": ({"ridge": [0.1, 1.0]}, 3),
    "random_state": ({"ridge": [0.1, 1.0]}, 1),
    **LOCATING,
}
# Parameters of an estimator: what else is set, and the value that must make a difference.
CASES = {
    "Pooled": POOLED,
    "GatedAttentionSurvival": {
        "n_hidden": (ADAM, 2),
        "family": ("poisson", "is Cox regression"),
        **TRAINED,
    },
    "GatedAttention": {"n_hidden": (ADAM, 2), "family": (ADAM, "other"), **TRAINED},
    "StdAtt": {
        "n_heads": (ADAM, 2),
        "family": (ADAM, "other"),
        "memory_limit": (1.0, "Raise memory_limit"),
        **TRAINED,
    },
    "MDSP": {
        "alpha": ({}, 1.0),
        "max_steps": ({}, 2),
        "tolerance": ({}, 0.1),
        "stop_early": ({}, True),
        "selection": ({"alpha": [0.1, 1.0]}, 3),
        "random_state": ({"alpha": [0.1, 1.0]}, 1),
        **LOCATING,
    },
    "GroupLasso": {
        "alpha": ({}, 0.1),
        "tolerance": ({}, 0.1),
        "selection": ({"alpha": [0.01, 0.1]}, 3),
        "random_state": ({"alpha": [0.01, 0.1]}, 1),
        **LOCATING,
    },
    "TwoStep": {
        "ridge": ({}, 100.0),
        "active_component": ({"active_component": 0}, 1),
        "covariance_type": ({}, "diag"),
        "max_iter": ({}, 1),
        "selection": ({"ridge": [0.1, 1.0]}, 3),
        "random_state": ({}, 1),
        **LOCATING,
    },
    "DiagAttSurvival": {
        "n_heads": ({"solver": "likelihood"}, 2),
        "solver": ({"solver": "likelihood"}, "uniform"),
        "family": ({"solver": "uniform"}, "weibull"),
        "ties": ({"solver": "uniform"}, "breslow"),
        "score_form": ({"solver": "likelihood"}, "quadratic"),
        "coupling": ({"solver": "likelihood", "n_heads": 2}, "independent"),
        "ridge": ({"solver": "uniform"}, 100.0),
        "selection": ({"solver": "likelihood", "n_heads": [1, 2]}, "bic"),
        "random_state": ({"solver": SHORT}, 1),
        "encoder": ({"solver": "uniform"}, StandardScaler()),
        "device": DEVICE,
        **dict.fromkeys(("missing", "warm_start", "checkpoint", "verbose"), "as DiagAttRegressor"),
    },
    "Blended": {
        "members": ({}, "other"),
        "n_blocks": ({}, 3),
        "random_state": ({}, 1),
    },
}


def cases_of(kind):
    """The cases of an estimator, for regression, classification and times alike."""
    return next(own for name, own in CASES.items() if kind.__name__.startswith(name))


def made(kind, **options):
    """An estimator; members, and values called "other", are those that suit it."""
    options = {"random_state": 0, **options}
    if "members" in kind._get_param_names():
        inner = DiagAttClassifier if is_classifier(kind([])) else DiagAttRegressor
        scores = "quadratic" if options.get("members") == "other" else "affine"
        one = inner(solver=SHORT, score_form=scores)
        options["members"] = [("one", one, None), ("two", one, [0])]
    if options.get("family") == "other":
        options["family"] = "multinomial" if is_classifier(kind()) else "poisson"
    return kind(**options)


def response_of(model):
    if isinstance(model, ReadsTimes):
        ties = np.round(np.exp(responses(X)), 1) + 0.1
        return make_times(np.arange(60) % 3 > 0, ties)
    return np.abs(responses(X)) if not is_classifier(model) else responses(X, "two")


def footprint(model):
    """What a fitted model predicts, locates and reports."""
    y = response_of(model)
    model.fit(X, y)
    shown = {"y": y} if type(model).__name__.startswith("MDSP") else {}
    predict = getattr(model, "predict_proba", model.predict)
    arrays = {"predict": predict(X, **shown), "locate": model.locate(X, **shown)}
    texts = {name: repr(getattr(model, name, None)) for name in ("selection_", "history_")}
    return {**arrays, **texts}


@pytest.mark.parametrize("kind", OTHERS)
def test_every_parameter_has_a_case(kind):
    assert set(kind._get_param_names()) <= set(cases_of(kind))


@pytest.mark.slow
@pytest.mark.parametrize("name", MLP._get_param_names())
def test_every_parameter_of_a_trained_encoder_acts(name):
    values = {
        "hidden": (5,),
        "out": 3,
        "activation": "tanh",
        "max_epochs": 3,
        "learning_rate": 0.1,
        "ridge": 10.0,
        "validation_fraction": 0.3,
    }
    given = {"hidden": (4,), "out": 2, "max_epochs": 2, "validation_fraction": 0.0}
    before, after = (
        footprint(DiagAttRegressor(solver=SHORT, encoder=MLP(**own), random_state=0))
        for own in (given, {**given, name: values[name]})
    )
    assert differ(before, after)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), parameters_of(OTHERS))
def test_every_parameter_acts(kind, name, capsys):
    case = cases_of(kind)[name]
    if case == "as DiagAttRegressor":
        assert kind.fit is DiagAttRegressor.fit
        return
    if case == "shown":
        footprint(made(kind, **ADAM, verbose=True))
        assert capsys.readouterr().out != ""
        return
    others, value = case
    if not isinstance(others, dict):
        with pytest.raises((ValueError, MemoryError), match=value):
            footprint(made(kind, **{name: others}))
        return
    before = footprint(made(kind, **others))
    assert not differ(before, footprint(made(kind, **others)))  # nothing is left to chance
    assert differ(before, footprint(made(kind, **{**others, name: value})))


@pytest.mark.parametrize(("kind", "name"), parameters_of(OTHERS))
def test_every_parameter_has_values_that_are_refused(kind, name):
    model = made(kind)
    model.set_params(**{name: object()})
    with pytest.raises(ValueError, match=rf"{name} must be .*, got <object"):
        model.fit(X, response_of(model))
