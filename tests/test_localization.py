"""Rows of interest: the best rows of every sample, each named once."""

import numpy as np
import pytest
import torch

from diagatt import segments
from diagatt.localization import first_distinct, row_positions, top_rows, top_rows_of_heads
from diagatt.metrics import crlr

OFFSETS = np.array([0, 3, 4, 9])


@pytest.mark.parametrize("k", [1, 2, 5, 8])
def test_top_rows_are_those_of_sorting_each_sample(k):
    scores = np.random.default_rng(k).integers(0, 4, size=9).astype(float)  # with ties
    located = top_rows(scores, OFFSETS, k)
    for i in range(3):
        part = scores[OFFSETS[i] : OFFSETS[i + 1]]
        best = sorted(range(len(part)), key=lambda j: (-part[j], j))[:k]
        assert located[i].tolist() == best + [-1] * (k - len(best))


def test_heads_share_the_rows_and_name_each_once():
    scores = np.random.default_rng(0).normal(size=(9, 3))
    located = top_rows_of_heads(scores, OFFSETS, 7)
    assert located.shape == (3, 7)
    for i in range(3):
        expected = set()
        for r in range(3):
            expected |= set(top_rows(scores[:, r], OFFSETS, 2)[i].tolist())
        named = located[i][located[i] >= 0].tolist()
        assert set(named) == expected - {-1}
        assert len(named) == len(set(named))


def test_more_heads_than_rows_to_name_is_refused():
    with pytest.raises(ValueError, match="n_located = 2 rows cannot be shared by 3 heads"):
        top_rows_of_heads(np.zeros((9, 3)), OFFSETS, 2)


def test_first_distinct_pads_and_cuts():
    rows = np.array([[2, 2, -1, 1], [0, 1, 2, 3]])
    assert first_distinct(rows, 5).tolist() == [[2, 1, -1, -1, -1], [0, 1, 2, 3, -1]]
    assert first_distinct(rows, 3).tolist() == [[2, 1, -1], [0, 1, 2]]


def test_missing_rows_neither_help_nor_harm_the_localization_rate():
    assert crlr([[0], [2]], [[0, -1, -1], [1, -1, -1]]) == 0.5


def test_row_positions():
    expected = [0, 1, 2, 0, 0, 1, 2, 3, 4]
    assert row_positions(OFFSETS).tolist() == expected
    assert segments.row_positions(torch.from_numpy(OFFSETS)).tolist() == expected
