"""Image files: what is read, and what is refused before it is decoded."""

import struct
import sys
import zlib

import numpy as np
import pytest
from PIL import Image, ImageOps

from diagatt.images import PatchRows, read_image
from diagatt.kinds.image.reading import image_size

rng = np.random.default_rng(0)
GREY = rng.integers(0, 256, (6, 8), dtype=np.uint8)
COLOUR = rng.integers(0, 256, (6, 8, 3), dtype=np.uint8)


@pytest.mark.parametrize("suffix", ["png", "bmp", "tiff", "webp", "ppm", "gif"])
def test_files_give_back_their_pixels(tmp_path, suffix):
    pixels = GREY if suffix == "gif" else COLOUR
    path = tmp_path / f"a.{suffix}"
    Image.fromarray(pixels).save(path, **({"lossless": True} if suffix == "webp" else {}))
    read = read_image(path, "grey" if suffix == "gif" else None)
    np.testing.assert_allclose(read, pixels, atol=1e-4)
    assert image_size(str(path)) == (6, 8)


def test_paths_arrays_and_pillow_make_the_same_rows(tmp_path):
    path = tmp_path / "a.png"
    Image.fromarray(COLOUR).save(path)
    X = PatchRows((3, 4)).fit_transform([path, str(path), Image.open(path), COLOUR])
    for rows in X:
        np.testing.assert_array_equal(rows, X[3])


@pytest.mark.parametrize(
    ("mode", "shape", "expected"),
    [("1", (6, 8), 255), ("P", (6, 8, 3), 255), ("RGBA", (6, 8, 4), 255), ("I;16", (6, 8), 40000)],
)
def test_modes(tmp_path, mode, shape, expected):
    if mode == "I;16":
        image = Image.fromarray(np.full((6, 8), 40000, np.uint16))
    else:
        image = Image.new("RGB", (8, 6), "white").convert(mode)
    image.save(tmp_path / "a.png")
    pixels = read_image(tmp_path / "a.png")
    assert pixels.shape == shape
    assert (pixels == expected).all()


@pytest.mark.parametrize("suffix", ["png", "jpg", "tiff", "webp"])
@pytest.mark.parametrize("mark", range(1, 9))
def test_a_cameras_orientation_is_obeyed(tmp_path, suffix, mark):
    path, exif = tmp_path / f"a.{suffix}", Image.Exif()
    exif[0x0112] = mark
    Image.fromarray(COLOUR).save(path, exif=exif)
    with Image.open(path) as image:
        expected = np.asarray(ImageOps.exif_transpose(image))
    np.testing.assert_array_equal(read_image(path), expected)
    assert image_size(path) == expected.shape[:2]


def bomb(path, width, height):
    """A PNG of a hundred bytes that promises a huge image."""

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    data = zlib.compress(b"\0" * 100)
    parts = [chunk(b"IHDR", header), chunk(b"IDAT", data), chunk(b"IEND", b"")]
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(parts))
    return path


@pytest.mark.filterwarnings("error::PIL.Image.DecompressionBombWarning")
def test_a_hundred_megapixels_are_refused_before_decoding(tmp_path, monkeypatch):
    path = bomb(tmp_path / "bomb.png", 10_000, 10_000)

    def decode(self):
        raise AssertionError("decoded")

    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", decode)
    with pytest.raises(ValueError, match=r"image 0 \(.*bomb.png\) has 10000×10000 pixels, more"):
        PatchRows().fit([path])
    small = GREY.repeat(8, axis=0).repeat(8, axis=1)
    with pytest.raises(ValueError, match=r"image 1 \(.*bomb.png\) has 10000×10000 pixels, more"):
        PatchRows().fit([small]).transform([small, path])
    assert image_size(path) == (10_000, 10_000)  # the header alone does no harm
    monkeypatch.setattr("PIL.Image.MAX_IMAGE_PIXELS", None)
    with pytest.raises(ValueError, match="image 0 has 10000×10000 pixels, more than max_pixels"):
        PatchRows().fit([Image.open(path)])  # Pillow images are lazy too


def test_pillows_own_refusal_is_named(tmp_path):
    path = bomb(tmp_path / "huge.png", 30_000, 30_000)
    with pytest.raises(ValueError, match=r"huge.png\) is refused as a decompression bomb"):
        PatchRows(max_pixels=10**10).fit([path])


def test_damaged_files_are_named(tmp_path):
    whole, cut, noise = (tmp_path / name for name in ("whole.png", "cut.png", "noise.png"))
    Image.fromarray(rng.integers(0, 256, (64, 64), dtype=np.uint8)).save(whole)
    cut.write_bytes(whole.read_bytes()[:2000])
    noise.write_bytes(b"not an image")
    patches = PatchRows().fit([whole])
    with pytest.raises(ValueError, match=r"image 1 \(.*cut.png\) is damaged.*drop it"):
        patches.transform([whole, cut])
    with pytest.raises(ValueError, match=r"image 1 \(.*noise.png\) cannot be read"):
        patches.transform([whole, noise])
    with pytest.raises(FileNotFoundError, match=r"image 1 \(.*gone.png\) does not exist"):
        patches.transform([whole, tmp_path / "gone.png"])


def test_formats_that_start_programs_are_refused(tmp_path):
    path = tmp_path / "a.eps"
    Image.fromarray(GREY).save(path)
    with pytest.raises(ValueError, match="cannot be read as BMP, GIF"):
        read_image(path)


def test_without_pillow_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match=r'pip install "diagatt\[images\]"'):
        read_image(tmp_path / "a.png")


def test_other_channel_numbers_are_not_guessed():
    with pytest.raises(ValueError, match="the image has 7 channels: only 1"):
        read_image(np.ones((2, 2, 7)), "grey")
    assert read_image(np.ones((2, 2, 7))).shape == (2, 2, 7)
