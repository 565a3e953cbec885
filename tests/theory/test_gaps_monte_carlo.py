"""Every stated gap against simulated rows, Gaussian and Student t: within 4 standard errors."""

from __future__ import annotations

import numpy as np
import pytest

from diagatt.theory import (
    Moments,
    envelope,
    expected_score,
    multi_head_envelope_separators,
    multi_head_separators,
    multi_head_subspace_separators,
    score_gap,
    second_moment_separator,
    single_head_envelope_separator,
    single_head_separator,
    single_head_subspace_separator,
)
from tests.theory.draws import above, blocks, sample_rows, spd

N = 20_000
DF = 9.0  # Student t with a fourth moment to spare: standard errors can be trusted


def simulated_gap(rng, W, active, rival, df):
    """Difference of mean scores of fresh rows, and its standard error."""
    scores = [
        np.einsum("ij,ij->i", x @ W, x)
        for x in (sample_rows(rng, row, N, df) for row in (active, rival))
    ]
    error = np.sqrt(sum(z.var(ddof=1) / N for z in scores))
    return scores[0].mean() - scores[1].mean(), error


def agrees(rng, W, active, rival, stated, exact, df):
    seen, error = simulated_gap(rng, W, active, rival, df)
    assert seen >= stated - 4 * error
    if exact:
        assert seen <= stated + 4 * error


@pytest.fixture(params=[None, DF], ids=["gaussian", "student-t"])
def df(request):
    return request.param


def test_single_head_gaps(df):
    rng = np.random.default_rng(10)
    background = Moments(8 * rng.standard_normal(12), spd(rng, 12))
    active = above(rng, background, mean_scale=4.0)
    full = single_head_separator(active, background, tau=2.0)
    agrees(rng, full.W, active, background, full.gap, True, df)
    basis = np.linalg.qr(rng.standard_normal((12, 7)))[0]
    part = single_head_subspace_separator(active, background, basis, tau=0.7)
    agrees(rng, part.W, active, background, part.gap, True, df)


def test_heterogeneous_gaps(df):
    rng = np.random.default_rng(11)
    means = rng.standard_normal((3, 10))
    kinds = [Moments(mean, spd(rng, 10)) for mean in means]
    upper = envelope([row.second_moment for row in kinds])
    active = Moments(rng.standard_normal(10), upper + spd(rng, 10))
    by_moment = second_moment_separator(active, upper)
    cover = envelope([row.covariance for row in kinds])
    spanned = single_head_envelope_separator(active, cover, list(means))
    for row in kinds:
        for found in (by_moment, spanned):
            agrees(rng, found.W, active, row, found.gap, False, df)
            agrees(rng, found.W, active, row, score_gap(found.W, active, [row]), True, df)


@pytest.mark.parametrize("version", ["full", "envelope", "subspace"])
def test_multi_head_gaps(df, version):
    rng = np.random.default_rng(12)
    classes, background = blocks(rng, 3, 8, mean_scale=8.0)
    if version == "full":
        found = multi_head_separators(classes, background, tau=1.5, d_star=4)
    elif version == "envelope":
        cover = 1.1 * background.covariance
        classes = [Moments(c.mean, c.covariance + 0.1 * background.covariance) for c in classes]
        found = multi_head_envelope_separators(classes, cover, [background.mean], tau=1.5, d_star=4)
    else:
        bases = [np.linalg.qr(rng.standard_normal((24, 20)))[0] for _ in classes]
        found = multi_head_subspace_separators(classes, background, bases, tau=1.5, d_star=2)
    for k, head in enumerate(found.heads):
        exact = head.background_exact
        agrees(rng, head.W, classes[k], background, head.background_gap, exact, df)
        for j, rival in enumerate(classes):
            if j != k:
                agrees(rng, head.W, classes[k], rival, head.signal_gap_bound, False, df)
        strongest = max(
            (c for j, c in enumerate(classes) if j != k), key=lambda c: expected_score(head.W, c)
        )
        agrees(rng, head.W, classes[k], strongest, head.signal_gap, True, df)
