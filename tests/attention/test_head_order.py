"""Heads of several fits in one order."""

import itertools

import numpy as np
import pytest
import torch

from diagatt import DiagAttRegressor, DiagonalAttention
from diagatt.attention.blend import Blend, Member, matching_order, with_heads_in_order
from diagatt.attention.sample_features import SampleFeatures
from diagatt.families import get_family
from diagatt.rowmaps import ROW_MAPS
from diagatt.solvers import Auto, Likelihood, Mixture

ROWS = torch.randn(40, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
OFFSETS = torch.tensor([0, 7, 11, 23, 40])


def attention(seed, n_heads=3, **how):
    module = DiagonalAttention(3, n_heads, score_form="affine", **how).double()
    generator = torch.Generator().manual_seed(seed)
    module.reset_parameters(2.0, generator)
    with torch.no_grad():
        module.value.normal_(generator=generator)
    return module


def member(module, vote):
    rows = ROW_MAPS["unit"].fitted_to(ROWS, torch.ones(len(ROWS)).double(), 60)
    features = SampleFeatures.fitted_to((), ROWS, OFFSETS, torch.ones(4).double(), None)
    return Member(module, rows, features, vote, vote)


@pytest.mark.parametrize("seed", range(3))
def test_the_order_has_the_largest_overlap(seed):
    overlap = torch.rand(4, 4, generator=torch.Generator().manual_seed(seed))
    best = max(
        itertools.permutations(range(4)), key=lambda order: overlap[range(4), list(order)].sum()
    )
    assert matching_order(overlap) == list(best)


@pytest.mark.parametrize(
    "how", [{}, {"coupling": "distinct"}, {"parameterization": "factored", "rank": 1}]
)
def test_the_order_of_heads_changes_no_prediction(how):
    module, order = attention(0, **how), [2, 0, 1]
    other = with_heads_in_order(module, order)
    torch.testing.assert_close(other(ROWS, OFFSETS), module(ROWS, OFFSETS))
    torch.testing.assert_close(
        other.attention(ROWS, OFFSETS), module.attention(ROWS, OFFSETS)[:, order]
    )


def test_members_of_a_blend_agree_whatever_the_order_of_their_heads():
    module = attention(1)
    blend = Blend(
        [member(module, 0.6), member(with_heads_in_order(module, [1, 2, 0]), 0.4)],
        get_family("gaussian"),
    )
    alone = Blend([member(module, 1.0)], get_family("gaussian")).attention(ROWS, OFFSETS)
    predicted = blend(ROWS, OFFSETS)
    blend.align_heads(ROWS, OFFSETS)
    torch.testing.assert_close(blend.attention(ROWS, OFFSETS), alone)
    torch.testing.assert_close(blend(ROWS, OFFSETS), predicted)
    blend.align_heads(ROWS, OFFSETS, like=alone[:, [2, 1, 0]])
    torch.testing.assert_close(blend.attention(ROWS, OFFSETS), alone[:, [2, 1, 0]])


def test_the_default_locates_the_rows_of_the_heads_that_it_describes():
    """Of two equal fits, the heads of the blend are those whose coefficients are reported."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 6, 3))
    place = np.array([rng.permutation(6)[:2] for _ in range(150)])
    line = np.arange(150)
    X[line, place[:, 0], 0] += 5
    X[line, place[:, 1], 1] += 5
    y = 2 * X[line, place[:, 0], 2] - X[line, place[:, 1], 2] + 0.1 * rng.standard_normal(150)
    contestants = [Likelihood(), Mixture()]
    model = DiagAttRegressor(n_heads=2, solver=Auto(contestants), random_state=0).fit(X, y)
    found = model.locate(X)
    first = int(model.value_[0, 2] < 1)  # the head of place[:, 0] has coefficient 2
    assert np.mean(found[:, first] == place[:, 0]) > 0.95
    assert np.mean(found[:, 1 - first] == place[:, 1]) > 0.95
