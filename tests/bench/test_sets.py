"""Sets by name and by file."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from diagatt.bench import get_set, load_set, read_bags
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
