"""A problem on disk: views, batches, processes."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from diagatt.distributed import Group
from diagatt.families import get_family
from diagatt.solvers.stored import StoredProblem, _batches
from tests.solvers.samples import problem_of
from tests.solvers.stores import N


def on_disk(store, **fields):
    return StoredProblem(store, get_family("gaussian"), np.asarray, dtype=torch.float64, **fields)


def test_many_samples_stay_where_they_are(data, store):
    samples = torch.from_numpy(np.random.default_rng(0).choice(N, 500, replace=False))
    view = on_disk(replace_memory(store, 0.1)).take(samples)
    assert isinstance(view, StoredProblem)
    expected = problem_of(*data).take(samples)
    again = torch.arange(0, 500, 7)

    def sums(part):
        return [part.values.sum(dim=0), part.y.sum(), part.offsets.diff().sum()]

    for got, want in zip(view.total(sums), expected.total(sums), strict=True):
        torch.testing.assert_close(got, want)
    assert view.scale == pytest.approx(expected.scale)
    assert view.n_samples == 500
    # Samples of the view are counted in the store's order.
    ordered = problem_of(*data).take(samples.sort().values).take(again)
    torch.testing.assert_close(view.load(again).values, ordered.values)


def replace_memory(store, memory):
    """The same store, as if it had less memory to read with."""
    view = store.select(range(len(store.shards)))
    view.memory = memory
    return view


@pytest.mark.parametrize("size", [1, 2, 3, 9])
@pytest.mark.parametrize("row_dropout", [0.0, 0.4])
def test_batches_do_not_depend_on_the_number_of_processes(data, store, size, row_dropout):
    def run(rank, size):
        problem = on_disk(store, group=Group(rank, size))
        generator = torch.Generator().manual_seed(5)
        return list(problem.batches(64, row_dropout, generator))

    alone, ranks = run(0, 1), [run(rank, size) for rank in range(size)]
    for step, (batch, count) in enumerate(alone):
        parts = [own[step][0] for own in ranks]
        assert all(own[step][1] == count for own in ranks)
        counted = torch.cat([part.y[part.weights > 0] for part in parts])
        torch.testing.assert_close(counted.sort().values, batch.y.sort().values)
        rows = sum((part.values[part.weights[0] > 0].sum() for part in parts), torch.tensor(0.0))
        torch.testing.assert_close(rows.double(), batch.values.sum())
    everyone = torch.cat([batch.y for batch, _ in alone])
    np.testing.assert_array_equal(everyone.sort().values, np.sort(np.asarray(data[1], float)))
    assert sum(count for _, count in alone) == N


def test_one_batch_of_all_rows_must_fit(store):
    problem = on_disk(replace_memory(store, 0.1))
    with pytest.raises(ValueError, match=r"batch_size=None .* memory of 0.1 MiB: give a count"):
        next(problem.batches(None, 0.0, torch.Generator()))


def test_dropped_rows_leave_as_many_as_asked(store):
    generator = torch.Generator().manual_seed(0)
    batches = [batch for batch, _ in on_disk(store).batches(64, 0.99, generator, least=3)]
    assert min(int(batch.offsets.diff().min()) for batch in batches) == 3
    assert sum(len(batch.values) for batch in batches) < 4 * N


def test_changed_samples_do_not_keep_their_shard(store):
    part = store.part(0)
    changed = on_disk(store).changed(lambda s: replace(s, values=2 * s.values)).samples_of(part)
    for own in (changed.values, changed.offsets, changed.y, changed.weights):
        assert not np.shares_memory(own.numpy(), part.X.values)
        assert not np.shares_memory(own.numpy(), part.X.offsets)


@pytest.mark.parametrize("steps", [1, 3])
def test_the_last_batch_of_a_window_leaves_no_part(store, steps):
    parts = {k: on_disk(store).samples_of(store.part(k)) for k in (0, 1)}
    y = torch.cat([part.y for part in parts.values()])
    found = [torch.cat([own.y for own in taken]) for taken in _batches(parts, steps, 0.0, 0, 1)]
    torch.testing.assert_close(torch.cat(found).sort().values, y.sort().values)
    assert parts == {}


def test_two_epochs_have_other_batches(store):
    problem, generator = on_disk(store), torch.Generator().manual_seed(5)
    first, second = (list(problem.batches(64, 0.0, generator)) for _ in range(2))
    assert not torch.equal(first[0][0].y, second[0][0].y)


def test_replacing_fields_keeps_the_group(store):
    problem = on_disk(store, group=Group(1, 3))
    assert replace(problem, chosen=None).group is problem.group
