"""Samples in memory: taking, dropping rows, sums, batches."""

from dataclasses import replace

import pytest
import torch

from diagatt.segments import sample_of_row
from tests.solvers.samples import make_problem


def test_taking_samples_equals_taking_from_a_list():
    problem = make_problem(n=10)
    chosen = torch.tensor([7, 2, 2, 9])
    part = problem.take(chosen)
    samples = [
        problem.values[a:b] for a, b in zip(problem.offsets, problem.offsets[1:], strict=False)
    ]
    torch.testing.assert_close(part.values, torch.cat([samples[i] for i in chosen]))
    assert part.offsets.diff().tolist() == [len(samples[i]) for i in chosen]
    torch.testing.assert_close(part.y, problem.y[chosen])


@pytest.mark.parametrize("share", [0.1, 0.6, 0.99])
def test_row_dropout_keeps_a_row_of_every_sample_and_about_its_share(share):
    problem = make_problem(n=300, shortest=1, longest=9)
    numbered = torch.arange(len(problem.values), dtype=torch.float64)[:, None]
    dropped = replace(problem, values=numbered).drop_rows(share, torch.Generator().manual_seed(0))
    kept = dropped.values[:, 0].long()
    assert (dropped.offsets.diff() >= 1).all()
    assert torch.equal(kept, kept.sort().values)  # rows stay in order, within their samples
    assert torch.equal(sample_of_row(problem.offsets)[kept], sample_of_row(dropped.offsets))
    # A sample of p rows keeps p(1 − share) on average, and one more when all fell.
    p = problem.offsets.diff().double()
    expected = float((p * (1 - share) + share**p).sum())
    assert len(kept) == pytest.approx(expected, rel=0.1)
