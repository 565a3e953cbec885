"""Samples in memory: taking, dropping rows, sums, batches."""

from dataclasses import fields, replace

import numpy as np
import pytest
import torch

from diagatt.segments import sample_of_row
from diagatt.solvers.problem import OF_ROWS, OF_SAMPLES, RememberedPart, Samples
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


@pytest.mark.parametrize("least", [1, 2, 3])
def test_row_dropout_keeps_as_many_rows_as_asked(least):
    """A sample keeps `least` rows, all if it has fewer; which ones is random."""
    problem = make_problem(n=200, shortest=1, longest=6)
    numbered = torch.arange(len(problem.values), dtype=torch.float64)[:, None]
    generator, seen = torch.Generator().manual_seed(0), set()
    for _ in range(20):
        dropped = replace(problem, values=numbered).drop_rows(0.97, generator, least)
        lengths = torch.minimum(problem.offsets.diff(), torch.tensor(least))
        assert (dropped.offsets.diff() >= lengths).all()
        kept = dropped.values[:, 0].long()
        assert torch.equal(sample_of_row(problem.offsets)[kept], sample_of_row(dropped.offsets))
        seen |= set(kept.tolist())
    assert len(seen) > 0.9 * len(numbered)


def test_parts_of_samples_have_all_that_belongs_to_them():
    """Whatever is added to `Samples` is cut with the samples or with their rows, or is common."""
    common = {"family", "n_outputs", "offsets"}
    assert {f.name for f in fields(Samples)} == {*OF_SAMPLES, *OF_ROWS} | common
    problem = make_problem(n=20)
    N, numbers = problem.n_rows, torch.arange(problem.n_rows, dtype=torch.float64)
    of_rows = dict.fromkeys(("log_free", "log_known", "log_prior", "missing"), numbers)
    of_samples = {"offset": problem.y[:, None], "groups": problem.y}
    whole = replace(problem, values=numbers[:, None], **of_rows, **of_samples)
    rows = slice(int(whole.offsets[3]), int(whole.offsets[7]))
    dropped = whole.drop_rows(0.5, torch.Generator().manual_seed(0))
    assert dropped.n_rows < N
    for part in (whole.take(torch.tensor([5, 2])), whole.block(slice(3, 7), rows), dropped):
        assert all(torch.equal(getattr(part, name), part.values[:, 0]) for name in of_rows)
        assert torch.equal(part.offset[:, 0], part.y)
        assert torch.equal(part.groups, part.y)
        assert int(part.offsets[-1]) == part.n_rows


@pytest.mark.parametrize("row_dropout", [0.0, 0.9])
def test_batches_are_a_partition_and_keep_enough_rows(row_dropout):
    problem, generator = make_problem(n=50), torch.Generator().manual_seed(0)
    batches = list(problem.batches(16, row_dropout, generator, least=2))
    assert [count for _, count in batches] == [16, 16, 16, 2]
    together = torch.cat([batch.y for batch, _ in batches])
    torch.testing.assert_close(together.sort().values, problem.y.sort().values, rtol=0, atol=0)
    assert all((batch.offsets.diff() >= 2).all() for batch, _ in batches)
    rows = sum(len(batch.values) for batch, _ in batches)
    assert (rows == len(problem.values)) == (row_dropout == 0)
    ((whole, count),) = problem.batches(None, 0.0, generator)
    assert count == whole.n_samples == 50


def test_parts_put_together_are_the_whole():
    problem = make_problem(n=30)
    parts = [problem.take(torch.arange(a, b)) for a, b in [(0, 7), (7, 8), (8, 30)]]
    joined = Samples.joined(parts)
    for name in ("values", "offsets", "y", "weights", "covariates"):
        assert torch.equal(getattr(joined, name), getattr(problem, name)), name
    assert Samples.joined(parts[:1]) is parts[0]


def test_a_sample_is_drawn_in_order_and_everything_is_taken_if_it_fits():
    problem = make_problem(n=30)
    assert problem.sample(30, np.random.default_rng(0)) is problem
    drawn = problem.sample(10, np.random.default_rng(0))
    where = [int((problem.y == y).nonzero()) for y in drawn.y]
    assert drawn.n_samples == 10
    assert where == sorted(where)


def test_in_memory_all_samples_are_one_part():
    problem, calls = make_problem(), []
    assert problem.in_memory is problem
    (total,) = problem.total(lambda part: [calls.append(part) or part.y.float().sum()])
    assert calls == [problem]
    assert total.dtype == torch.float64
    assert problem.most_in_memory == problem.n_samples
    assert problem.group.size == 1


def test_what_is_remembered_is_computed_once_for_the_whole():
    problem, calls = make_problem(), []
    remembered = RememberedPart(problem, lambda part: calls.append(part) or part.n_samples)
    part = problem.take(torch.arange(5))
    assert [remembered(problem), remembered(problem), remembered(part), remembered(part)] == [
        *(40, 40, 5, 5)
    ]
    assert [call is problem for call in calls] == [True, False, False]


def test_the_digest_sees_every_column():
    problem = make_problem()
    changed = {
        "y": problem.y + 1,
        "weights": problem.weights + 1,
        "values": problem.values + 1,
        "covariates": torch.ones(40, 1),
    }
    digests = {replace(problem, **{name: column}).digest() for name, column in changed.items()}
    assert len(digests | {problem.digest()}) == 5
    assert problem.digest() == make_problem().digest()


def test_facts_about_the_samples():
    problem = make_problem(shortest=2)
    assert (problem.n_samples, problem.n_features, problem.n_covariates) == (40, 3, 0)
    assert problem.shortest == int(problem.offsets.diff().min()) == 2
    assert not problem.has_one_row_samples_only
    assert make_problem(shortest=1, longest=1).has_one_row_samples_only
    assert problem.total_weight == 40
    assert problem.scale == pytest.approx(float(problem.y.var(correction=0)))
