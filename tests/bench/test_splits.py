"""Splits are fixed, stratified, grouped, and belong to their data."""

import json
from importlib import resources

import numpy as np
import pytest

from diagatt.bench import SETS, get_set, load_set
from diagatt.bench import splits as splits_module
from diagatt.bench.splits import fingerprint, make_folds, n_splits, split
from diagatt.datasets import load_bags

# What needs no package of others.
OURS = [
    chosen
    for name, chosen in SETS.items()
    if chosen.source.startswith(("digits", "wine", "breast", "simulated")) and "n2000" not in name
]


@pytest.mark.parametrize("chosen", OURS, ids=lambda chosen: chosen.name)
def test_stored_splits_belong_to_their_data_and_keep_groups_together(chosen):
    bags = load_set(chosen)
    tested = []
    for number in range(n_splits(chosen)):
        train, test = split(chosen, number)  # raises if the fingerprint differs
        assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(len(bags)))
        if bags.groups is not None:
            assert not set(bags.groups[train]) & set(bags.groups[test])
        if bags.classifies:
            assert set(bags.y[test]) == set(bags.y)
        tested.append(test)
    counts = np.bincount(np.concatenate(tested))
    assert (counts == n_splits(chosen) // 5).all()
    assert n_splits(chosen) == (15 if len(bags) < 300 else 5)


def test_every_set_of_the_bench_has_stored_splits():
    stored = json.loads(resources.files("diagatt.bench").joinpath("splits.json").read_text())
    assert set(stored) == set(SETS)


def test_other_data_are_noticed(monkeypatch):
    chosen = get_set("simulated-n50")
    other = {"fingerprint": "0", "folds": ["0" * 50]}
    monkeypatch.setattr(splits_module, "_stored", lambda: {chosen.name: other})
    splits_module._folds.cache_clear()
    with pytest.raises(ValueError, match="not what its splits were made for"):
        split(chosen, 0)
    splits_module._folds.cache_clear()


def test_repeats_differ_and_seeds_decide():
    bags = load_bags("simulated_classes", n=60)
    folds = make_folds(bags)
    assert np.array_equal(folds, make_folds(bags))
    assert not np.array_equal(folds[0], folds[1])
    share = bags.y.mean()
    for fold in range(5):  # stratified: within one sample of the share
        members = bags.y[folds[0] == fold]
        assert abs(members.sum() - share * len(members)) <= 1


def test_a_split_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="has splits 0 to 14, not 15"):
        split(get_set("wine-n100"), 15)


def test_fingerprints_follow_lengths_and_classes():
    one, other = load_bags("digits", n=50, seed=0), load_bags("digits", n=50, seed=1)
    assert fingerprint(one) == fingerprint(load_bags("digits", n=50, seed=0))
    assert fingerprint(one) != fingerprint(other)


def test_halves_of_an_assumption_are_training_and_test():
    train, test = split(get_set("unit_presence"), 0)
    assert train.tolist() == list(range(500))
    assert test.tolist() == list(range(500, 1000))
    assert n_splits(get_set("unit_presence")) == 1
