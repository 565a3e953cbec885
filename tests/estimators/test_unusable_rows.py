"""New samples with NaN, infinity or too large entries are refused by every solver's model."""

import numpy as np
import pytest

from diagatt import DiagAttClassifier
from diagatt.arrays import InputError


@pytest.fixture(scope="module", params=["likelihood", "gradient", "mixture", "auto"])
def model(request):
    """Fit a model with each solver."""
    rng = np.random.default_rng(0)
    X = [rng.standard_normal((4, 3)) for _ in range(30)]
    return DiagAttClassifier(solver=request.param, random_state=0).fit(X, np.arange(30) % 2)


@pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")
@pytest.mark.parametrize("method", ["predict", "predict_proba", "locate", "attention", "scores"])
@pytest.mark.parametrize("entry", [np.nan, np.inf, -np.inf, 1e300])
def test_unusable_entries_are_refused_by_name(model, method, entry):
    Z = np.zeros((3, 4, 3))
    Z[1, 2, 1] = entry  # a score of minus infinity would take the row out of sight
    with pytest.raises(InputError, match="sample 1, row 2"):
        getattr(model, method)(Z)
