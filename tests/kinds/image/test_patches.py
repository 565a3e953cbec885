"""Images to rows and weights back to pixels, against loops; and what is refused."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from diagatt.images import PatchRows, columns_as_rows, rearrange


def loop(image, patch, stride):
    """Rows of one grey image by the definition."""
    (d1, d2), (s1, s2) = patch, stride
    return np.array(
        [
            image[top : top + d1, left : left + d2].ravel(order="F")
            for left in range(0, image.shape[1] - d2 + 1, s2)
            for top in range(0, image.shape[0] - d1 + 1, s1)
        ]
    )


geometries = st.tuples(
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
    st.lists(st.tuples(st.integers(4, 9), st.integers(4, 9)), min_size=1, max_size=3),
)


@given(geometries, st.integers(0, 99))
def test_rows_of_images_of_varying_size(geometry, seed):
    patch, stride, sizes = geometry
    stride = tuple(np.minimum(stride, patch).tolist())
    rng = np.random.default_rng(seed)
    images = [rng.normal(size=size) for size in sizes]
    patches = PatchRows(patch, stride, padding="crop")
    X = patches.fit_transform(images)
    for rows, image in zip(X, images, strict=True):
        np.testing.assert_array_equal(rows, loop(image, patch, stride))
        for row, (top, left) in zip(rows, patches.corners(image.shape), strict=True):
            assert row[0] == image[top, left]


@given(geometries, st.integers(0, 99))
def test_heat_is_the_sum_of_the_weights_of_the_patches_that_hold_a_pixel(geometry, seed):
    patch, stride, sizes = geometry
    stride = tuple(np.minimum(stride, patch).tolist())
    rng = np.random.default_rng(seed)
    for padding in ("crop", "edge"):
        patches = PatchRows(patch, stride, padding=padding)
        corners = [patches.corners(size) for size in sizes]
        weights = [rng.dirichlet(np.ones(len(c)), 2).T for c in corners]  # (p, 2)
        for heat, size, w, corner in zip(
            patches.inverse(weights, sizes), sizes, weights, corners, strict=True
        ):
            assert heat.shape == (*size, 2)
            place = np.moveaxis(np.indices(size), 0, -1)[:, :, None]  # (H, W, 1, 2)
            holds = ((place >= corner) & (place < corner + patch)).all(axis=-1)  # (H, W, p)
            np.testing.assert_allclose(heat, holds @ w, atol=1e-12)
            assert heat.max() <= 1 + 1e-12


def test_heat_of_tiles_is_a_kronecker_product():
    w = np.random.default_rng(0).dirichlet(np.ones(6))
    heat = PatchRows((2, 3)).inverse([w], [(4, 9)])[0]
    U = w.reshape(2, 3, order="F")
    np.testing.assert_allclose(heat, np.kron(U, np.ones((2, 3))), atol=1e-15)


@pytest.mark.parametrize("shape", [(5, 8, 12), (5, 8, 12, 3)])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64, bool])
def test_one_array_or_a_list_make_the_same_rows(shape, dtype):
    images = (255 * np.random.default_rng(0).random(shape)).astype(dtype)
    patches = PatchRows((4, 6), (2, 3)).fit(images)
    whole, parts = patches.transform(images), patches.transform(list(images))
    assert whole == parts
    assert whole.dtype == (np.float64 if dtype == np.float64 else np.float32)
    tiles = PatchRows((4, 6)).fit_transform(images)
    np.testing.assert_array_equal(tiles[3], rearrange(images[3], (4, 6)))


def test_tensors_and_nested_lists_are_images_too():
    image = np.arange(16.0).reshape(4, 4)
    images = [torch.from_numpy(image), image.tolist(), torch.from_numpy(image).float()]
    X = PatchRows(2).fit_transform(images)
    assert X.dtype == np.float64
    for rows in X:
        np.testing.assert_array_equal(rows, rearrange(image, 2))


@pytest.mark.parametrize("padding", ["edge", "zero"])
def test_padding_extends_below_and_on_the_right(padding):
    image = np.arange(15.0).reshape(3, 5) + 1
    rows = PatchRows(2, padding=padding).fit_transform([image])[0]
    mode = {"edge": "edge", "zero": "constant"}[padding]
    np.testing.assert_array_equal(rows, rearrange(np.pad(image, [(0, 1), (0, 1)], mode=mode), 2))
    stacked = PatchRows(2, padding=padding).fit_transform(image[None])[0]
    np.testing.assert_array_equal(rows, stacked)


def test_cropping_drops_the_rest():
    image = np.arange(15.0).reshape(3, 5)
    rows = PatchRows(2, padding="crop").fit_transform(image[None])[0]
    np.testing.assert_array_equal(rows, rearrange(image[:2, :4], 2))
    heat = PatchRows(2, padding="crop").inverse([[0.5, 0.5]], [image])[0]
    np.testing.assert_array_equal(heat[2], 0)
    np.testing.assert_array_equal(heat[:, 4], 0)


def test_no_copy_where_strides_allow():
    memory = np.random.default_rng(0).random((4, 12, 8))
    upright = memory.swapaxes(1, 2)  # (n, 8, 12), columns stand together in memory
    columns = columns_as_rows(upright)
    assert np.shares_memory(columns.values, memory)
    np.testing.assert_array_equal(columns[2], upright[2].T)
    strips = PatchRows((8, 3)).fit_transform(upright)
    assert np.shares_memory(strips.values, memory)
    np.testing.assert_array_equal(strips[1], rearrange(upright[1], (8, 3)))
    single = np.asfortranarray(memory[0])
    assert np.shares_memory(columns_as_rows(single[None]).values, single)
    pixels = PatchRows(1).fit_transform(upright)
    assert np.shares_memory(pixels.values, memory)
    assert not np.shares_memory(PatchRows(4).fit_transform(upright).values, memory)


def test_columns_of_images_of_varying_width():
    images = [np.arange(6).reshape(2, 3), np.arange(10).reshape(2, 5)]
    X = columns_as_rows(images)
    assert X.lengths.tolist() == [3, 5]
    np.testing.assert_array_equal(X[1], images[1].T)
    with pytest.raises(ValueError, match="image 1 has 3 lines, image 0 has 2"):
        columns_as_rows([np.ones((2, 3)), np.ones((3, 3))])


def test_grey_and_colour_by_choice():
    rng = np.random.default_rng(0)
    mixed = [rng.random((4, 4)), rng.random((4, 4, 3)), rng.random((4, 4, 4))]
    grey = PatchRows(2, channels="grey").fit_transform(mixed)
    assert grey.n_features == 4
    luminance = mixed[1] @ [0.299, 0.587, 0.114]
    np.testing.assert_allclose(grey[1], rearrange(luminance, 2), rtol=1e-12)
    colour = PatchRows(2, channels="colour").fit_transform(mixed)
    assert colour.n_features == 12
    np.testing.assert_array_equal(colour[0], np.tile(rearrange(mixed[0], 2), 3))
    np.testing.assert_array_equal(colour[2], rearrange(mixed[2][..., :3], 2))


def test_scikit_learn_conventions():
    patches = PatchRows((2, 3), stride=1, padding="zero")
    twin = clone(patches)
    assert twin.get_params() == patches.get_params()
    patches.fit(np.zeros((1, 4, 6, 3)))
    names = patches.get_feature_names_out()
    assert len(names) == patches.n_features_out_ == 18
    assert names[:3].tolist() == ["pixel_0_0_0", "pixel_1_0_0", "pixel_0_1_0"]


def spoiled(shape=(3, 4, 4), value=np.nan):
    images = np.ones(shape)
    images[1, 2, 3] = value
    return images


BAD_INPUT = {
    "no pixels": (lambda: [np.ones((4, 4)), np.ones((0, 4))], "image 1 has no pixels"),
    "an empty batch of images": (lambda: np.ones((2, 0, 4)), "image 0 has no pixels"),
    "small": (lambda: [np.ones((4, 4)), np.ones((1, 4))], "image 1 has 1×4 .* less than one patch"),
    "small batch": (lambda: np.ones((2, 4, 1)), "image 0 has 4×1 .* less than one patch"),
    "uneven": (lambda: [np.ones((4, 4)), np.ones((4, 5))], r"image 1 has 4×5 .*padding=\"crop\""),
    "mixed": (lambda: [np.ones((4, 4)), np.ones((4, 4, 3))], "image 1 has 3 channels, the first"),
    "NaN": (lambda: list(spoiled()), r"image 1 contains NaN at pixel \(2, 3\)"),
    "NaN in a batch": (spoiled, r"image 1 contains NaN at pixel \(2, 3\)"),
    "infinity": (lambda: spoiled(value=np.inf), "image 1 contains infinity"),
    "one image alone": (lambda: np.ones((4, 4)), r"a single image as a list, \[image\]"),
    "five axes": (lambda: [np.ones((4, 4, 3, 2))], "image 0 has shape"),
    "complex": (lambda: [np.ones((4, 4), complex)], "image 0 has dtype complex128"),
    "words": (lambda: [np.array([["a", "b"], ["c", "d"]])], "image 0 has dtype <U1"),
    "none": (list, "there are no images"),
    "large": (lambda: np.ones((1, 40, 40)), "image 0 has 40×40 .* more than max_pixels=1000"),
    "large second": (lambda: [np.ones((4, 4)), np.ones((40, 40))], "image 1 has 40×40 pixels"),
}


@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_images_are_named(case):
    images, message = BAD_INPUT[case]
    with pytest.raises(ValueError, match=message):
        PatchRows(2, max_pixels=1000).fit_transform(images())


def test_large_finite_pixels_are_not_taken_for_infinity():
    images = np.full((2, 4, 4), 3e38, dtype=np.float32)
    assert PatchRows(2).fit_transform(images).n_rows == 8


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"patch": 0}, "patch must be one or two whole numbers of pixels, at least one, got 0"),
        ({"patch": (2, 2.5)}, "must be one or two whole numbers"),
        ({"patch": (2, 2, 2)}, "must be one or two whole numbers"),
        ({"patch": 2, "stride": 3}, "larger than patch"),
        ({"padding": "mirror"}, "padding must be 'error', .* got 'mirror'"),
        ({"channels": "red"}, "channels must be None, .* got 'red'"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        PatchRows(**parameters).fit_transform(np.ones((1, 8, 8)))


def test_weights_that_do_not_fit_an_image():
    with pytest.raises(ValueError, match="image 0 has 4 patches, its weights have shape"):
        PatchRows(2).inverse([np.ones(3)], [(4, 4)])
    with pytest.raises(ValueError, match="2 sets of weights for 1 images"):
        PatchRows(2).inverse([np.ones(4)] * 2, [(4, 4)])


@pytest.mark.parametrize("images", [{"a.png", "b.png"}, {"a": np.eye(2)}.values(), iter([])])
def test_images_have_an_order(images):
    with pytest.raises(TypeError, match="images must be an array or a sequence of images, got "):
        PatchRows(1).fit(images)
