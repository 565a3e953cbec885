"""Parameters that make no sense are refused, and those of a population stay as they are."""

import numpy as np
import pytest

from diagatt import simulate


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "n must be a positive int"),
        ({"p": 0}, "p must be a positive int"),
        ({"p": (5, 3)}, r"\(low, high\) range"),
        ({"d": 0}, "d must be a positive int"),
        ({"p": 2, "s": 3}, "at most the count of rows"),
        ({"s": 0}, "one per kind of active row|at least 1"),
        ({"mu": (1, 2, 3), "s": 2}, "mu must be one number or 2"),
        ({"sigma2": 0.0}, "sigma2 must be positive"),
        ({"rho": 1.0}, "rho must lie in"),
        ({"noise": -1}, "noise must be 0 or more"),
        ({"covariance": np.eye(3)}, r"covariance must have shape \(2, 2\)"),
        ({"covariance": [[1, 2], [2, 1]]}, "positive definite"),
        ({"covariance": [[1, 0.5], [0, 1]]}, "symmetric"),
        ({"beta": np.ones(3)}, r"beta must have shape \(1, 2\)"),
        ({"beta": [np.nan, 1]}, "beta contains NaN"),
        ({"center": np.ones(3)}, r"center must have shape \(2,\)"),
        ({"degrees_of_freedom": 2}, "must exceed 2"),
        ({"dtype": np.int64}, "dtype must be float32 or float64"),
    ],
)
def test_errors_say_what_is_wrong(options, message):
    with pytest.raises(ValueError, match=message):
        simulate.regression(**{"n": 3, "p": 4, "d": 2, **options})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: simulate.classification(3, pi=1.0), "pi must lie strictly"),
        (lambda: simulate.classification(3, mu=(1, 2, 3)), "mu must be one number or 2"),
        (lambda: simulate.ar1(3, 1.0), "strictly between -1 and 1"),
        (lambda: simulate.paper_setting("table9"), "unknown setting 'table9'"),
        (lambda: simulate.paper_settings("table9"), "unknown table 'table9'"),
        (
            lambda: simulate.regression(3, p=4, d=2, s=2, rho=0.1).oracle(),
            "several active rows that are correlated",
        ),
        (
            lambda: simulate.regression(3, p=4, d=2, rho=0.1, degrees_of_freedom=5).oracle(),
            "t rows that are correlated",
        ),
    ],
)
def test_other_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_parameters_cannot_be_changed():
    data = simulate.regression(3, p=4, d=2)
    with pytest.raises(AttributeError):
        data.parameters.rho = 0.5
    with pytest.raises(ValueError, match="read-only"):
        data.parameters.beta[0, 0] = 1.0
    assert len(repr(data)) < 400
