"""Arithmetic within samples equals a loop over samples."""

import itertools
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck

from diagatt import segments
from diagatt.panels import is_worth_it, panel_cuts
from diagatt.segments import (
    map_blocks,
    row_forms,
    sample_blocks,
    sample_of_row,
    segment_argmax,
    segment_logsumexp,
    segment_max,
    segment_mean,
    segment_softmax,
    segment_sum,
    spread,
    weighted_gram,
    weighted_pool,
)

quick = settings(max_examples=30)


def offsets_of(lengths):
    return torch.tensor([0, *np.cumsum(lengths)])


def parts(x, offsets):
    return [x[a:b] for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]


@st.composite
def packed(draw):
    """Scores (N, R), rows (N, d) and offsets of ragged samples, float32 or float64."""
    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=7))
    R, d = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    dtype = draw(st.sampled_from([torch.float32, torch.float64]))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**16)))
    N = sum(lengths)
    scores = 5 * torch.randn(N, R, generator=generator, dtype=torch.float64)
    values = torch.randn(N, d, generator=generator, dtype=torch.float64)
    return scores.to(dtype), values.to(dtype), offsets_of(lengths)


REDUCTIONS = {
    segment_sum: lambda part: part.sum(dim=0),
    segment_max: lambda part: part.amax(dim=0),
    segment_mean: lambda part: part.mean(dim=0),
    segment_argmax: lambda part: torch.from_numpy(part.numpy().argmax(axis=0)),
}


@pytest.mark.parametrize("reduce", REDUCTIONS, ids=lambda f: f.__name__)
@given(data=packed())
@quick
def test_a_reduction_equals_a_loop_over_samples(reduce, data):
    scores, _, offsets = data
    expected = torch.stack([REDUCTIONS[reduce](part) for part in parts(scores, offsets)])
    torch.testing.assert_close(reduce(scores, offsets), expected)


@given(data=packed())
@quick
def test_softmax_equals_a_loop_over_samples(data):
    scores, _, offsets = data
    expected = torch.cat([torch.softmax(part, dim=0) for part in parts(scores, offsets)])
    torch.testing.assert_close(segment_softmax(scores, offsets), expected)


@given(data=packed())
@quick
def test_pooled_rows_equal_a_loop_over_samples(data):
    weights, values, offsets = data
    pairs = zip(parts(weights, offsets), parts(values, offsets), strict=True)
    expected = torch.stack([w.T @ x for w, x in pairs])
    torch.testing.assert_close(weighted_pool(weights, values, offsets), expected)


@given(data=packed())
@quick
def test_spread_repeats_and_sample_of_row_counts(data):
    _, _, offsets = data
    lengths = offsets.diff().tolist()
    number = [i for i, p in enumerate(lengths) for _ in range(p)]
    assert sample_of_row(offsets).tolist() == number
    per_sample = torch.randn(len(lengths), 2)
    torch.testing.assert_close(spread(per_sample, offsets), per_sample[number], rtol=0, atol=0)


