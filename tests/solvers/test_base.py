"""Solvers as objects: clones, grids, names, refusals, and a user's own."""

import numpy as np
import pytest
import torch
from sklearn import clone
from sklearn.model_selection import GridSearchCV, KFold

from diagatt import DiagAttClassifier, DiagAttRegressor
from diagatt.solvers import (
    SOLVERS,
    Auto,
    Fitted,
    Gradient,
    Likelihood,
    Model,
    Refined,
    Solver,
    Uniform,
    get_solver,
)
from diagatt.solvers.base import copy_parameters
from tests.closeness import assert_equal_up_to_rounding
from tests.models import regressor
from tests.solvers.samples import make_problem, ragged

pytestmark = pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")

ADAM = {"optimizer": "adam", "max_epochs": 2}
OBJECTS = [
    Gradient("factored", rank=2, temperature=3.0),
    Likelihood("low_rank", rank=1, tolerance=1e-3),
    Uniform(),
    Refined(Likelihood("tied"), Gradient(max_epochs=3)),
    Auto([Uniform(), Gradient(rank=1)], combine="best"),
]


# ---------------------------------------------------------------------- as in scikit-learn


@pytest.mark.parametrize("solver", OBJECTS, ids=lambda solver: solver.name)
def test_clones_and_what_is_printed_have_all_parameters(solver):
    for other in (clone(solver), clone(DiagAttRegressor(solver=solver)).solver):
        assert other is not solver
        assert type(other) is type(solver)
        assert repr(other) == repr(solver)
    defaults = type(solver)().get_params(deep=False)
    for name, value in solver.get_params(deep=False).items():
        assert (f"{name}={value!r}" in repr(solver)) == (value != defaults[name])


def test_a_fit_leaves_the_solver_as_it_was():
    X, y = ragged()
    solver = Refined(then=Gradient(**ADAM))
    before = repr(solver), set(vars(solver)), set(vars(solver.then))
    model = DiagAttRegressor(solver=solver, random_state=0).fit(X, y)
    assert model.solver is solver
    assert (repr(solver), set(vars(solver)), set(vars(solver.then))) == before


GRIDS = [
    (Gradient("factored", **ADAM), "solver__rank", [1, 4]),
    (Refined(then=Gradient(**ADAM)), "solver__then__max_epochs", [1, 8]),
    (Likelihood(), "solver__covariance", ["tied", "diagonal"]),
    (Uniform(), "solver", ["likelihood", Gradient(**ADAM)]),
]


@pytest.mark.parametrize(("solver", "name", "values"), GRIDS, ids=[grid[1] for grid in GRIDS])
def test_grid_search_reaches_the_parameters_of_solvers(solver, name, values):
    X, y = ragged(n=60)
    model = DiagAttRegressor(solver=solver, random_state=0)
    search = GridSearchCV(model, {name: values}, cv=KFold(2)).fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert scores[0] != scores[1]
    for value, score in zip(values, scores, strict=True):
        by_hand = []
        for train, test in KFold(2).split(np.arange(60)):
            fit = clone(model).set_params(**{name: value}).fit(X[train], y[train])
            by_hand.append(fit.score(X[test], y[test]))
        assert score == pytest.approx(np.mean(by_hand), rel=1e-12)


@pytest.mark.parametrize("name", ["likelihood", "gradient", "refined", "uniform", "auto"])
def test_a_name_stands_for_the_solver_with_its_defaults(name):
    assert repr(get_solver(name)) == f"{SOLVERS[name].__name__}()"
    X, y = ragged()
    by_name = DiagAttRegressor(solver=name, random_state=0).fit(X, y)
    by_object = DiagAttRegressor(solver=SOLVERS[name](), random_state=0).fit(X, y)
    assert by_name.solver == name  # the parameter stays what it was
    np.testing.assert_array_equal(by_name.query_key_, by_object.query_key_)
    np.testing.assert_array_equal(by_name.predict(X), by_object.predict(X))


