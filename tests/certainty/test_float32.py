"""Predictions out of fold of samples in float32, which the contest computes in float64."""

import numpy as np
import pytest

from diagatt import DiagAttRegressor, simulate
from diagatt.solvers import Auto, Likelihood, Uniform


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_contest_calibrates_in_the_type_of_the_rows(dtype):
    data = simulate.regression(80, p=4, d=2, mu=(3,), sigma2=(3,), seed=0, dtype=dtype)
    contest = Auto([Uniform(), Likelihood()])
    model = DiagAttRegressor(solver=contest, random_state=0).fit(data.X, data.y)
    assert model.row_temperature_ > 0
    ends = model.predict_interval(data.X)
    assert ((ends[:, 0] <= data.y) & (data.y <= ends[:, 1])).mean() > 0.8
    assert model.certainty(data.X).posterior.dtype == dtype
