"""Heads with distinct rows: against enumeration of all assignments."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck

from diagatt.attention import coupling
from diagatt.attention.coupling import coupled_attention, n_candidates
from tests.attention.samples import offsets_of, parts

quick = settings(max_examples=30)


def enumerated(scores):
    """Attention of one sample by listing all assignments of distinct rows, (p, R)."""
    p, heads = scores.shape
    weights = np.zeros((p, heads))
    for rows in itertools.permutations(range(p), heads):
        mass = math.exp(sum(scores[j, k] for k, j in enumerate(rows)))
        weights[list(rows), range(heads)] += mass
    return weights / weights.sum(axis=0)


@st.composite
def ragged_scores(draw):
    heads = draw(st.integers(1, 3))
    lengths = draw(st.lists(st.integers(heads, 6), min_size=1, max_size=5))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    return 2 * rng.normal(size=(sum(lengths), heads)), lengths


@given(data=ragged_scores(), padding=st.sampled_from([0, 4]))
@quick
def test_coupled_attention_equals_enumeration(data, padding):
    scores, lengths = data
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coupling, "MOST_PADDING", padding)  # 0: rows are always sorted
        ours = coupled_attention(torch.from_numpy(scores), offsets_of(lengths)).numpy()
    cuts = np.cumsum(lengths)[:-1]
    expected = np.concatenate([enumerated(part) for part in np.split(scores, cuts)])
    np.testing.assert_allclose(ours, expected, atol=1e-12)


def test_coupled_attention_sums_to_one_beyond_the_candidates():
    lengths = [n_candidates(2) * 3, 2, 50]
    scores = torch.randn(sum(lengths), 2, generator=torch.Generator().manual_seed(0)).double()
    for part in parts(coupled_attention(scores, offsets_of(lengths)), offsets_of(lengths)):
        torch.testing.assert_close(part.sum(dim=0), torch.ones(2).double())
        assert (part >= 0).all()


def test_the_error_beyond_the_candidates_is_within_the_mass_left_out():
    """The truncated sum is the distribution given that every row is a candidate."""
    scores = 3 * np.random.default_rng(0).normal(size=(30, 2))
    ours = coupled_attention(torch.from_numpy(scores), torch.tensor([0, 30])).numpy()
    candidates = np.argsort(-scores, axis=0)[: n_candidates(2)]
    joint = np.exp(scores[:, None, 0] + scores[None, :, 1])
    np.fill_diagonal(joint, 0)
    left_out = 1 - joint[np.ix_(*candidates.T)].sum() / joint.sum()
    assert 0 < left_out < 0.01
    assert np.abs(ours - enumerated(scores)).max() <= left_out


@given(data=ragged_scores())
@quick
def test_sorting_and_padding_find_the_same_candidates(data):
    scores, lengths = data
    offsets = offsets_of(lengths)
    found = []
    for padding in (0, 1000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(coupling, "MOST_PADDING", padding)
            found.append(coupling.top_candidates(torch.from_numpy(scores), offsets, 3))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0)


def test_gradient_of_coupled_attention_through_both_ways():
    scores = torch.randn(9, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    offsets = offsets_of([2, 4, 3])
    for padding in (0, 1000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(coupling, "MOST_PADDING", padding)
            assert gradcheck(lambda s: coupled_attention(s, offsets), scores.requires_grad_())


def test_one_long_sample_among_many_short_ones_is_not_padded():
    lengths = [3] * 2000 + [200_000]  # padded, the scores alone would take 6 GB
    scores = torch.randn(sum(lengths), 2, generator=torch.Generator().manual_seed(0)).double()
    offsets = offsets_of(lengths)
    weights = coupled_attention(scores, offsets)
    np.testing.assert_allclose(weights[:3], enumerated(scores[:3].numpy()), atol=1e-12)
    torch.testing.assert_close(weights[offsets[-2] :].sum(dim=0), torch.ones(2).double())
