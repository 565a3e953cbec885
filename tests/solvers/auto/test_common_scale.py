"""A scale that features share depends on their units: it is used only where it clearly helps."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from diagatt import DiagAttClassifier
from diagatt.solvers import Auto

pytestmark = pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")


def bags_of_components(n=100, p=6, seed=0):
    """Half of the bags hold a nine. The first components of digits vary most and matter most."""
    rng = np.random.default_rng(seed)
    pixels, digits = load_digits(return_X_y=True)
    components = PCA(30, svd_solver="full").fit_transform(pixels)
    y = rng.permutation(np.arange(n) % 2)
    chosen = rng.choice(np.flatnonzero(digits != 9), size=(n, p))
    chosen[y == 1, 0] = rng.choice(np.flatnonzero(digits == 9), size=(y == 1).sum())
    return components[chosen], y


@pytest.mark.slow
@pytest.mark.parametrize("units", ["the same", "of each feature"])
def test_a_common_scale_stays_only_if_it_is_clearly_better(units):
    X, y = bags_of_components()
    if units == "of each feature":  # then one scale for all says nothing
        X = X * 10.0 ** np.random.default_rng(1).uniform(-3, 3, X.shape[2])
    contest = DiagAttClassifier(solver=Auto(folds=3), random_state=0).fit(X, y).contest_
    of_common = [line for line in contest if line["what"].startswith("common")]
    assert of_common
    if units == "of each feature":
        assert all(line["log_score"] is None and line["weight"] == 0 for line in of_common)
    else:
        assert contest[0] in of_common  # lines come from the best to the worst
        assert sum(line["weight"] for line in of_common) > 0.5
