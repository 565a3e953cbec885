"""Estimators from flat options: what belongs to the solver goes to the solver."""

from diagatt import DiagAttClassifier, DiagAttRegressor
from diagatt.solvers import SOLVERS


def regressor(n_heads=1, **options):
    """Make a regressor: ``regressor(2, solver="gradient", max_epochs=3, ridge=0.5)``."""
    return estimator(DiagAttRegressor, n_heads=n_heads, **options)


def classifier(n_heads=1, **options):
    """Make a classifier of the same options."""
    return estimator(DiagAttClassifier, n_heads=n_heads, **options)


def estimator(kind, solver="auto", **options):
    """Split options into those of the solver, which its rules name, and those of the estimator."""
    own = {name: options.pop(name) for name in SOLVERS[solver].rules if name in options}
    return kind(solver=SOLVERS[solver](**own) if own else solver, **options)
