"""Folders of slide features, as each tool lays them out, become the same samples."""

import json

import h5py
import numpy as np
import pandas as pd
import pytest
import torch

from diagatt import DiagAttClassifier, RaggedRows, plots
from diagatt.slides import (
    SlideFolder,
    read_slides,
    slide_patches,
    to_geojson,
    top_patches,
    write_heat_maps,
)
from diagatt.solvers import Likelihood

N, D = 24, 3
PATIENTS = [f"0{i:02d}" for i in range(N)]


@pytest.fixture(scope="module")
def features():
    """Two slides of the first four patients, one of each other: by name, (features, coords)."""
    rng = np.random.default_rng(0)
    made = {}
    for i, patient in enumerate(PATIENTS):
        for k in range(2 if i < 4 else 1):
            p = int(rng.integers(4, 9))
            values = rng.normal(size=(p, D)).astype(np.float16)
            if k == 0:
                values[p // 2] += 5 * (-1) ** i
            grid = 512 * np.stack([np.arange(p) % 3, np.arange(p) // 3], axis=1)
            made[f"{patient}-{k}"] = values, grid.astype(np.int64)
    return made


@pytest.fixture(scope="module")
def labels(features):
    slides = list(features)
    patients = [name.split("-")[0] for name in slides]
    return pd.DataFrame(
        {
            "case_id": patients,
            "slide_id": slides,
            "label": ["ill" if int(p) % 2 else "well" for p in patients],
            "age": [40.0 + int(p) for p in patients],
        }
    )


def write_h5(path, values, coords, names=("features", "coords"), **attributes):
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        file[names[0]] = values
        file[names[1]] = coords
        file[names[1]].attrs.update(attributes)


def trident(folder, features):
    place = folder / "20x_256px_0px_overlap" / "features_uni_v1"
    for name, (values, coords) in features.items():
        write_h5(place / f"{name}.h5", values, coords, patch_size=256, patch_size_level0=512)
    (folder / "20x_256px_0px_overlap" / "patches").mkdir()


def clam(folder, features):
    (folder / "pt_files").mkdir()
    for name, (values, coords) in features.items():
        write_h5(folder / "h5_files" / f"{name}.h5", values[None], coords)
        torch.save(torch.from_numpy(values), folder / "pt_files" / f"{name}.pt")


def clam_tensors(folder, features):
    (folder / "pt_files").mkdir()
    for name, (values, _) in features.items():
        torch.save(torch.from_numpy(values), folder / "pt_files" / f"{name}.pt")


def stamp(folder, features):
    for name, (values, coords) in features.items():
        write_h5(folder / f"{name}.h5", values, coords / 2, ("feats", "coords"))
        with h5py.File(folder / f"{name}.h5", "a") as file:
            file.attrs.update({"unit": "um", "tile_size_um": 256.0})


def torchmil(folder, features):
    for kind, k in (("features", 0), ("coords", 1)):
        (folder / kind).mkdir()
        for name, both in features.items():
            np.save(folder / kind / f"{name}.npy", both[k])


TOOLS = [trident, clam, clam_tensors, stamp, torchmil]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.__name__)
def test_every_layout_gives_the_same_samples(tmp_path, features, labels, tool):
    tool(tmp_path, features)
    slides = read_slides(tmp_path, labels, target="label", covariates=["age"])
    rows = slides.rows()
    expected = [
        np.concatenate([v for name, (v, _) in features.items() if name.startswith(f"{p}-")])
        for p in PATIENTS
    ]
    assert rows == RaggedRows.from_samples([x.astype(np.float32) for x in expected])
    assert rows.dtype == np.float32
    assert slides.dtype == np.float16
    assert rows.sample_ids.tolist() == PATIENTS
    assert slides.y.tolist() == ["ill" if i % 2 else "well" for i in range(N)]
    np.testing.assert_array_equal(slides.covariates[:, 0], 40.0 + np.arange(N))
    first = "000-0:0" if tool is clam_tensors else "000-0:0,0"
    assert rows.row_ids[0] == first
    assert any(name.startswith("000-1:") for name in rows.row_ids[: rows.lengths[0]])
    sides = {"trident": 512.0, "stamp": 256.0, "clam": 512.0, "torchmil": 512.0}
    if tool is not clam_tensors:
        file = slides.files["005-0"]
        assert file.patch_side(file.coordinates()) == sides[tool.__name__]


def test_a_slide_alone_is_a_sample(tmp_path, features, labels):
    torchmil(tmp_path, features)
    slides = read_slides(tmp_path, labels.drop(columns="case_id"), target="label")
    assert slides.ids == list(features)


def test_a_table_of_patients_and_one_of_slides(tmp_path, features):
    stamp(tmp_path, features)
    clinical = pd.DataFrame({"PATIENT": PATIENTS[::-1], "KRAS": np.arange(N) % 2})
    pairs = pd.DataFrame(
        {
            "FILENAME": [f"{name}.svs" for name in features] + ["unknown.svs"],
            "PATIENT": [name.split("-")[0] for name in features] + ["nobody"],
        }
    )
    slides = read_slides(tmp_path, clinical, target="KRAS", slide_table=pairs)
    assert slides.ids == PATIENTS[::-1]
    assert slides.slides[-1] == ["000-0", "000-1"]


def test_ids_of_a_file_are_text(tmp_path, features, labels):
    trident(tmp_path / "out", features)
    labels.to_csv(tmp_path / "labels.csv", index=False)
    assert read_slides(tmp_path / "out", tmp_path / "labels.csv").ids == PATIENTS


def test_a_store_holds_float16(tmp_path, features, labels, monkeypatch):
    trident(tmp_path / "out", features)
    monkeypatch.setattr("diagatt.kinds.slides.samples.PART", 500)
    slides = read_slides(tmp_path / "out", labels, target="label", covariates=["age"])
    assert len(list(slides.parts())) == 5
    store = slides.to_store(tmp_path / "s", shard_mib=0.002)
    assert json.loads((tmp_path / "s" / "store.json").read_text())["dtype"] == "float16"
    assert store.to_rows() == slides.rows()
    assert store.to_rows().row_ids.tolist() == slides.rows().row_ids.tolist()
    assert store.covariate_names == ("age",)
    assert store.responses().tolist() == slides.y.tolist()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda t: t.assign(slide_id="x" + t["slide_id"]),
            "has no features of 28 slides, 'x000-0'",
        ),
        (lambda t: t.rename(columns={"slide_id": "scan"}), "no column of slides"),
        (
            lambda t: t.assign(label=np.where(t["slide_id"] == "000-1", "ill", t["label"])),
            "line 3: label of 000 is ill, but well before",
        ),
    ],
)
def test_mistakes_of_the_table_are_named(tmp_path, features, labels, change, said):
    torchmil(tmp_path, features)
    with pytest.raises(ValueError, match=said):
        read_slides(tmp_path, change(labels), target="label")


