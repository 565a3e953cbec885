"""Errors in the words of the command line."""

import numpy as np
import pytest
from PIL import Image

from diagatt import DiagAttRegressor, simulate
from diagatt.commands import cli
from diagatt.commands.messages import said
from diagatt.kinds.text.words import english_share
from diagatt.stores import RowStore
from tests.commands.running import run


def raised(call):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        call()
    return str(error.value)


def test_messages_of_the_library_are_still_those_that_are_translated(tmp_path):
    """The library's own sentences: if one changes, its translation must."""
    data = simulate.regression(12, p=2, d=2, seed=0)
    RowStore.from_rows(tmp_path / "s", data.X, data.y)
    again = raised(lambda: RowStore.from_rows(tmp_path / "s", data.X, data.y))
    assert "overwrite=True" in again
    assert "--overwrite" in said(again)
    many = raised(lambda: DiagAttRegressor(3, solver="uniform").fit(data.X, data.y))
    ids = [f"p{i}" for i in range(12)]
    assert said(many, ids).startswith("--heads 3 needs 3 distinct rows, but sample p0 has 2")
    assert "coupling" not in said(many)
    wrong = raised(lambda: DiagAttRegressor(solver="magic").fit(data.X, data.y))
    assert said(wrong) == "--solver must be auto, likelihood, mixture or gradient, got magic."
    unknown = raised(lambda: DiagAttRegressor(family="odd").fit(data.X, data.y))
    assert said(unknown).startswith("there is no --family odd: choose one of 'bernoulli'")
    low = raised(lambda: DiagAttRegressor(family="poisson").fit(data.X, -abs(data.y)))
    assert "of sample p0 is outside the range" in said(low, ids)
    assert "--family" in said(low, ids)
    with pytest.warns(UserWarning, match="features of X are so large") as warned:
        DiagAttRegressor(solver="uniform").fit(data.X.with_values(1e4 * data.X.values), data.y)
    assert "or leave --solver out" in said(str(warned[0].message))
    Z = np.ones((12, 1))
    model = DiagAttRegressor(solver="likelihood").fit(data.X, data.y, covariates=Z)
    bare = raised(lambda: model.predict(data.X))
    assert "scikit-learn" in bare
    assert said(bare).endswith("to fit and to predict.")


def test_a_warning_is_shown_once(capsys, monkeypatch):
    monkeypatch.setattr(cli, "_warned", set())
    for sentence in ("the rows are odd", "the rows are odd", "and few"):
        cli._show_warning(UserWarning(sentence))
    assert capsys.readouterr().err == "warning: the rows are odd\nwarning: and few\n"


def test_positions_beyond_the_ids_stay_as_they_are():
    assert said("sample 7 is odd", ["a"]) == "sample 7 is odd"


def test_a_line_of_the_wrong_length_is_named(tmp_path):
    (tmp_path / "t.csv").write_text("id,a,y\n1,2,3\n1,2,3,4\n")
    done = run("fit", tmp_path / "t.csv", "--sample", "id", "--target", "y", "-o", tmp_path / "m")
    assert "Row #3" in str(done.exception)


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """A folder with a subfolder per class; bright images are of one class."""
    root = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(0)
    for k, name in enumerate(["dark", "light"]):
        (root / "all" / name).mkdir(parents=True)
        for i in range(8):
            pixels = rng.integers(0, 60, (8, 8)) + 120 * k
            Image.fromarray(pixels.astype("uint8")).save(root / "all" / name / f"{i}.png")
    return root


def test_whatever_locates_rows_says_if_none_was_found(tmp_path):
    data = simulate.regression(40, p=3, d=2, mu=(3,), sigma2=(4,), seed=0)
    np.savez(tmp_path / "d.npz", X=np.stack(list(data.X)), y=data.y)
    model = DiagAttRegressor(solver="likelihood", random_state=0).fit(data.X, data.y)
    for found in (True, False):
        model.has_row_of_interest_ = found
        model.save(tmp_path / "m")
        given = (tmp_path / "m", tmp_path / "d.npz")
        said = {
            "predict": run("predict", *given, "-o", tmp_path / f"{found}.csv").output,
            "attention": run("plot", "attention", *given, "-o", tmp_path / f"{found}.png").output,
            "info": run("info", tmp_path / "m").output,
        }
        told = {name for name, text in said.items() if "do not read located rows" in text}
        assert told == (set() if found else set(said))


def test_class_folders_are_an_input(images):
    done = run(
        *("fit", images / "all", "--patch", 4, "--solver", "uniform", "-o", images / "m"),
    )
    assert done.exit_code == 0, (done.output, done.exception)
    assert "folder, 2 classes: dark (8), light (8)" in done.output
    done = run("predict", images / "m", images / "all", "-o", images / "p.csv")
    assert done.exit_code == 0, done.exception
    lines = (images / "p.csv").read_text().splitlines()
    assert lines[1].startswith('"dark/0.png","dark"')
    assert lines[-1].startswith('"light/7.png","light"')
    assert "head0_weight" in lines[0]
    done = run("evaluate", images / "m", images / "all")
    assert "1.000" in done.output
    done = run("predict", images / "m", images / "all" / "dark", "-o", images / "q.csv")
    assert done.exit_code == 0, done.exception  # images without classes


def test_other_folders_are_stores_or_nothing(tmp_path):
    (tmp_path / "empty").mkdir()
    done = run("fit", tmp_path / "empty", "-o", tmp_path / "m")
    assert done.exit_code == 1
    assert "empty" in str(done.exception)


TEXTS = {
    "en": "Great phone, lovely screen. The camera is excellent and works well.",
    "de": "Das war der beste Film, den ich seit langem in der Stadt gesehen habe.",
    "fr": "C'est le meilleur film que j'aie vu cette année, et les acteurs sont formidables.",
    "es": "Es la mejor película que he visto este año y los actores son muy buenos.",
    "nl": "Dit is de beste film die ik dit jaar heb gezien en de acteurs zijn erg goed.",
}


@pytest.mark.parametrize("language", TEXTS)
def test_texts_that_are_not_english_are_noticed(tmp_path, language):
    from diagatt.kinds import KINDS, Inputs

    texts = [TEXTS[language]] * 20
    inputs = Inputs(KINDS["text"], texts, None, None, range(20))
    hints = KINDS["text"].hints(inputs, language_model="minilm")
    assert (not hints) == (language == "en")
    assert not KINDS["text"].hints(inputs, language_model="other")
    if hints:
        assert "--language-model" in hints[0]
        assert english_share(texts) < 0.04
