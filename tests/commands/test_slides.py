"""``diagatt fit labels.csv --slides FOLDER``: from features to predictions and heat maps."""

import csv

import numpy as np
import pytest

from diagatt import DiagAttClassifier
from diagatt.slides import read_slides
from tests.commands.running import run


def lines(path):
    with open(path) as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("slides")
    rng = np.random.default_rng(0)
    for kind in ("features", "coords"):
        (path / "out" / kind).mkdir(parents=True)
    table = ["case_id,slide_id,label,age,site"]
    for i in range(40):
        for k in range(1 + (i < 5)):
            values = rng.normal(size=(5, 3)).astype(np.float16)
            values[2] += 5 * (-1) ** i
            np.save(path / "out" / "features" / f"s{i}{'ab'[k]}.npy", values)
            coords = 256 * np.stack([np.arange(5), np.zeros(5)], axis=1)
            np.save(path / "out" / "coords" / f"s{i}{'ab'[k]}.npy", coords.astype(int))
            table.append(
                f"{i:04d},s{i}{'ab'[k]},{'ill' if i % 2 else 'well'},{30 + i},{'NESW'[i % 7 % 4]}"
            )
    (path / "labels.csv").write_text("\n".join(table) + "\n")
    done = fit(path, "m.safetensors")
    assert done.exit_code == 0, done.exception
    return path


def fit(path, name, *more):
    how = ("--slides", path / "out", "--target", "label", "--solver", "likelihood")
    return run("fit", path / "labels.csv", *how, "-o", path / name, *more)


def test_predictions_name_patients_slides_and_places(folder):
    done = run("predict", folder / "m.safetensors", folder / "labels.csv", "-o", folder / "p.csv")
    assert done.exit_code == 0, done.exception
    found = lines(folder / "p.csv")
    assert [line["sample"] for line in found] == [f"{i:04d}" for i in range(40)]
    slides = read_slides(folder / "out", folder / "labels.csv")
    model = DiagAttClassifier.load(folder / "m.safetensors")
    assert [line["prediction"] for line in found] == model.predict(slides.rows()).tolist()
    rows = slides.rows()
    ids = [rows.row_ids[a + r] for a, r in zip(rows.offsets, model.locate(rows)[:, 0])]  # noqa: B905
    assert [line["head0_row_id"] for line in found] == ids
    assert ids[0].split(":")[0] in ("s0a", "s0b")


def test_another_folder_for_new_slides(folder, tmp_path):
    (tmp_path / "features").mkdir()
    np.save(tmp_path / "features" / "new.npy", np.full((2, 3), 5.0))
    (tmp_path / "new.csv").write_text("case_id,slide_id\n007,new.svs\n")
    how = ("--slides", tmp_path, "-o", tmp_path / "p.csv")
    done = run("predict", folder / "m.safetensors", tmp_path / "new.csv", *how)
    assert done.exit_code == 0, done.exception
    (line,) = lines(tmp_path / "p.csv")
    assert (line["sample"], line["prediction"]) == ("007", "well")


def test_little_memory_goes_through_a_store(folder, monkeypatch):
    monkeypatch.setattr("diagatt.kinds.slides.IN_MEMORY", 1e-6)
    done = fit(folder, "small.safetensors", "--memory", "4")
    assert done.exit_code == 0, done.exception
    rows = read_slides(folder / "out", folder / "labels.csv").rows()
    small, whole = (DiagAttClassifier.load(folder / f"{n}.safetensors") for n in ("small", "m"))
    np.testing.assert_allclose(small.predict_proba(rows), whole.predict_proba(rows), atol=1e-4)


def test_samples_of_a_site_are_held_out_together(folder, tmp_path):
    how = ("--slides", folder / "out", "--target", "label", "--solver", "likelihood")
    out = tmp_path / "cv"
    done = run("cv", folder / "labels.csv", *how, "--groups", "site", "--folds", 2, "-o", out)
    assert done.exit_code == 0, done.exception
    folds = {line["sample"]: line["fold"] for line in lines(out / "predictions.csv")}
    slides = read_slides(folder / "out", folder / "labels.csv", groups="site")
    of_site = {site: set() for site in "NESW"}
    for name, site in zip(slides.ids, slides.groups, strict=True):
        of_site[site].add(folds[name])
    assert [len(found) for found in of_site.values()] == [1, 1, 1, 1]


def test_groups_that_cannot_be_had_are_refused(folder, tmp_path, monkeypatch):
    def refusal(done):
        assert done.exit_code == 1
        return str(done.exception)

    site = ("--groups", "site")
    assert "no column 'hospital'" in refusal(fit(folder, "g", "--groups", "hospital"))
    monkeypatch.setattr("diagatt.kinds.slides.IN_MEMORY", 1e-6)
    little = fit(folder, "g", *site, "--memory", "4")
    assert "--groups needs samples in memory: give --memory" in refusal(little)
    read_slides(folder / "out", folder / "labels.csv", target="label").to_store(tmp_path / "store")
    stored = run("fit", tmp_path / "store", *site, "-o", tmp_path / "m")
    assert "is a store, which has no column 'site' of groups" in refusal(stored)


def test_heat_maps_beside_the_page(folder, tmp_path):
    where = ("-o", tmp_path / "page.html", "--heat-maps", tmp_path / "maps")
    done = run("explain", folder / "m.safetensors", folder / "labels.csv", *where)
    assert done.exit_code == 0, done.exception
    assert (tmp_path / "maps" / "s7a.png").exists()
    assert (tmp_path / "maps" / "s7a.geojson").exists()
    assert len(lines(tmp_path / "maps" / "top_patches.csv")) == 5 * 35 + 10 * 5


def test_mistakes_are_said_in_the_words_of_the_command_line(folder, tmp_path):
    done = run("explain", folder / "m.safetensors", folder / "labels.csv", "--slides", tmp_path)
    assert "holds no slide features" in str(done.exception)


def test_a_stranger_is_told_what_to_name(folder):
    done = run("fit", folder / "labels.csv", "--slides", folder / "out", "--target", "lable")
    assert "has no column 'lable'; it has case_id, slide_id, label" in str(done.exception)
    done = run("fit", folder / "out", "--target", "label")
    assert "is not a store: if it holds features of slides" in str(done.exception)
    (folder / "more.csv").write_text((folder / "labels.csv").read_text() + "0099,s99,ill,50,N\n")
    done = run("fit", folder / "more.csv", "--slides", folder / "out", "--target", "label")
    assert "has no features of slide 's99': drop its line" in str(done.exception)
