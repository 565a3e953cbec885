"""Objects that look like data and are none, and names that look like others."""

import decimal

import numpy as np
import pandas as pd
import pytest

from diagatt import DiagAttRegressor, RaggedRows, simulate

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
