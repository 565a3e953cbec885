"""Cox regression on pooled rows and on gated attention."""

import numpy as np
import pytest
from sklearn.base import clone

from diagatt import (
    DiagAttSurvival,
    GatedAttentionSurvival,
    PooledRegressor,
    PooledSurvival,
    simulate,
)


@pytest.fixture(scope="module")
def data():
    return simulate.survival(120, p=4, d=3, mu=(3,), sigma2=(4,), seed=0, dtype=np.float64)


def test_pooled_cox_is_cox_of_mean_rows(data):
    """The fit without attention, by the same partial likelihood and the same ridge."""
    model = PooledSurvival(ridge=2.0).fit(data.X, data.y)
    other = DiagAttSurvival(solver="uniform", ridge=2.0).fit(data.X, data.y)
    np.testing.assert_allclose(model.coef_[0], other.value_[0], atol=1e-7)
    at = data.y["time"][:5]
    ours, theirs = (
        m.predict_survival_function(data.X, return_array=True, times=at) for m in (model, other)
    )
    np.testing.assert_allclose(ours, theirs, atol=1e-7)
    assert model.score(data.X, data.y) == pytest.approx(other.score(data.X, data.y))
    curve = model.predict_survival_function(data.X[:1])[0]
    assert curve(0.0) == 1.0


def test_gated_cox_learns_tunes_and_is_saved(data, tmp_path):
    model = GatedAttentionSurvival(n_hidden=4, ridge=[0.1, 10.0], random_state=0)
    model.fit(data.X, data.y)
    assert model.score(data.X, data.y) > PooledSurvival().fit(data.X, data.y).score(data.X, data.y)
    assert len(model.selection_) == 2
    model.save(tmp_path / "m.safetensors")
    again = GatedAttentionSurvival.load(tmp_path / "m.safetensors")
    assert np.array_equal(again.predict(data.X), model.predict(data.X))
    assert model.locate(data.X).shape[0] == 120
    assert clone(model).ridge == [0.1, 10.0]


def test_what_is_no_time_is_refused(data):
    with pytest.raises(ValueError, match="times to an event are"):
        PooledSurvival().fit(data.X, np.arange(120.0))
    with pytest.raises(ValueError, match="is Cox regression, not family 'weibull'"):
        GatedAttentionSurvival(family="weibull").fit(data.X, data.y)
    none = {"time": data.y["time"], "event": np.zeros(120, dtype=bool)}
    with pytest.raises(ValueError, match="no event was observed"):
        PooledSurvival().fit(data.X, none)
    assert "coef_" in vars(PooledRegressor().fit(data.X, data.y["time"]))
