"""Tables of other programs, blank and dangerous names: understood, or refused with what to do."""

import json

import numpy as np
import pandas as pd
import pytest

from tests.commands.running import run

N, P = 24, 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A long table and a model that was fitted to it."""
    path = tmp_path_factory.mktemp("foreign")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(N, P, 2)).round(3), rng.normal(size=N).round(3)
    long = pd.DataFrame(X.reshape(-1, 2), columns=["a", "b"])
    long.insert(0, "who", np.repeat([f"p{i:02d}" for i in range(N)], P))
    long.assign(y=np.repeat(y, P)).to_csv(path / "d.csv", index=False)
    done = fit(path / "d.csv", path / "m")
    assert done.exit_code == 0, done.exception
    return path


def fit(data, out, *more):
    roles = ["--sample", "who", "--target", "y", "--solver", "likelihood"]
    return run("fit", data, *roles, "-o", out, "--overwrite", *more)


def changed(folder, tmp_path, change, ending=".csv"):
    """Write the table's text after a change of it; return the path."""
    text = change((folder / "d.csv").read_text())
    path = tmp_path / f"t{ending}"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def _renamed(old, new):
    return lambda text: text.replace("who,a,b,y", "who,a,b,y".replace(old, new), 1)


def _first(cell):
    """Return what replaces the first cell of column a."""

    def change(text):
        head, line, rest = text.split("\n", 2)
        who, _, *others = line.split(",")
        return "\n".join([head, ",".join([who, cell, *others]), rest])

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.replace(",", ";"), "Its columns are separated by semicolons: separate them"),
        (
            lambda t: t.replace(",", ";").replace(".", ","),
            "read: Its columns are separated by semi",
        ),
        (lambda t: "sep=,\n" + t, "Its first line is 'sep=,': drop this line"),
        (lambda t: "# exported\n" + t, "Every line needs as many cells as the first, which names"),
        (lambda t: t.split("\n", 1)[1], "The first line must hold the names of the columns"),
        (lambda t: t.replace(",", ", "), "Rename ' a': it differs from 'a' in capitals, white"),
        (_renamed("who", "Who"), "Rename 'Who': it differs from 'who' in capitals"),
        (_renamed("who", "'who'"), "no column 'who'; it has \"'who'\", a, b, y"),
        (lambda t: t.encode().replace(b"p00", b"p\xe9"), "not written in UTF-8: save it as UTF-8"),
        (lambda t: b"\xd0\xcf\x11\xe0\xa1\xb1", "The file is a workbook: save the sheet as CSV"),
        (lambda t: "<!DOCTYPE html><p>404</p>", "a page of HTML or XML, not a table"),
        (lambda t: t.split("\n")[0], "It is empty, or its only line names the columns"),
    ],
)
def test_tables_that_other_programs_wrote(folder, tmp_path, change, message):
    path = changed(folder, tmp_path, change)
    done = run("predict", folder / "m", path, "-o", tmp_path / "p.csv")
    assert done.exit_code == 1
    with pytest.raises(ValueError, match=message):
        raise done.exception


def test_commas_in_a_table_whose_name_promises_tabs(folder, tmp_path):
    path = changed(folder, tmp_path, str, ".tsv")
    done = run("predict", folder / "m", path, "-o", tmp_path / "p.csv")
    assert "separated by commas: separate them by tabs, or call it .csv" in str(done.exception)


@pytest.mark.parametrize("cell", ["high", "NA", "1,5", "nan", "", "50%"])
def test_nobody_is_told_to_drop_a_feature_that_the_model_needs(folder, tmp_path, cell):
    path = changed(folder, tmp_path, _first(f'"{cell}"' if "," in cell else cell))
    done = run("predict", folder / "m", path, "-o", tmp_path / "p.csv")
    assert "line 2: 'a' is" in str(done.exception)
    assert "--drop" not in str(done.exception)
    assert "--missing" not in str(done.exception)
    assert "--drop a" in str(fit(path, tmp_path / "m").exception)


# ---------------------------------------------------------------------- names of samples


@pytest.mark.parametrize("name", ['""', "  "])
def test_a_blank_name_of_a_sample(folder, tmp_path, name):
    path = changed(folder, tmp_path, lambda text: text.replace("p00", name))
    for done in (fit(path, tmp_path / "m"), run("predict", folder / "m", path)):
        assert "line 2: 'who' is blank: drop the line or fill it" in str(done.exception)


@pytest.mark.parametrize("sign", ["NA", "nan", "-", "None"])
def test_a_sample_whose_name_says_that_there_is_none(folder, tmp_path, sign):
    path = changed(folder, tmp_path, lambda text: text.replace("p00", sign))
    with pytest.warns(UserWarning, match=f"3 rows are of a sample that is called '{sign}'"):
        assert fit(path, tmp_path / "m").exit_code == 0


