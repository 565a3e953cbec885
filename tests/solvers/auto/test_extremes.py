"""Attention to the row where a feature is extreme."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from diagatt import DiagAttRegressor, RaggedRows
from diagatt.solvers.auto.contest import Preparation, fit_alone, fit_contestants
from diagatt.solvers.auto.contestants import Extreme, extreme_contestants
from diagatt.solvers.auto.extremes import SHARPNESS, extreme_rows
from diagatt.solvers.base import Model
from tests.solvers.auto.samples import problem

FAMILIES = ["gaussian", "bernoulli", "multinomial", "poisson"]


def far_apart(samples):
    """Samples whose entries of a feature differ by so much that one row has all attention."""
    order = samples.values.argsort(dim=0).argsort(dim=0)
    return replace(samples, values=order.to(samples.values) / 10)


def largest_rows(samples, extreme):
    """The row of each sample where the feature is largest, or smallest."""
    parts = samples.values.split(samples.offsets.diff().tolist())
    places = [int((extreme.sign * part[:, extreme.column]).argmax()) for part in parts]
    return torch.stack([part[j] for part, j in zip(parts, places, strict=True)])


@given(seed=st.integers(0, 10**6), column=st.integers(0, 1), sign=st.sampled_from([1, -1]))
def test_rows_are_those_of_brute_force(seed, column, sign):
    samples, extreme = far_apart(problem(seed=seed)), Extreme(column, column, sign)
    (found,) = extreme_rows(samples, [extreme])
    torch.testing.assert_close(found, largest_rows(samples, extreme))


@pytest.mark.parametrize("family", FAMILIES)
def test_fits_are_those_to_samples_of_one_row(family):
    samples = problem(family, q=1)
    contestants = extreme_contestants("unit", [0, 1])
    preparation = Preparation(samples, torch.float64)
    prepared = preparation.of(contestants[0])
    prepared = replace(prepared, samples=far_apart(prepared.samples))
    weights = samples.weights[:, None].expand(-1, len(contestants))
    fits = fit_contestants(contestants, prepared, weights, Model(), 0)
    for contestant, fitted in zip(contestants, fits, strict=True):
        rows = largest_rows(prepared.samples, contestant.extreme)
        offsets = torch.arange(len(rows) + 1)
        short = replace(prepared, samples=replace(prepared.samples, values=rows, offsets=offsets))
        plain = replace(contestant, extreme=None)
        (alone,) = fit_contestants([plain], short, samples.weights[:, None], Model(), 0)
        torch.testing.assert_close(fitted.module.value, alone.module.value, rtol=1e-4, atol=1e-5)
        found = fitted.module(prepared.samples.values, prepared.samples.offsets, samples.covariates)
        expected = alone.module(rows, offsets, samples.covariates)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_equal_entries_share_the_attention():
    samples = problem(shortest=3, longest=3)
    samples.values[:, 0] = torch.tensor([1.0, 2.0, 2.0]).repeat(samples.n_samples)
    (contestant, _) = extreme_contestants("given", [0])
    fitted = fit_alone(contestant, samples, Model(), 0)
    attention = fitted.module.attention(samples.values, samples.offsets)[:, 0]
    torch.testing.assert_close(
        attention.reshape(-1, 3)[0], torch.tensor([0.0, 0.5, 0.5]).to(attention)
    )
    assert float(fitted.module.query_key.matrix().detach().abs().max()) == pytest.approx(
        SHARPNESS * 2**0.5 / 2
    )


@pytest.mark.slow
def test_the_default_finds_the_last_visit():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(rng.integers(2, 9), 3)) for _ in range(120)]
    for sample in X:
        sample[:, 0] = rng.permutation(np.sort(rng.uniform(0, 10, len(sample))))
    last = np.array([sample[:, 0].argmax() for sample in X])
    y = np.array([2 * x[j, 1] - x[j, 2] for x, j in zip(X, last, strict=True)])
    lengths = [len(sample) for sample in X]
    names = ["day", "pulse", "sugar"]
    rows = RaggedRows(np.concatenate(X), np.cumsum([0, *lengths]), names)
    model = DiagAttRegressor(random_state=0).fit(rows, y + rng.normal(size=len(y)))
    assert model.has_row_of_interest_
    assert (model.locate(rows).ravel() == last).mean() > 0.97
    assert any("largest day" in line["what"] and line["weight"] > 0 for line in model.report_)