def test_parameters_of_a_named_solver_can_be_set():
    model = DiagAttRegressor(solver="gradient").set_params(solver__rank=2, ridge=3.0)
    assert repr(model.solver) == "Gradient(rank=2)"
    assert model.ridge == 3.0
    both = DiagAttRegressor().set_params(solver="likelihood", solver__covariance="tied")
    assert repr(both.solver) == "Likelihood(covariance='tied')"
    search = GridSearchCV(regressor(solver="likelihood"), {"solver__covariance": ["tied", "full"]})
    assert search.fit(*ragged(n=60)).best_params_["solver__covariance"] in ("tied", "full")
    with pytest.raises(ValueError, match="Invalid parameter 'rank' for estimator Uniform"):
        DiagAttRegressor(solver="uniform").set_params(solver__rank=2)


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown solver 'newton'.*'gradient'.*Gradient\(rank=2"):
        get_solver("newton")
    with pytest.raises(ValueError, match="unknown solver 3"):
        get_solver(3)


# ---------------------------------------------------------------------- where parameters went


@pytest.mark.parametrize("kind", [DiagAttRegressor, DiagAttClassifier])
@pytest.mark.parametrize(
    ("name", "value", "written"),
    [
        (
            "learning_rate",
            0.1,
            r"solver=Gradient\(learning_rate=…\) or Mixture\(learning_rate=…\), with",
        ),
        ("covariance", "tied", r"solver=Likelihood\(covariance=…\)"),
        ("rank", 2, r"solver=Likelihood\(rank=…\) or Gradient\(rank=…\)"),
        ("combine", "best", r"solver=Auto\(combine=…\)"),
        ("then", None, r"solver=Refined\(then=…\)"),
    ],
)
def test_a_parameter_of_a_solver_is_told_where_it_went(kind, name, value, written):
    message = f"{name} is a parameter of the solver, not of {kind.__name__}: write {written}"
    with pytest.raises(TypeError, match=message):
        kind(**{name: value})
    with pytest.raises(TypeError, match=message):
        kind.preset("paper").__class__(2, solver="gradient", **{name: value})


@pytest.mark.parametrize("kind", [DiagAttRegressor, DiagAttClassifier])
def test_every_parameter_of_every_solver_is_told_where_it_went(kind):
    for owner in SOLVERS.values():
        for name in owner.rules:
            with pytest.raises(TypeError, match=rf"{owner.__name__}\({name}=…\)"):
                kind(**{name: None})
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        kind(colour="red")


# ---------------------------------------------------------------------- refusals


REFUSED = {
    "rank": (Gradient(rank=5), r"rank must lie between 1 and 4, got 5\."),
    "dropout": (Gradient(optimizer="lbfgs", row_dropout=0.1), "'lbfgs' takes no row_dropout"),
    "inside": (Refined(then=Gradient(rank=9)), "rank must lie between 1 and 4, got 9"),
    "contestant": (Auto([Uniform(), Gradient(rank=7)]), "rank must lie between 1 and 4, got 7"),
}


@pytest.fixture
def no_fit(monkeypatch):
    """Any fit fails the test."""

    def fit(self, *arguments, **options):
        pytest.fail(f"{self!r} was asked to fit")

    for kind in SOLVERS.values():
        monkeypatch.setattr(kind, "fit", fit)


@pytest.mark.usefixtures("no_fit")
@pytest.mark.parametrize("n_heads", [1, [1, 2], "auto"], ids=str)
@pytest.mark.parametrize("case", REFUSED)
def test_refusals_come_before_any_work(case, n_heads):
    solver, reason = REFUSED[case]
    X, y = ragged()
    with pytest.raises(ValueError, match=reason):
        DiagAttRegressor(n_heads, solver=solver).fit(X, y)
    assert "fit" not in vars(solver)


@pytest.mark.usefixtures("no_fit", "nothing_is_read_whole")
@pytest.mark.parametrize("n_heads", [1, [1, 2]], ids=str)
def test_a_store_is_refused_before_parts_of_it_are_fitted(store, n_heads):
    model = DiagAttRegressor(n_heads, solver=Gradient(optimizer="lbfgs"))
    with pytest.raises(ValueError, match="'lbfgs' needs all rows in memory"):
        model.fit(store)


def test_solvers_that_can_serve_refuse_nothing():
    problem = make_problem()
    for solver in [Gradient(rank=4), *(kind() for kind in SOLVERS.values())]:
        assert solver.refuse(problem, Model(2)) is None


# ---------------------------------------------------------------------- a user's own


@pytest.fixture
def largest_row():
    """A solver that attends to the row of largest first feature; forgotten after the test."""
    before = dict(SOLVERS)

    class LargestRow(Solver):
        name = "largest_row"

        def __init__(self, slope=10.0):
            self.slope = slope

        def refuse(self, problem, model):
            return "LargestRow has one head." if model.n_heads > 1 else None

        def fit(self, problem, model, *, seed, start=None, checkpoint=None, verbose=False):
            fitted = Uniform().fit(problem, model)
            with torch.no_grad():
                fitted.module.query_key.matrix()[:, 0, -1] = self.slope
            return Fitted(fitted.module, self, [[{"seed": seed}]], state={"slope": self.slope})

    yield LargestRow
    SOLVERS.clear()
    SOLVERS.update(before)


def test_a_users_own_solver_needs_one_class(largest_row):
    X, y = ragged()
    for solver in ("largest_row", largest_row()):
        model = DiagAttRegressor(solver=solver, random_state=0).fit(X, y)
        assert model.solver_ == "largest_row"
        np.testing.assert_array_equal(model.locate(X)[:, 0], [x[:, 0].argmax() for x in X])
    model.set_params(solver__slope=0.0).fit(X, y)
    np.testing.assert_allclose(np.concatenate(model.attention(X))[: len(X[0])], 1 / len(X[0]))


def test_every_count_of_heads_is_asked_before_any_is_fitted(largest_row, monkeypatch):
    X, y = ragged()
    monkeypatch.setattr(largest_row, "fit", lambda *_, **__: pytest.fail("a fit was started"))
    with pytest.raises(ValueError, match="LargestRow has one head"):
        DiagAttRegressor([1, 2], solver=largest_row()).fit(X, y)


# ---------------------------------------------------------------------- starting from a fit


@pytest.mark.parametrize("temperature", [1.0, 50.0])
def test_a_copied_start_attends_like_the_fit_at_any_temperature(temperature):
    problem, generator = make_problem(), torch.Generator().manual_seed(0)
    source, target = (Model(2).module(problem, temperature=tau) for tau in (2.0, temperature))
    source.reset_parameters(3.0, generator)
    with torch.no_grad():
        source.value.copy_(torch.randn(source.value.shape, generator=generator))
        copy_parameters(source, target)
        here, there = (module(problem.values, problem.offsets) for module in (source, target))
    assert_equal_up_to_rounding(there, here)


def test_a_solver_without_fit_cannot_be_made():
    class Unfinished(Solver):
        pass

    with pytest.raises(TypeError, match="fit"):
        Unfinished()
