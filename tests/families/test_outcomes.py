"""Several outcomes: sums of what each outcome's own family says."""

import numpy as np
import pytest
import torch
from torch.autograd.functional import hessian, jacobian

from diagatt.families import Outcomes, get_family
from diagatt.families.outcomes import ALLOWED

N, COUNT = 9, 3


def example(name):
    rng = np.random.default_rng(0)
    draws = {
        "gaussian": rng.normal(size=(N, COUNT)),
        "poisson": rng.poisson(2.0, (N, COUNT)),
        "gamma": rng.gamma(2.0, size=(N, COUNT)),
        "bernoulli": rng.integers(2, size=(N, COUNT)),
    }
    y = torch.from_numpy(draws[name].astype(np.float64))
    return Outcomes(get_family(name), COUNT), y, torch.from_numpy(rng.normal(size=(N, COUNT)))


@pytest.mark.parametrize("name", [kind.name for kind in ALLOWED])
def test_derivatives_are_those_of_the_summed_loss(name):
    family, y, z = example(name)
    for i in range(N):

        def loss(zi, i=i):
            return family.loss(y[i : i + 1], zi[None])[0]

        torch.testing.assert_close(family.gradient(y, z)[i], jacobian(loss, z[i]))
        torch.testing.assert_close(family.curvature(y, z)[i], hessian(loss, z[i]))


@pytest.mark.parametrize("name", [kind.name for kind in ALLOWED])
def test_everything_is_a_sum_over_outcomes(name):
    family, y, z = example(name)
    own = [(y[:, k], z[:, k : k + 1]) for k in range(COUNT)]
    each = family.each
    phi = 0.7 if each.has_dispersion else 1.0
    density = sum(each.log_density(a, b, phi) for a, b in own)
    torch.testing.assert_close(family.log_density(y, z, phi), density)
    torch.testing.assert_close(family.deviance(y, z), sum(each.deviance(a, b) for a, b in own))
    units = torch.stack([each.unit_dispersion(a, b) for a, b in own]).mean(dim=0)
    torch.testing.assert_close(family.unit_dispersion(y, z), units)
    offsets, log_p = torch.tensor([0, 4, N]), torch.full((N,), 0.25).double().log()
    mixed = torch.cat([each.mixed_predictor(log_p, b, offsets) for _, b in own], dim=1)
    torch.testing.assert_close(family.mixed_predictor(log_p, z, offsets), mixed)
    torch.testing.assert_close(family.link(family.inverse_link(z)), z)
    weights = torch.rand(N, 2, dtype=torch.float64)
    null = torch.cat([each.null_predictor(a, weights) for a, _ in own], dim=1)
    torch.testing.assert_close(family.null_predictor(y, weights), null)


def test_densities_are_those_of_outcomes_in_their_own_units():
    family, y, z = example("gaussian")
    units = torch.tensor([0.5, 2.0, 10.0]).double()
    scaled = family.with_units(units)
    each = torch.distributions.Normal(z * units, 0.7**0.5 * units)
    found = scaled.log_density(y, z, 0.7)
    torch.testing.assert_close(found, each.log_prob(y * units).sum(dim=1))


def test_one_wrong_outcome_makes_a_response_invalid():
    family, y, _ = example("poisson")
    y[4, 1] = -1
    assert torch.nonzero(~family.is_valid(y)).tolist() == [[4]]


def test_families_with_a_shape_are_refused():
    with pytest.raises(ValueError, match="not for 'huber': fit every outcome by itself"):
        Outcomes(get_family("huber"), 2)
