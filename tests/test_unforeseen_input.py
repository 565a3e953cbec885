"""Objects that look like data and are none, and names that look like others."""

import decimal

import numpy as np
import pandas as pd
import pytest

from diagatt import DiagAttRegressor, RaggedRows, simulate
from diagatt.lifetimes import make_times
from diagatt.metrics import crlr
from diagatt.report import write_page
from diagatt.report.samples import collect

DATA = simulate.regression(30, p=4, d=3, mu=(3,), sigma2=(4,), seed=0)
X, Y = [np.asarray(m, dtype=float) for m in DATA.X], np.asarray(DATA.y, dtype=float)
NAMES = ["a", "b", "c"]


def short():
    return DiagAttRegressor(solver="likelihood", random_state=0)


def long_table():
    table = pd.DataFrame(np.concatenate(X), columns=NAMES)
    return table.assign(who=np.repeat([f"p{i}" for i in range(len(X))], 4))


def test_a_decimal_that_signals_is_no_number():
    y = [decimal.Decimal("sNaN"), *map(decimal.Decimal, Y[1:])]
    with pytest.raises(ValueError, match=r"y\[0\] holds Decimal\('sNaN'\), not a number"):
        short().fit(X, y)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda t: t.groupby("who"), "X is a DataFrameGroupBy, which yields pairs of a name and"),
        (lambda t: list(t.groupby("who")), "sample 0 is a pair of a name and a table"),
    ],
)
def test_grouped_tables_hold_the_names_as_a_feature(make, message):
    with pytest.raises(ValueError, match=rf"{message}.*RaggedRows\.from_frame"):
        short().fit(make(long_table()), Y)


@pytest.mark.parametrize("name", ["", "  ", "\t"])
def test_blank_ids_join_no_rows(name):
    table = long_table()
    table.loc[5, "who"] = name
    with pytest.raises(ValueError, match="line 5 of column 'who' names no sample"):
        RaggedRows.from_frame(table, "who")


@pytest.mark.parametrize("name", ["nan", "NA", "None", "?"])
def test_ids_that_say_that_there_is_none(name):
    table = long_table()
    table.loc[4:6, "who"] = name
    with pytest.warns(UserWarning, match=f"3 rows are of a sample that is called '{name}'"):
        RaggedRows.from_frame(table, "who")


def test_infinity_names_nothing():
    table = long_table().assign(who=np.repeat([*range(29), np.inf], 4))
    with pytest.raises(ValueError, match="ids in column 'who' hold infinity"):
        RaggedRows.from_frame(table, "who")


@pytest.mark.parametrize("names", [["a", "a ", "b"], ["é", "e\u0301", "b"]])
def test_columns_that_look_alike(names):
    with pytest.raises(ValueError, match="columns of sample 0 look alike"):
        short().fit([pd.DataFrame(m, columns=names) for m in X], Y)


@pytest.mark.parametrize(
    ("own", "new"), [("é", "e\u0301"), ("age", "Age"), ("age", " age"), ("age ", "age")]
)
def test_a_name_that_is_written_otherwise_is_pointed_at(own, new):
    model = short().fit([pd.DataFrame(m, columns=[own, "b", "c"]) for m in X], Y)
    with pytest.raises(ValueError, match=f"Rename {new!r}: it differs from {own!r} in capitals"):
        model.predict([pd.DataFrame(m, columns=[new, "b", "c"]) for m in X])


@pytest.mark.parametrize(
    ("event", "time", "message"),
    [
        ([2.5, 5.0], [1, 0], r"event\[0\] = 2.5: an event has happened"),
        (["yes", "no"], [2.0, 5.0], "event is not numeric"),
        ([1, 2], [2.0, 5.0], r"event\[1\] = 2: an event has happened"),
        ([1, np.nan], [2.0, 5.0], r"event\[1\] is nan"),
        ([1, 0], [2.0, np.inf], r"time\[1\] is inf"),
        ([1, 0, 1], [2.0, 5.0], "event has shape"),
    ],
)
def test_events_and_times_that_are_exchanged_or_none(event, time, message):
    with pytest.raises(ValueError, match=message):
        make_times(event, time)


@pytest.mark.parametrize("rows", [None, 3, "rows", [0.5, 1], np.array([np.nan, 1]), ["a", "b"]])
def test_rows_that_are_no_places(rows):
    for given in ((rows, [0, 1]), ([0, 1], rows)):
        with pytest.raises(ValueError, match=r"_rows (must be|of sample 0 hold)"):
            crlr(*given)
    assert crlr([0, 1], np.array([0.0, 1.0])) == 1


def test_a_page_names_samples_by_their_ids_and_refuses_words_as_numbers(tmp_path):
    rows, ids = RaggedRows.from_frame(long_table(), "who")
    model = short().fit(rows, Y)
    assert collect(model, rows, Y).ids == ids.tolist()
    assert collect(model, X, Y).ids[:2] == ["sample 0", "sample 1"]
    with pytest.raises(ValueError, match=r"y is not numeric .*use a classifier"):
        write_page(tmp_path / "page.html", model, X, ["yes"] * len(X))


def test_truth_values_are_no_samples():
    with pytest.raises(IndexError, match="True is no sample"):
        RaggedRows.from_samples(X)[True]
