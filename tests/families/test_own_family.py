"""A family of one's own is one class: it registers itself, fits and predicts."""

import math

import numpy as np
import pytest
import torch

from diagatt.families import FAMILIES, Family, get_family
from tests.models import regressor
from tests.solvers.samples import ragged

pytestmark = pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")


@pytest.fixture
def log_normal():
    """log y is normal with mean z; forgotten after the test."""
    before = dict(FAMILIES)

    class LogNormal(Family):
        name = "log_normal"
        response_range = "positive"
        is_quadratic = True
        has_dispersion = True
        curvature_bound = 1.0
        prefers_bound = True

        def inverse_link(self, z):
            return torch.exp(z)

        def link(self, mean):
            return torch.log(mean)

        def loss(self, y, z):
            return 0.5 * (y.log() - z[:, 0]) ** 2

        def gradient(self, y, z):
            return z - y.log()[:, None]

        def curvature(self, y, z):
            return torch.ones_like(z)[:, :, None]

        def scale(self, y, weights):
            return get_family("gaussian").scale(y.log(), weights)

        def unit_dispersion(self, y, z):
            return (y.log() - z[:, 0]) ** 2

        def initial_dispersion(self, scale):
            return 0.5 * scale

        def log_normalizer(self, y, phi):
            spread = 2 * math.pi * torch.as_tensor(phi, dtype=torch.float64)
            return (-0.5 * spread.log()).to(y.dtype) - y.log()

        def is_valid(self, y):
            return torch.isfinite(y) & (y > 0)

    yield LogNormal
    FAMILIES.clear()
    FAMILIES.update(before)


@pytest.mark.usefixtures("log_normal")
@pytest.mark.parametrize(
    "options",
    [
        {"solver": "likelihood"},
        {"solver": "likelihood", "n_heads": 2},
        {"solver": "gradient", "optimizer": "adam", "max_epochs": 3},
        {"solver": "uniform"},
    ],
    ids=str,
)
def test_a_family_of_ones_own_is_fitted_by_every_solver(options):
    """It is the gaussian family of log y, so that this says what to find."""
    X, z = ragged(n=60)
    ours = regressor(family="log_normal", random_state=0, **options).fit(X, np.exp(z))
    gaussian = regressor(random_state=0, **options).fit(X, z)
    np.testing.assert_allclose(ours.predict(X), np.exp(gaussian.predict(X)), rtol=1e-6)
    np.testing.assert_array_equal(ours.locate(X), gaussian.locate(X))
    assert ours.solver_ == gaussian.solver_
    difference = ours.criteria_[0]["log_likelihood"] - gaussian.criteria_[0]["log_likelihood"]
    assert difference == pytest.approx(-z.sum(), rel=1e-6)


def test_it_is_known_by_its_name_and_refuses_what_it_cannot_produce(log_normal):
    assert isinstance(get_family("log_normal"), log_normal)
    X, z = ragged(n=60)
    with pytest.raises(ValueError, match=r"outside the range of the log_normal family \(positive"):
        regressor(family="log_normal").fit(X, -np.exp(z))


def test_a_class_without_a_name_is_not_registered():
    before = dict(FAMILIES)

    class Base(Family):
        pass

    assert before == FAMILIES


@pytest.mark.slow
@pytest.mark.usefixtures("log_normal")
@pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")
def test_a_family_of_ones_own_takes_part_in_the_default():
    """The contest knows no units of such a response, so that penalties differ a little."""
    X, z = ragged(n=60)
    ours = regressor(family="log_normal", random_state=0).fit(X, np.exp(z))
    gaussian = regressor(random_state=0).fit(X, z)
    assert np.corrcoef(np.log(ours.predict(X)), gaussian.predict(X))[0, 1] > 0.9
