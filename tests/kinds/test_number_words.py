"""Words where numbers belong: what they stand for is said, and responses do not become classes."""

import numpy as np
import pytest

from diagatt.kinds import Columns
from diagatt.kinds.categories import refuse_words
from diagatt.kinds.files import read_inputs
from diagatt.kinds.tables import Table

NUMBERS = [str(i / 4) for i in range(30)]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["?"], "'a' is '\\?', not a number, as in 1 line .* leave cells empty .* marginalize"),
        (["NULL", "N/A"], "as in 2 lines of this column: leave cells empty"),
        (["1,5"], "a point instead of a comma, 0.5"),
        (["1,234,567.5"], "no comma between thousands"),
        (["12 %", "3.5%"], "no percent sign"),
        (["\u22121.5"], "a hyphen as minus sign"),
        (["high"], "most of this column are numbers: correct or drop the 1 line with words"),
        ([], "the numbers of column 'a' are stored as text"),
    ],
)
def test_what_words_in_a_feature_stand_for(words, message):
    with pytest.raises(ValueError, match=message):
        refuse_words(Table({"a": [*NUMBERS, *words]}), "a")


@pytest.mark.parametrize("cells", [[[1.0]], [{"v": 1.0}]])
def test_lists_and_objects_are_no_features(cells):
    with pytest.raises(ValueError, match="column 'a' holds lists or objects"):
        refuse_words(Table({"a": cells * 3}), "a")


@pytest.mark.parametrize(
    ("responses", "message"),
    [
        ([*NUMBERS, "NA"], "line 32: 'y' is 'NA', and other responses are numbers"),
        ([*NUMBERS, "unclear"], "'y' is 'unclear', and other responses are numbers"),
        (["0", "1"] * 9 + ["-"], "'y' is '-', and other responses are numbers"),
        ([f"{i},5" for i in range(30)], "a point instead of a comma"),
        ([f"{i}%" for i in range(30)], "no percent sign"),
        (NUMBERS, "the responses 'y' are numbers that are stored as text"),
    ],
)
def test_broken_numbers_do_not_become_classes(responses, message):
    with pytest.raises(ValueError, match=message):
        Table({"y": responses}).responses("y")


@pytest.mark.parametrize(
    "responses",
    [["yes", "no"] * 9, ["1", "2", "3+"] * 5, ["0", "1"] * 9, ["none", "mild"] * 4, ["1,2", "3"]],
)
def test_classes_stay_classes(responses):
    assert Table({"y": responses}).responses("y").tolist() == responses


@pytest.mark.parametrize("name", ["Unnamed: 0", "Unnamed: 12", "Unnamed: 3_level_1"])
def test_columns_that_pandas_named_are_no_features(name, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(f"{name},who,a,y\n0,p,1.5,2\n1,q,2.5,3\n")
    asked = {"sample": "who"}
    with pytest.raises(ValueError, match=f"column '{name}' had no name when pandas read it"):
        read_inputs(path, Columns(asked, "y"))
    found = read_inputs(path, Columns(asked, "y", drop=(name,)))
    np.testing.assert_array_equal(found.X.values, [[1.5], [2.5]])