@given(data=packed(), block=st.integers(1, 9))
@quick
def test_forms_and_gram_equal_their_formulas_for_any_block_size(data, block):
    weights, values, _ = data
    R, d = weights.shape[1], values.shape[1]
    draw = torch.Generator().manual_seed(0)
    W = torch.randn(R, d, d, dtype=values.dtype, generator=draw)
    u = torch.randn(d, 3, dtype=values.dtype, generator=draw)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segments, "BLOCK_ROWS", block)
        (quadratic, effects), gram = row_forms(values, W, u), weighted_gram(values, weights)
    torch.testing.assert_close(quadratic, torch.einsum("ja,rab,jb->jr", values, W, values))
    torch.testing.assert_close(effects, values @ u)
    expected = torch.einsum("jr,ja,jb->rab", weights, values, values)
    torch.testing.assert_close(gram, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("d", [65, 70, 97, 128])
@pytest.mark.parametrize("R", [1, 3])
def test_forms_and_gram_of_many_wide_rows_equal_their_formulas(d, R):
    draw = torch.Generator().manual_seed(d)
    shapes = [(2100, d), (R, d, d), (d, 4), (2100, R)]
    values, W, u, weights = (
        torch.randn(*shape, dtype=torch.float64, generator=draw) for shape in shapes
    )
    assert is_worth_it(values)  # in panels, not as one product
    quadratic, effects = row_forms(values, W, u)  # W is not symmetric
    torch.testing.assert_close(quadratic, torch.einsum("ja,rab,jb->jr", values, W, values))
    torch.testing.assert_close(effects, values @ u)
    gram = weighted_gram(values, weights)
    torch.testing.assert_close(gram, torch.einsum("jr,ja,jb->rab", weights, values, values))
    assert torch.equal(gram, gram.mT)


@pytest.mark.parametrize("d", [65, 100, 384, 1536])
def test_panels_cover_one_triangle(d):
    cuts = panel_cuts(d)
    assert (cuts[0], cuts[-1]) == (0, d)
    assert cuts == sorted(set(cuts))
    work = sum((b - a) * b for a, b in pairwise(cuts))
    assert d * (d + 1) / 2 < work < 0.78 * d * d


def test_softmax_survives_huge_scores():
    scores = torch.tensor([[1e300], [1e300], [-1e300], [700.0]], dtype=torch.float64)
    offsets = offsets_of([3, 1])
    expected = torch.tensor([[0.5], [0.5], [0], [1]], dtype=torch.float64)
    torch.testing.assert_close(segment_softmax(scores, offsets), expected)


def test_float32_sums_of_a_million_rows_are_accurate():
    x = torch.rand(1_000_000, 1, generator=torch.Generator().manual_seed(0))
    offsets = torch.tensor([0, 5, 1_000_000])
    expected = torch.stack([part.double().sum(dim=0) for part in parts(x, offsets)])
    torch.testing.assert_close(segment_sum(x, offsets).double(), expected, rtol=1e-6, atol=0)
    total = segment_softmax(x, offsets)[5:].double().sum()
    assert total.item() == pytest.approx(1, abs=1e-5)


def test_ties_go_to_the_first_row():
    x = torch.tensor([[1.0, 2.0], [1.0, 3.0], [1.0, 3.0], [0.0, -1.0], [0.0, -1.0]])
    assert segment_argmax(x, offsets_of([3, 2])).tolist() == [[0, 1], [0, 0]]


def test_argmax_counts_exactly_beyond_the_integers_of_float32():
    rows = 2**24 + 3  # float32 has no 2²⁴ + 1
    x = torch.zeros(rows, 1)
    x[rows - 2] = 1
    assert segment_argmax(x, torch.tensor([0, rows])).item() == rows - 2


@pytest.mark.parametrize(
    "function",
    [segment_sum, segment_mean, segment_softmax],
    ids=lambda f: f.__name__,
)
def test_gradients_of_reductions(function):
    torch.manual_seed(0)
    x = torch.randn(9, 2, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda x: function(x, offsets_of([1, 5, 3])), x)


def test_gradients_of_pooling_and_forms(monkeypatch):
    monkeypatch.setattr(segments, "BLOCK_ROWS", 4)
    torch.manual_seed(0)
    weights = torch.randn(9, 2, dtype=torch.float64, requires_grad=True)
    values = torch.randn(9, 3, dtype=torch.float64, requires_grad=True)
    W = torch.randn(2, 3, 3, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda w, x: weighted_pool(w, x, offsets_of([1, 5, 3])), (weights, values))
    u = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    assert gradcheck(row_forms, (values, W, u))


# ---------------------------------------------------------------------- blocks


@given(lengths=st.lists(st.integers(1, 12), min_size=1, max_size=20), rows=st.integers(1, 15))
@quick
def test_blocks_cover_all_samples_in_order_and_split_none(lengths, rows):
    offsets = offsets_of(lengths)
    blocks = list(sample_blocks(offsets, rows))
    assert [i for samples, _ in blocks for i in range(samples.start, samples.stop)] == list(
        range(len(lengths))
    )
    for samples, where in blocks:
        assert (where.start, where.stop) == (offsets[samples.start], offsets[samples.stop])
        assert where.stop - where.start <= rows or samples.stop - samples.start == 1
    for (_, here), (following, _) in itertools.pairwise(blocks):
        with_next = here.stop - here.start + lengths[following.start]
        assert with_next > rows  # no block could have taken one sample more


def test_map_blocks_equals_one_call(monkeypatch):
    monkeypatch.setattr(segments, "sample_blocks", lambda offsets: sample_blocks(offsets, rows=5))
    torch.manual_seed(0)
    offsets = offsets_of([3, 4, 9, 1, 1, 2])
    values, shift = torch.randn(20, 3, dtype=torch.float64), torch.randn(6, 3).double()
    seen = []

    def shifted_sum(values, offsets, shift):
        seen.append(len(values))
        return segment_sum(values, offsets) + shift

    torch.testing.assert_close(
        map_blocks(shifted_sum, values, offsets, shift), shifted_sum(values, offsets, shift)
    )
    assert seen == [3, 4, 9, 4, 20]


def test_logsumexp_equals_torch_sample_by_sample():
    lengths = [3, 1, 4]
    x = 50 * torch.randn(8, 2, generator=torch.Generator().manual_seed(0)).double()
    x[1, 0] = -torch.inf
    found = segment_logsumexp(x, torch.tensor([0, 3, 4, 8]))
    expected = torch.stack([part.logsumexp(dim=0) for part in x.split(lengths)])
    torch.testing.assert_close(found, expected)
