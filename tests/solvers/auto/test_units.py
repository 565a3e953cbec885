"""Units of a gaussian response: undone, a fit is that of the original units."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from diagatt.solvers import Auto, Likelihood, Uniform
from diagatt.solvers.auto.units import ResponseUnits
from diagatt.solvers.base import Model
from tests.solvers.auto.samples import problem

MEAN, SCALE = -40.0, 250.0


def original(q=2, n=24, weights=None):
    """A problem whose response has units of its own."""
    samples = problem("gaussian", n, q=q, weights=weights)
    return replace(samples, y=MEAN + SCALE * samples.y)


def both_ways(solver):
    """The fit in the contestants' units, undone, and the fit in the original units."""
    samples = original()
    units = ResponseUnits.of(samples)
    fitted = solver.fit(units.scaled(samples), Model(), seed=0)
    direct = solver.fit(samples, Model(), seed=0)
    return units.undone(fitted, samples.total_weight), direct, samples


def test_units_are_weighted_mean_and_spread():
    w = np.array([1.0, 3.0] * 12)
    samples = original(weights=w)
    y = samples.y.numpy()
    units = ResponseUnits.of(samples)
    mean = np.average(y, weights=w)
    assert units.mean == pytest.approx(mean)
    assert units.scale == pytest.approx(np.sqrt(np.average((y - mean) ** 2, weights=w)))
    scaled = units.scaled(samples).y.numpy()
    np.testing.assert_allclose(units.mean + units.scale * scaled, y, rtol=1e-12)


@pytest.mark.parametrize("family", ["bernoulli", "multinomial", "poisson"])
def test_other_families_have_no_units(family):
    samples = problem(family)
    units = ResponseUnits.of(samples)
    assert units == ResponseUnits()
    assert units.scaled(samples) is samples


def test_a_constant_response_stays_finite():
    samples = problem("gaussian")
    samples = replace(samples, y=torch.full_like(samples.y, 7.0))
    units = ResponseUnits.of(samples)
    assert (units.mean, units.scale) == (7.0, 1.0)


@pytest.mark.parametrize("solver", [Uniform(), Likelihood()], ids=["uniform", "likelihood"])
def test_undone_is_the_fit_in_original_units(solver):
    ours, direct, samples = both_ways(solver)
    given = (samples.values, samples.offsets, samples.covariates)
    with torch.no_grad():
        np.testing.assert_allclose(
            ours.module(*given), direct.module(*given), rtol=0, atol=1e-4 * SCALE
        )
        np.testing.assert_allclose(
            ours.module.covariate, direct.module.covariate, rtol=0, atol=1e-4 * SCALE
        )


def test_likelihood_dispersion_and_covariance_in_original_units():
    ours, direct, samples = both_ways(Likelihood())
    assert ours.log_likelihood == pytest.approx(direct.log_likelihood, abs=1e-2)
    far = ours.log_likelihood + samples.total_weight * math.log(SCALE)
    assert abs(far - direct.log_likelihood) > 10  # what forgetting the units would say
    assert ours.dispersion == pytest.approx(direct.dispersion, rel=1e-2)
    np.testing.assert_allclose(ours.value_se, direct.value_se, rtol=1e-2)


@pytest.mark.slow
def test_the_default_in_other_units_is_the_same_model():
    """Members, coefficients of covariates and the reported fit all follow the response."""
    samples = problem("gaussian", q=2)
    large = replace(samples, y=MEAN + SCALE * samples.y)
    fits = [Auto(folds=2).fit(given, Model(), seed=0) for given in (samples, large)]
    given = (samples.values, samples.offsets, samples.covariates)
    with torch.no_grad():
        for part in ("module", "blend"):
            small, big = (getattr(fitted, part)(*given) for fitted in fits)
            np.testing.assert_allclose(MEAN + SCALE * small, big, rtol=0, atol=1e-4 * SCALE)
    scores = [max(line["log_score"] for line in f.contest if line["log_score"]) for f in fits]
    assert scores[0] - math.log(SCALE) == pytest.approx(scores[1], abs=1e-4)
