"""Where EM begins."""

import numpy as np

from diagatt import simulate
from diagatt.scores import get_score_form
from diagatt.solvers.likelihood.starts import best_start
from tests.solvers.likelihood.latent_rows import em_settings
from tests.solvers.samples import problem_of


def test_starts_are_all_tried():
    data = simulate.regression(200, p=5, d=3, mu=(3.0,), sigma2=(3.0,), seed=0)
    setting = (get_score_form("affine"), True, em_settings(), 1, np.random.default_rng(0))
    _, report = best_start(problem_of(data.X, data.y), *setting)
    assert {line["start"] for line in report} >= {"response", "outlier", "random"}
