"""Members with linear scores: fewer directions, and the same model."""

import numpy as np
import pytest
import torch

from diagatt import DiagonalAttention
from diagatt.attention import pullback
from diagatt.attention.blend import Member
from diagatt.attention.pullback import narrowed
from diagatt.attention.sample_features import SampleFeatures
from diagatt.rowmaps import ROW_MAPS
from tests.attention.samples import offsets_of

LENGTHS = [3, 2, 5, 4]
NO_FEATURES = SampleFeatures((), torch.zeros(0), torch.ones(0))


@pytest.fixture(autouse=True)
def _any_width(monkeypatch):
    monkeypatch.setattr(pullback, "MOST_FULL", 4)
    monkeypatch.setattr(ROW_MAPS["wide"], "whole", 10)


def member(quadratic=0.0, n_outputs=1, **how):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(sum(LENGTHS), 30, generator=generator).double()
    rows = ROW_MAPS["wide"].fitted_to(x)
    d = rows.n_dimensions
    attention = DiagonalAttention(d, 1, n_outputs, score_form="affine", **how).double()
    with torch.no_grad():
        for parameter in attention.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
        attention.query_key.weight[:, :d, :d] *= quadratic
    return Member(attention, rows, NO_FEATURES, 0.7, 0.3), x


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("readout", ["pooled", "mixture"])
def test_predictions_and_attention_stay(n_outputs, readout):
    how = {"family": "multinomial" if n_outputs > 1 else "bernoulli", "readout": readout}
    wide, x = member(n_outputs=n_outputs, temperature=1.3, **how)
    few, offsets = narrowed(wide), offsets_of(LENGTHS)
    assert (few.weight, few.vote) == (0.7, 0.3)
    assert few.rows.n_dimensions == few.attention.n_features == 1 + n_outputs
    with torch.no_grad():
        of_few, of_wide = (m(m.rows(x), offsets) for m in (few, wide))
        np.testing.assert_allclose(of_few, of_wide, rtol=1e-9)
        np.testing.assert_allclose(
            few.scores(few.rows(x), offsets), wide.scores(wide.rows(x), offsets), rtol=1e-9
        )


def test_quadratic_scores_see_all_dimensions():
    whole, _ = member(quadratic=1.0)
    assert narrowed(whole) is whole
