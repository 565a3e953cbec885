"""Digits on canvases: what stands where, and that training tells nothing about the test digits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from diagatt.datasets.canvas import digit_canvas
from diagatt.images import PatchRows

DIGITS = load_digits()


@settings(max_examples=20)
@given(
    st.integers(0, 1000),
    st.booleans(),
    st.sampled_from(["noise", "texture"]),
    st.sampled_from([16, (8, 24), ((16, 32), (8, 40))]),
)
def test_without_noise_the_canvas_is_the_digit_and_nothing_else(seed, on_grid, background, size):
    options = {"size": size, "on_grid": on_grid, "background": background, "noise": 0.0}
    for part in digit_canvas(5, 5, digits=range(10), seed=seed, **options):
        for image, (top, left), source, y in zip(
            part.images, part.corners, part.sources, part.y, strict=True
        ):
            expected = np.zeros_like(image)
            expected[top : top + 8, left : left + 8] = DIGITS.images[source] / 16
            np.testing.assert_array_equal(image, expected)
            assert y == DIGITS.target[source]
            if on_grid:
                assert top % 8 == left % 8 == 0
                assert not np.any(np.array(image.shape) % 8)


def test_no_digit_stands_in_training_and_test():
    train, test = digit_canvas(3000, 1000, digits=range(10), size=8, seed=3)
    assert not set(train.sources) & set(test.sources)
    assert set(train.y) == set(test.y) == set(range(10))


def test_the_same_seed_gives_the_same_images():
    first, second, other = (digit_canvas(5, 5, seed=s)[0] for s in (1, 1, 2))
    np.testing.assert_array_equal(first.images, second.images)
    assert not np.array_equal(first.images, other.images)


def test_positions_cover_the_grid_evenly():
    train, _ = digit_canvas(6400, 1, size=(16, 32), seed=0)
    counts = np.bincount(np.concatenate(train.true_rows(PatchRows(8))), minlength=8)
    assert counts.sum() == 6400
    assert ((counts - 800) ** 2 / 800).sum() < 24.3  # χ², 7 degrees of freedom, 0.1 %


@pytest.mark.parametrize("background", ["noise", "texture"])
def test_backgrounds_have_the_asked_spread(background):
    train, _ = digit_canvas(50, 1, background=background, noise=0.3, seed=0)
    far = np.array([image.copy() for image in train.images])
    for image, (top, left) in zip(far, train.corners, strict=True):
        image[top : top + 8, left : left + 8] = np.nan
    assert np.nanstd(far) == pytest.approx(0.3, rel=0.03)
    neighbours = np.nanmean(far[:, 1:] * far[:, :-1]) / np.nanvar(far)
    assert abs(neighbours) < 0.02 if background == "noise" else neighbours > 0.5


def test_the_true_row_is_the_patch_with_the_digit():
    for part in digit_canvas(30, 30, size=((16, 40), (16, 40)), noise=0.0, seed=5):
        patches = PatchRows(8)
        X = patches.fit_transform(part.images)
        for rows, true, source in zip(X, part.true_rows(patches), part.sources, strict=True):
            assert len(true) == 1
            np.testing.assert_array_equal(
                rows[true[0]], (DIGITS.images[source] / 16).astype(np.float32).ravel(order="F")
            )


def overlaps(image, corner, patch, stride):
    """Pixels that every patch shares with the digit, counted one by one."""
    marked = np.zeros(image.shape)
    marked[corner[0] : corner[0] + 8, corner[1] : corner[1] + 8] = 1
    return PatchRows(patch, stride).fit_transform([marked])[0].sum(axis=1)


@pytest.mark.parametrize(("stride", "share"), [(1, 1.0), (2, 1.0), (4, 1.0), (2, 0.5)])
def test_off_the_grid_the_true_rows_hold_most_of_the_digit(stride, share):
    part, _ = digit_canvas(20, 1, size=24, on_grid=False, seed=2)
    truth = part.true_rows(PatchRows(8, stride), share)
    for image, corner, rows in zip(part.images, part.corners, truth, strict=True):
        shared = overlaps(image, corner, 8, stride)
        np.testing.assert_array_equal(rows, np.flatnonzero(shared >= share * shared.max()))
        if stride == 1:
            assert len(rows) == 1
            assert shared[rows[0]] == 64


def test_hit_rate_counts_images():
    part, _ = digit_canvas(4, 1, size=16, seed=0)
    patches = PatchRows(8)
    rows = np.concatenate(part.true_rows(patches))
    wrong = (rows + 1) % 4
    assert part.hit_rate(patches, rows[:, None]) == 1
    assert part.hit_rate(patches, np.r_[rows[:1], wrong[1:]][:, None]) == 0.25
    assert part.hit_rate(patches, np.stack([wrong, rows], axis=1)) == 1


def test_regression_is_driven_by_the_patch():
    train, test = digit_canvas(2000, 50, task="regression", digits=range(10), size=16, seed=1)
    np.testing.assert_array_equal(train.coefficient, test.coefficient)
    squares = np.stack(
        [
            image[i : i + 8, j : j + 8]
            for image, (i, j) in zip(train.images, train.corners, strict=True)
        ]
    )
    residual = train.y - np.tensordot(squares, train.coefficient)
    assert residual.std() == pytest.approx(0.1, rel=0.1)
    assert train.y.std() > 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"digits": (1, 11)}, "must be distinct numbers from 0 to 9"),
        ({"digits": (1, 1)}, "must be distinct"),
        ({"digits": (1,)}, "at least two digits"),
        ({"size": 60}, "multiples of 8, or on_grid=False"),
        ({"size": 4, "on_grid": False}, "at least 8 pixels"),
        ({"size": ((32, 16), (8, 8))}, "a range starts above its end"),
        ({"task": "ranking"}, "task='ranking' is unknown"),
        ({"background": "sky"}, "background='sky' is unknown"),
        ({"noise": -1.0}, "must be 0 or more"),
        ({"n_test": 0}, "must be at least 1"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        digit_canvas(**{"n_train": 2, "n_test": 2, **options})
