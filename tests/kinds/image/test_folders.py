"""Folders and tables of a user's own images."""

import numpy as np
import pytest
from PIL import Image

from diagatt.images import PatchRows, read_folder, read_table


@pytest.fixture
def folder(tmp_path):
    for label, value in (("dog", 9), ("cat", 3)):
        (tmp_path / label).mkdir()
        for name in ("b.png", "a.PNG", ".hidden.png"):
            Image.new("L", (8, 16), value).save(tmp_path / label / name, format="PNG")
        (tmp_path / label / "notes.txt").write_text("not an image")
    return tmp_path


def test_subfolders_are_classes(folder):
    files = read_folder(folder)
    assert files.y.tolist() == ["cat", "cat", "dog", "dog"]
    assert [p.name for p in files.images] == ["a.PNG", "b.png"] * 2
    X = PatchRows().fit_transform(files.images)
    assert X.lengths.tolist() == [2] * 4
    assert X.values[:, 0].tolist() == [3] * 4 + [9] * 4


def test_a_folder_without_classes(folder):
    files = read_folder(folder / "cat")
    assert len(files.images) == 2
    assert files.y is None


def test_what_a_folder_must_not_be(folder, tmp_path_factory):
    with pytest.raises(NotADirectoryError, match="is not a folder"):
        read_folder(folder / "bird")
    with pytest.raises(ValueError, match=r"holds no image: looked for \.bmp"):
        read_folder(tmp_path_factory.mktemp("empty"))
    Image.new("L", (8, 8)).save(folder / "stray.png")
    with pytest.raises(ValueError, match=r"stray.png has no class"):
        read_folder(folder)


def test_limits(folder):
    with pytest.raises(ValueError, match=r"image 0 \(.*a.PNG\) has 16×8 .* max_pixels=100"):
        read_folder(folder, max_pixels=100)
    with pytest.raises(ValueError, match="first 3 of 4 images have 384 pixels together"):
        read_folder(folder, max_total_pixels=300)
    (folder / "cat" / "c.jpg").write_bytes(b"broken")
    with pytest.raises(ValueError, match=r"image 2 \(.*c.jpg\) cannot be read"):
        read_folder(folder)


def test_csv_table(folder):
    table = folder / "table.csv"
    table.write_text("path,label,value\ndog/b.png,x,1.5\ncat/b.png,y,2\n", encoding="utf-8")
    files = read_table(table, response="value")
    assert [p.parent.name for p in files.images] == ["dog", "cat"]
    assert files.y.tolist() == [1.5, 2.0]
    assert read_table(table, response="label").y.tolist() == ["x", "y"]
    assert read_table(table).y is None


def test_frames_and_mappings(folder):
    pandas = pytest.importorskip("pandas")
    columns = {"file": ["dog/b.png", "cat/b.png"], "y": [1, 0]}
    for table in (columns, pandas.DataFrame(columns)):
        files = read_table(table, "file", "y", folder=folder)
        assert np.array_equal(files.y, [1, 0])
        assert files.images[0] == folder / "dog" / "b.png"


def test_what_a_table_must_not_be(folder):
    with pytest.raises(ValueError, match="the table has no column 'path'; it has file"):
        read_table({"file": []})
    with pytest.raises(ValueError, match="names no image"):
        read_table({"path": []})
    with pytest.raises(FileNotFoundError, match=r"image 1 \(.*gone.png\) does not exist"):
        read_table({"path": ["cat/b.png", "gone.png"]}, folder=folder)
    ragged = folder / "ragged.csv"
    ragged.write_text("path,y\ncat/b.png\n")
    with pytest.raises(ValueError, match=r"ragged.csv cannot be read: .*Expected 2 columns, got 1"):
        read_table(ragged)
