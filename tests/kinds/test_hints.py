"""Hints about long tables that make a fit look better than it is."""

import numpy as np
import pandas as pd
import pytest

from diagatt.kinds.columns import Columns
from diagatt.kinds.files import read_inputs


def test_features_that_describe_samples_are_named(tmp_path):
    """Left among the features, an outcome of another column would predict this one."""
    frame = pd.DataFrame({"who": list("aabb"), "pulse": [1.0, 2, 3, 4], "y": [0.5, 0.5, 1.5, 1.5]})
    frame = frame.assign(age=[31, 31, 47, 47], always=7.0)
    frame.to_csv(tmp_path / "visits.csv", index=False)
    for columns, named in (
        ({}, True),
        ({"covariates": ("age",)}, False),
        ({"drop": ("age",)}, False),
    ):
        inputs = read_inputs(tmp_path / "visits.csv", Columns({"sample": "who"}, "y", **columns))
        hints = inputs.kind.hints(inputs)
        assert bool(hints) == named
        assert not named or hints[0].startswith("'age' is the same in all rows of each sample")


def table_of_visits(lengths, times):
    who = np.repeat(np.arange(len(lengths)), lengths)
    day = np.concatenate([np.arange(count, dtype=float) for count in lengths])
    return pd.DataFrame({"who": who, "day": day, "days": times[who], "died": who % 2})


@pytest.mark.parametrize(
    ("known", "yearly", "n", "is_hinted"),
    [
        ({}, True, 60, True),
        ({}, False, 60, False),  # as many visits whether or not they live on
        ({}, True, 10, False),  # too few samples to tell
        ({"start": "entry"}, True, 60, False),  # visits before the entry
    ],
)
def test_rows_that_were_added_until_the_event_are_noticed(tmp_path, known, yearly, n, is_hinted):
    rng = np.random.default_rng(0)
    times = rng.uniform(300, 3000, n).round()
    lengths = 1 + times.astype(int) // 365 if yearly else rng.integers(1, 9, n)
    frame = table_of_visits(lengths, times).assign(entry=10.0)
    frame.to_csv(tmp_path / "visits.csv", index=False)
    named = {"time": "days", "event": "died", **known}
    unused = () if known else ("entry",)
    columns = Columns({"sample": "who"}, known=named, drop=unused)
    inputs = read_inputs(tmp_path / "visits.csv", columns)
    hints = inputs.kind.hints(inputs)
    assert len(hints) == is_hinted
    assert not is_hinted or "observed for longer have more rows" in hints[0]


def test_responses_that_differ_within_a_sample_are_refused(tmp_path):
    frame = pd.DataFrame({"who": list("aabb"), "pulse": [1.0, 2, 3, 4], "y": [0.5, 0.7, 1.5, 1.5]})
    frame.to_csv(tmp_path / "visits.csv", index=False)
    message = "line 3: y is 0.7, but sample a has 0.5 before: .* the whole sample. What differs"
    with pytest.raises(ValueError, match=message):
        read_inputs(tmp_path / "visits.csv", Columns({"sample": "who"}, "y"))