@pytest.mark.parametrize("name", ["=1+1", "@SUM(A1)", "-2+3", "+cmd|'/C calc'!A0"])
def test_csv_holds_no_formulas(folder, tmp_path, name):
    path = changed(folder, tmp_path, lambda text: text.replace("p00", name))
    done = run("predict", folder / "m", path, "-o", tmp_path / "p.csv")
    assert done.exit_code == 0, done.exception
    assert "an apostrophe stands before names" in done.output
    found = pd.read_csv(tmp_path / "p.csv", dtype=str)
    assert found["sample"].tolist()[:2] == [f"'{name}", "p01"]
    done = run("predict", folder / "m", path, "-o", tmp_path / "p.jsonl")
    assert "apostrophe" not in done.output
    first = json.loads((tmp_path / "p.jsonl").read_text().splitlines()[0])
    assert first["sample"] == name


def test_numbers_and_dashes_as_names_are_no_formulas(folder, tmp_path):
    path = changed(folder, tmp_path, lambda t: t.replace("p00", "-7").replace("p01", "+1.5"))
    done = run("predict", folder / "m", path, "-o", tmp_path / "p.csv")
    assert "apostrophe" not in done.output
    assert pd.read_csv(tmp_path / "p.csv", dtype=str)["sample"].tolist()[:2] == ["-7", "+1.5"]


def test_features_whose_names_are_formulas(folder, tmp_path):
    path = changed(folder, tmp_path, _renamed("a", "=1+1"))
    assert fit(path, tmp_path / "m").exit_code == 0
    assert run("predict", tmp_path / "m", path, "-o", tmp_path / "p.csv").exit_code == 0
    cells = pd.read_csv(tmp_path / "p.csv")["head0_features"]
    assert not cells.str.startswith("=").any()
    said = run("summary", tmp_path / "m", "--as", "csv").output
    assert ",'=1+1," in said


# ---------------------------------------------------------------------- responses


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("nan", "line 2: 'y' is not a number: drop the line or fill it"),
        ("inf", "the response of sample p00 is infinity: drop the sample"),
        ("1e400", "the response of sample p00 is infinity: drop the sample"),
    ],
)
def test_responses_that_are_no_numbers_are_named_by_their_sample(folder, tmp_path, cell, message):
    table = pd.read_csv(folder / "d.csv").astype({"y": str})
    table.loc[table.who == "p00", "y"] = cell
    table.to_csv(tmp_path / "t.csv", index=False)
    assert message in str(fit(tmp_path / "t.csv", tmp_path / "m").exception)


def test_classes_that_are_written_with_a_point_are_told_of(folder, tmp_path):
    table = pd.read_csv(folder / "d.csv")
    table.assign(y=(table.y > 0).astype(float)).to_csv(tmp_path / "t.csv", index=False)
    done = fit(tmp_path / "t.csv", tmp_path / "m")
    said = " ".join(done.output.split())
    assert "numbers from 0 to 1" in said
    assert "as classes: --family bernoulli" in said
    done = fit(tmp_path / "t.csv", tmp_path / "m", "--family", "bernoulli")
    assert "DiagAttClassifier" in done.output


def test_one_sample_is_too_few_for_a_fit(folder, tmp_path):
    path = changed(folder, tmp_path, lambda text: "\n".join(text.split("\n")[: P + 1]))
    assert "has one sample to fit to: name the column" in str(fit(path, tmp_path / "m").exception)
    done = run("evaluate", folder / "m", path)
    assert "1 sample " in done.output


def test_one_class_is_nothing_to_predict(folder, tmp_path):
    pd.read_csv(folder / "d.csv").assign(y="well").to_csv(tmp_path / "t.csv", index=False)
    roles = ["--sample", "who", "--target", "y"]
    done = run("cv", tmp_path / "t.csv", *roles, "-o", tmp_path / "cv")
    assert "all samples are of the class well" in str(done.exception)
    assert "1 class: well (24)" in done.output


def test_responses_that_do_not_vary_have_no_share_of_variance(folder, tmp_path):
    pd.read_csv(folder / "d.csv").assign(y=1.5).to_csv(tmp_path / "t.csv", index=False)
    said = run("evaluate", folder / "m", tmp_path / "t.csv").output
    assert "RMSE" in said
    assert "R²" not in said


# ---------------------------------------------------------------------- the page


@pytest.mark.parametrize("name", ["x.pdf", "x.csv", "x.png"])
def test_a_page_is_not_called_otherwise(folder, tmp_path, name):
    done = run("explain", folder / "m", folder / "d.csv", "-o", tmp_path / name)
    assert "the page is HTML: give it a name that ends in .html" in str(done.exception)
    assert not (tmp_path / name).exists()


def test_a_small_page_has_a_size(folder, tmp_path):
    done = run("explain", folder / "m", folder / "d.csv", "-o", tmp_path / "x.html")
    assert " KB" in done.output
    assert "0.0 MB" not in done.output
