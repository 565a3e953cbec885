"""Sets by name and by file."""

import json
from importlib import resources

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from diagatt.bench import SETS, get_set, load_set, read_bags, sets
from diagatt.bench.sets import fingerprint, make_folds, n_splits, split
from diagatt.datasets import load_bags


def test_bags_of_a_file_are_those_that_were_written(tmp_path):
    bags = load_bags("digits", n=30)
    path = tmp_path / "mine.npz"
    np.savez(
        path,
        values=bags.X.values,
        offsets=bags.X.offsets,
        y=np.where(bags.y == 1, "sick", "healthy"),
        groups=bags.groups,
        row_labels=bags.row_labels,
    )
    held = load_set(get_set(str(path)))
    assert held.X == bags.X
    assert held.task == "binary"
    assert np.array_equal(held.y, bags.y)  # words in order: healthy 0, sick 1
    assert np.array_equal(held.groups, bags.groups)
    assert np.array_equal(held.row_labels, bags.row_labels)


def test_a_long_table_is_read_by_its_columns(tmp_path):
    table = {
        "sample": ["b", "a", "b", "c"],
        "y": [1.5, 2.5, 1.5, 0.1],
        "group": ["g", "h", "g", "g"],
        "row_label": [0, 1, 1, 0],
        "u": [1.0, 2.0, 3.0, 4.0],
        "v": [5.0, 6.0, 7.0, 8.0],
    }
    path = tmp_path / "mine.parquet"
    pq.write_table(pa.table(table), path)
    held = read_bags(path)
    assert [sample.tolist() for sample in held.X] == [[[1, 5], [3, 7]], [[2, 6]], [[4, 8]]]
    assert held.y.tolist() == [1.5, 2.5, 0.1]
    assert held.task == "regression"
    assert held.groups.tolist() == [0, 1, 0]
    assert held.row_labels.tolist() == [False, True, True, False]


@pytest.mark.parametrize(
    ("y", "task"),
    [
        ([0, 2, 1, 1], "multiclass"),
        (["a", "b", "c", "a"], "multiclass"),
        ([0.5, 1, 2, 3], "regression"),
        ([7.0, 9.0, 7.0, 7.0], "binary"),
    ],
)
def test_responses_decide_about_the_task(tmp_path, y, task):
    path = tmp_path / "mine.npz"
    np.savez(path, values=np.zeros((4, 1)), offsets=np.arange(5), y=np.array(y))
    assert read_bags(path).task == task


def test_what_cannot_be_read_is_said(tmp_path):
    with pytest.raises(ValueError, match="unknown set 'moon': choose among musk1"):
        get_set("moon")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        read_bags(tmp_path / "absent.npz")
    np.savez(tmp_path / "part.npz", values=np.zeros((4, 1)), y=np.zeros(4))
    with pytest.raises(ValueError, match="has no array 'offsets'"):
        read_bags(tmp_path / "part.npz")


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
    monkeypatch.setattr(sets, "_stored", lambda: {chosen.name: other})
    sets._folds.cache_clear()
    with pytest.raises(ValueError, match="not what its splits were made for"):
        split(chosen, 0)
    sets._folds.cache_clear()


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
