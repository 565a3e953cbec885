"""Solvers: ways to fit diagonalized attention.

A solver is an object with parameters of its own, `Gradient(rank=2)`, so that `clone`, `repr` and a
grid search over ``solver__rank`` work; the names "auto", "likelihood", "gradient" … stand for
solvers with default parameters.
"""

from diagatt.solvers.auto import Auto
from diagatt.solvers.base import SOLVERS, Fitted, Model, Solver, get_solver, with_solver
from diagatt.solvers.checkpoint import Checkpoint
from diagatt.solvers.gradient import Gradient, Refined
from diagatt.solvers.likelihood import Likelihood
from diagatt.solvers.mixture import Mixture
from diagatt.solvers.uniform import Uniform

__all__ = [
    "SOLVERS",
    "Auto",
    "Checkpoint",
    "Fitted",
    "Gradient",
    "Likelihood",
    "Mixture",
    "Model",
    "Refined",
    "Solver",
    "Uniform",
    "get_solver",
    "with_solver",
]