def test_mistakes_of_the_folder_are_named(tmp_path, features, labels):
    with pytest.raises(FileNotFoundError, match="not a folder"):
        SlideFolder(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="holds no slide features"):
        SlideFolder(tmp_path)
    for encoder in ("uni", "gigapath"):
        place = tmp_path / "20x" / f"features_{encoder}"
        write_h5(place / "a.h5", np.ones((2, 3), np.float16), np.zeros((2, 2)))
    with pytest.raises(ValueError, match="several sets of features, '20x/features_gigapath'"):
        SlideFolder(tmp_path)
    other = tmp_path / "other"
    torchmil_part = dict(list(features.items())[:3])
    other.mkdir()
    torchmil(other, torchmil_part)
    np.save(other / "features" / "000-1.npy", np.ones((2, 9)))
    few = labels[labels["slide_id"].isin(torchmil_part)]
    with pytest.raises(ValueError, match="slide 000-1 has 9 features per patch, slide 000-0 has 3"):
        read_slides(other, few)
    np.save(other / "features" / "000-1.npy", np.ones((0, 3)))
    with pytest.raises(ValueError, match="at least one patch"):
        read_slides(other, few)


# ---------------------------------------------------------------------- back onto the slides


@pytest.fixture(scope="module")
def fitted(tmp_path_factory, features, labels):
    folder = tmp_path_factory.mktemp("slides")
    trident(folder, features)
    slides = read_slides(folder, labels, target="label")
    model = DiagAttClassifier(solver=Likelihood(), random_state=0)
    return model.fit(slides.rows(), slides.y), slides


