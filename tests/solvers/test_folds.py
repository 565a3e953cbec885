"""Folds of content: what must not matter, who stays together, and balance."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

from diagatt.solvers.folds import content_folds
from diagatt.solvers.problem import Samples
from tests.solvers.auto.samples import problem, repeated

FAMILIES = ["gaussian", "bernoulli", "multinomial", "poisson"]
every_family = pytest.mark.parametrize("family", FAMILIES)


def folds_of(samples, n_folds=5, seed=0, groups=None):
    return content_folds(samples, n_folds, seed, groups).numpy()


def changed_rows(samples, change):
    return replace(samples, values=change(samples.values))


@every_family
def test_the_order_of_samples_does_not_matter(family):
    samples = problem(family, n=43)
    order = np.random.default_rng(0).permutation(43)
    turned = samples.take(torch.from_numpy(order))
    np.testing.assert_array_equal(folds_of(turned), folds_of(samples)[order])


def rows_reversed(samples):
    """The same samples, each with its rows in reverse order."""
    cuts = samples.offsets.tolist()
    rows = [j for a, b in itertools.pairwise(cuts) for j in reversed(range(a, b))]
    return changed_rows(samples, lambda values: values[rows])


CHANGES = {
    "rows reversed": rows_reversed,
    "features reversed": lambda s: changed_rows(s, lambda v: v.flip(1)),
    "units": lambda s: changed_rows(s, lambda v: v * torch.tensor([1e-6, 1.0, 1e6]).double()),
    "shifts": lambda s: changed_rows(s, lambda v: v + torch.tensor([1e3, 0.0, -1e3]).double()),
    "single precision": lambda s: s.to(torch.float32),
    **{
        f"a column of {constant}": lambda s, constant=constant: changed_rows(
            s, lambda v: torch.cat([v, torch.full_like(v[:, :1], constant)], dim=1)
        )
        for constant in (0.0, 0.1, -7.3e5)
    },
}


@pytest.mark.parametrize("change", CHANGES)
@every_family
def test_how_samples_are_written_down_does_not_matter(family, change):
    samples = problem(family, n=43, d=3, longest=9)
    np.testing.assert_array_equal(folds_of(CHANGES[change](samples)), folds_of(samples))


@every_family
def test_copies_and_weights_make_the_same_folds(family):
    samples = problem(family, n=30)
    counts = np.random.default_rng(0).integers(1, 4, size=30)
    weighted = replace(samples, weights=torch.from_numpy(counts).double())
    expected = folds_of(weighted).repeat(counts)
    np.testing.assert_array_equal(folds_of(repeated(samples, counts)), expected)


@every_family
def test_copies_share_a_fold_even_if_their_rows_are_turned_around(family):
    samples = problem(family, n=30, d=3, longest=9)
    both = Samples.joined([samples, rows_reversed(samples)])
    found = folds_of(both)
    np.testing.assert_array_equal(found[:30], found[30:])


@every_family
def test_groups_share_a_fold(family):
    samples = problem(family, n=60)
    groups = np.random.default_rng(0).integers(0, 17, size=60)
    found = folds_of(samples, groups=groups)
    for group in range(17):
        assert len(set(found[groups == group])) <= 1
    assert set(found) == set(range(5))


@pytest.mark.parametrize("family", ["bernoulli", "multinomial"])
@pytest.mark.parametrize("n_folds", [2, 3, 5])
def test_classes_are_balanced(family, n_folds):
    samples = problem(family, n=62)
    found = folds_of(samples, n_folds)
    sizes = np.bincount(found, minlength=n_folds)
    assert sizes.max() - sizes.min() <= 1
    for label in range(int(samples.y.max()) + 1):
        counts = np.bincount(found[samples.y.numpy() == label], minlength=n_folds)
        assert counts.max() - counts.min() <= 2  # one in each block at either end of the class


def test_folds_are_balanced_along_the_response():
    samples = problem("gaussian", n=60)
    found = folds_of(samples)
    ordered = found[np.argsort(samples.y.numpy())]
    for block in ordered.reshape(-1, 5):
        assert sorted(block) == [0, 1, 2, 3, 4]


def test_there_are_no_more_folds_than_different_samples():
    samples = problem(n=3)
    assert sorted(folds_of(samples, 5)) == [0, 1, 2]
    assert set(folds_of(repeated(samples, [4, 1, 2]), 5)) == {0, 1, 2}


def test_the_seed_decides():
    samples = problem(n=40)
    np.testing.assert_array_equal(folds_of(samples, seed=1), folds_of(samples, seed=1))
    assert (folds_of(samples, seed=1) != folds_of(samples, seed=2)).any()
