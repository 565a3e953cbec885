"""Words as numbers, against tables whose indicators are written by hand."""

import numpy as np
import pandas as pd
import pytest

from diagatt import DiagAttRegressor, modelfile, simulate
from diagatt.kinds import Columns
from diagatt.kinds.files import load_model, read_inputs
from tests.commands.running import run

N = 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A long table with words among covariates and features, and the same in zeros and ones."""
    path = tmp_path_factory.mktemp("categories")
    rng = np.random.default_rng(0)
    data = simulate.regression(N, p=(2, 4), d=2, mu=(3,), sigma2=(4,), seed=0)
    owner = np.repeat(np.arange(N), data.X.lengths)
    frame = pd.DataFrame(data.X.values, columns=["a", "b"])
    frame.insert(0, "patient", [f"{i:03d}" for i in owner])
    frame["sex"] = rng.choice(["f", "m"], N)[owner]
    frame["type"] = rng.choice(["B", "NK", "T"], len(owner))
    frame["y"] = data.y[owner]
    frame.to_csv(path / "words.csv", index=False)
    numbers = frame.assign(**{"sex=m": (frame["sex"] == "m") * 1.0})
    for level in ("B", "NK", "T"):
        numbers[f"type={level}"] = (frame["type"] == level) * 1.0
    numbers.drop(columns=["sex", "type"]).to_csv(path / "numbers.csv", index=False)
    common = ("--sample", "patient", "--target", "y", "--solver", "likelihood")
    done = run(
        *("fit", path / "words.csv", *common, "--covariates", "sex", "--categories", "type"),
        *("-o", path / "words"),
    )
    assert done.exit_code == 0, (done.output, done.exception)
    assert "5: a, b, type=B, type=NK, type=T" in done.output
    assert "sex=m" in done.output
    done = run(
        "fit", path / "numbers.csv", *common, "--covariates", "sex=m", "-o", path / "numbers"
    )
    assert done.exit_code == 0, (done.output, done.exception)
    return path, frame


def test_the_model_is_that_of_zeros_and_ones(folder):
    path, _ = folder
    words, numbers = (DiagAttRegressor.load(path / name) for name in ("words", "numbers"))
    np.testing.assert_array_equal(words.query_key_, numbers.query_key_)
    np.testing.assert_array_equal(words.covariate_coef_, numbers.covariate_coef_)
    assert words.covariate_names_in_.tolist() == ["sex=m"]
    assert words.feature_names_in_.tolist() == ["a", "b", "type=B", "type=NK", "type=T"]


def test_a_table_with_fewer_words_has_the_same_columns(folder):
    path, frame = folder
    some = frame[(frame["type"] == "T") & (frame["sex"] == "f")]
    some[["type", "sex", "b", "a", "patient"]].to_csv(path / "some.csv", index=False)
    _, columns = load_model(path / "words")
    assert columns.categories == {"sex": ("f", "m"), "type": ("B", "NK", "T")}
    inputs = read_inputs(path / "some.csv", columns)
    assert inputs.X.feature_names == ("a", "b", "type=B", "type=NK", "type=T")
    assert (inputs.X.values[:, 2:] == [0, 0, 1]).all()
    assert (inputs.covariates == 0).all()
    done = run("predict", path / "words", path / "some.csv", "-o", path / "some-p.csv")
    assert done.exit_code == 0, done.exception


def test_a_word_that_the_fit_did_not_have_is_refused_with_its_line(folder):
    path, frame = folder
    other = frame.copy()
    other.loc[5, "type"] = "mast"
    other.to_csv(path / "other.csv", index=False)
    done = run("predict", path / "words", path / "other.csv", "-o", path / "x.csv")
    assert "line 7: type is mast, which the model does not know; it knows B, NK, T" in str(
        done.exception
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sex": "f"}, "is 'f' in every line, which says nothing"),
        ({"sex": [f"w{i}" for i in range(60)]}, "60 different words, too many"),
        ({"type": None, "sex": None}, "line 2: 'type' is empty"),
    ],
)
def test_categories_that_say_nothing_are_refused(folder, change, message):
    path, frame = folder
    lines = frame.iloc[:60].copy()
    lines["patient"] = [str(i) for i in range(60)]
    lines.assign(**change).to_csv(path / "bad.csv", index=False)
    columns = Columns({"sample": "patient"}, "y", ("sex",), categories={"type": ()})
    with pytest.raises(ValueError, match=message):
        read_inputs(path / "bad.csv", columns)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (None, "line 4: 'a' is empty or not a number, as in 1 line of this column"),
        ("abc", "line 4: 'a' is 'abc', and most of this column are numbers"),
    ],
)
def test_odd_cells_are_named_by_line(folder, cell, message):
    path, frame = folder
    odd = frame.astype({"a": object})
    odd.loc[2, "a"] = cell
    odd.to_csv(path / "odd.csv", index=False)
    columns = Columns({"sample": "patient"}, "y", drop=("sex", "type"))
    with pytest.raises(ValueError, match=message):
        read_inputs(path / "odd.csv", columns)


def test_words_without_a_meaning_are_refused_with_what_can_be_done(folder):
    path, _ = folder
    with pytest.raises(ValueError, match=r"line 2: column 'sex' holds '.'.*--categories sex"):
        read_inputs(path / "words.csv", Columns({"sample": "patient"}, "y"))
    with pytest.raises(ValueError, match="a category is a covariate or"):
        read_inputs(
            path / "words.csv",
            Columns({"sample": "patient"}, "y", drop=("sex", "type"), categories={"nothing": ()}),
        )


def test_all_columns_that_are_not_numbers_are_named_at_once(tmp_path):
    frame = pd.DataFrame({"who": ["a", "a", "b"], "pulse": [1.0, 2.0, 3.0], "y": [0.5, 0.5, 1.5]})
    frame["day"] = ["2023-05-14", "2023-06-11", "2023-05-02"]
    frame["site"] = ["north", "north", "south"]
    frame.to_csv(tmp_path / "visits.csv", index=False)
    wanted = "column 'day' holds dates.*--id day.*Not numbers, either: 'site'.$"
    with pytest.raises(ValueError, match=wanted):
        read_inputs(tmp_path / "visits.csv", Columns({"sample": "who"}, "y"))


def test_files_keep_the_words_and_nonsense_in_them_is_refused(folder, tmp_path):
    path, _ = folder
    tensors, document = modelfile.read(path / "words")
    assert document["columns"]["categories"] == {"sex": ["f", "m"], "type": ["B", "NK", "T"]}
    for wrong in ({"sex": "fm"}, {"sex": [1]}, ["sex"]):
        columns = {**document["columns"], "categories": wrong}
        modelfile.write(tmp_path / "m", tensors, document | {"columns": columns})
        with pytest.raises(modelfile.ModelFileError, match="categories"):
            load_model(tmp_path / "m")