def test_patches_have_the_weights_of_their_sample(fitted):
    model, slides = fitted
    found = list(slide_patches(model, slides))
    assert [patches.slide for patches in found] == [s for own in slides.slides for s in own]
    weights = np.concatenate([patches.weights for patches in found])
    np.testing.assert_array_equal(weights, np.concatenate(model.attention(slides.rows())))
    located = [patches.located.sum() for patches in found]
    assert sum(located) == N
    assert sum(located[:2]) == 1  # two slides, one patient
    assert found[0].side == 512.0


def test_geojson_is_what_qupath_reads(fitted):
    model, slides = fitted
    patches = next(slide_patches(model, slides))
    found = json.loads(to_geojson(patches))
    assert found["type"] == "FeatureCollection"
    assert len(found["features"]) == len(patches.weights)
    assert len({feature["id"] for feature in found["features"]}) == len(patches.weights)
    for feature, (x, y), weight in zip(
        found["features"], patches.coords.tolist(), patches.weights[:, 0], strict=True
    ):
        assert feature["type"] == "Feature"
        ring = feature["geometry"]["coordinates"][0]
        assert feature["geometry"]["type"] == "Polygon"
        assert ring[0] == ring[-1] == [x, y]
        assert ring[2] == [x + 512, y + 512]
        properties = feature["properties"]
        assert properties["objectType"] == "tile"
        assert properties["measurements"]["attention"] == pytest.approx(float(weight))
    kinds = [f["properties"]["classification"]["name"] for f in found["features"]]
    assert kinds.count("row of interest") == patches.located.sum()


def test_micrometres_need_a_scale(tmp_path, features, labels, fitted):
    stamp(tmp_path, features)
    patches = next(slide_patches(fitted[0], read_slides(tmp_path, labels)))
    with pytest.raises(ValueError, match="micrometres per pixel"):
        to_geojson(patches)
    ring = json.loads(to_geojson(patches, mpp=0.5))["features"][1]["geometry"]["coordinates"][0]
    assert ring[0] == [512.0, 0.0]
    assert ring[1] == [1024.0, 0.0]


def test_top_patches_are_the_largest_weights(fitted):
    model, slides = fitted
    lines = top_patches(list(slide_patches(model, slides)), most=2)
    assert len(lines) == 2 * N
    rows = slides.rows()
    for line, weights, row in zip(
        lines[::2], model.attention(rows), model.locate(rows)[:, 0], strict=True
    ):
        assert line["attention"] == pytest.approx(float(weights.max()))
        assert line["located"]
        start = slides.files[slides.slides[slides.ids.index(line["sample"])][0]].shape[0]
        assert line["patch"] == row - (start if line["slide"].endswith("-1") else 0)


def test_heat_maps(tmp_path, fitted):
    model, slides = fitted
    written = write_heat_maps(tmp_path / "maps", model, slides, most=3)
    names = {path.name for path in written}
    assert names == {f"{s}{e}" for s in slides.files for e in (".png", ".geojson")} | {
        "top_patches.csv"
    }
    assert (tmp_path / "maps" / "005-0.png").read_bytes()[:4] == b"\x89PNG"
    table = pd.read_csv(tmp_path / "maps" / "top_patches.csv", dtype={"sample": str})
    assert table["sample"].tolist() == [p for p in PATIENTS for _ in range(3)]


def test_the_drawing_colours_patches_by_weight():
    relative = np.array([0.01, 1.0, 30.0])
    ax = plots.slide([[0, 0], [1, 0], [0, 1]], relative, 1, located=[False, False, True])
    boxes = ax.collections[0]
    np.testing.assert_array_equal(boxes.get_array(), [0.1, 1.0, 30.0])
    assert (boxes.norm.vmin, boxes.norm.vmax) == (0.1, 30.0)
    assert len(ax.patches) == 1
    with pytest.raises(ValueError, match="coords must have shape"):
        plots.slide([[0, 0]], relative, 1)
