"""Image pipelines: they find the digit, whatever the background, and survive a file."""

import numpy as np
import pytest
from PIL import Image
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from diagatt import (
    DiagAttClassifier,
    DiagAttRegressor,
    ModelFileError,
    PooledClassifier,
    RaggedRows,
    modelfile,
)
from diagatt.datasets.canvas import digit_canvas
from diagatt.images import ImageClassifier, ImageRegressor, kronecker_sum, rearrange

EM = {"solver": "likelihood", "random_state": 0}  # quick


def test_the_default_finds_and_reads_the_digit(fitted, canvases):
    _, test = canvases
    assert test.hit_rate(fitted.patches_, fitted.locate(test.images)) >= 0.95
    assert fitted.score(test.images, test.y) >= 0.95


@pytest.mark.parametrize("background", ["noise", "texture"])
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_any_background_even_a_constant_one(background, noise):
    train, test = digit_canvas(600, 200, size=32, background=background, noise=noise, seed=1)
    model = ImageClassifier(estimator=DiagAttClassifier(**EM)).fit(train.images, train.y)
    assert test.hit_rate(model.patches_, model.locate(test.images)) >= 0.95
    assert model.score(test.images, test.y) >= 0.9


def test_regression_recovers_the_coefficient_matrix():
    train, test = digit_canvas(
        1500, 200, task="regression", size=((16, 40), (16, 40)), digits=range(10), seed=0
    )
    model = ImageRegressor(estimator=DiagAttRegressor(**EM)).fit(train.images, train.y)
    assert test.hit_rate(model.patches_, model.locate(test.images)) >= 0.95
    assert model.score(test.images, test.y) >= 0.95
    (V,) = model.coefficient_matrices()
    assert np.corrcoef(V.ravel(), train.coefficient.ravel())[0, 1] > 0.99


def test_off_the_grid_with_overlapping_patches():
    train, test = digit_canvas(800, 200, digits=(0, 1), size=20, on_grid=False, seed=0)
    model = ImageClassifier(8, 2, estimator=DiagAttClassifier(**EM)).fit(train.images, train.y)
    # A neighbour two pixels off still holds three quarters of the digit.
    assert test.hit_rate(model.patches_, model.locate(test.images), share=0.7) >= 0.9
    assert model.score(test.images, test.y) >= 0.9


def test_pixels_in_other_units_change_nothing(canvases):
    train, test = canvases
    model = ImageClassifier(estimator=DiagAttClassifier(**EM)).fit(train.images, train.y)
    other = clone(model).fit(50 * train.images.astype(float) + 100, train.y)
    probabilities = other.predict_proba(50 * test.images.astype(float) + 100)
    np.testing.assert_allclose(probabilities, model.predict_proba(test.images), atol=1e-3)
    np.testing.assert_allclose(
        50 * other.coefficient_matrices(), model.coefficient_matrices(), rtol=0.01, atol=0.01
    )


def test_moving_blocks_moves_the_answer(fitted, canvases):
    image = canvases[1].images[0]
    blocks = image.reshape(4, 8, 4, 8)
    turned = np.roll(blocks, (1, 2), axis=(0, 2)).reshape(32, 32)
    (box,), (moved,) = fitted.boxes([image])[0], fitted.boxes([turned])[0]
    np.testing.assert_array_equal((box[:2] + np.array([8, 16])) % 32, moved[:2])
    np.testing.assert_allclose(
        fitted.predict_proba([image]), fitted.predict_proba([turned]), rtol=1e-4
    )


def test_heat_and_boxes_lie_on_the_pixels(fitted, canvases):
    images = canvases[1].images[:5]
    heats, boxes = fitted.heatmap(images), fitted.boxes(images)
    rows = fitted.rows(images)
    for image, heat, box, row, own in zip(
        images, heats, boxes, fitted.locate(images), rows, strict=True
    ):
        top, left, bottom, right = box[0]
        inside = heat[top:bottom, left:right, 0]
        assert (inside == heat.max()).all()
        patch = (image[top:bottom, left:right] - fitted.pixel_mean_) / fitted.pixel_scale_
        np.testing.assert_allclose(own[row[0]], patch.ravel(order="F"), rtol=1e-4, atol=1e-5)
        assert heat.sum() == pytest.approx(64, rel=1e-4)  # weights sum to 1, 64 pixels each


def test_the_prediction_is_a_kronecker_product(canvases):
    """The linear predictor is ⟨X̃, Σ U_k ⊗ V_k⟩ with U the attention, up to one constant.

    It is so for one attention of the pooled row; the default blends several models.
    """
    one = DiagAttClassifier(solver="gradient", random_state=0)
    fitted = ImageClassifier((8, 8), estimator=one).fit(canvases[0].images, canvases[0].y)
    images = canvases[1].images[:20].astype(np.float64)
    V, weights = fitted.coefficient_matrices(), fitted.attention(images)
    inner = [
        np.vdot(image, kronecker_sum([w[:, 0].reshape(4, 4, order="F")], V))
        for image, w in zip(images, weights, strict=True)
    ]
    difference = fitted.decision_function(images) - inner
    np.testing.assert_allclose(difference, difference[0], atol=1e-3)


def test_the_rows_are_those_of_the_paper(fitted, canvases):
    image = canvases[1].images[0]
    rows = fitted.rows([image])
    assert isinstance(rows, RaggedRows)
    expected = (rearrange(image, 8) - fitted.pixel_mean_) / fitted.pixel_scale_
    np.testing.assert_allclose(rows[0], expected, rtol=1e-4, atol=1e-5)


def test_files_of_colour_images(tmp_path, canvases):
    train, _ = canvases
    levels = np.clip(128 + 100 * train.images, 0, 255).astype(np.uint8)[:300]
    paths = []
    for i, level in enumerate(levels):
        paths.append(tmp_path / f"{i}.png")
        Image.fromarray(np.dstack([level, 255 - level, level])).save(paths[-1])
    model = ImageClassifier(channels="grey", estimator=DiagAttClassifier(**EM))
    model.fit(paths, train.y[:300])
    rows = np.array([t[0] for t in train.true_rows(model.patches_)[:300]])
    assert np.mean(model.locate(paths)[:, 0] == rows) > 0.9
    assert model.heatmap(paths[:1])[0].shape == (32, 32, 1)


def test_a_file_keeps_everything(tmp_path, fitted, canvases):
    images = canvases[1].images
    fitted.save(tmp_path / "m.safetensors")
    loaded = ImageClassifier.load(tmp_path / "m.safetensors")
    assert loaded.get_params(deep=False) == fitted.get_params(deep=False)
    np.testing.assert_array_equal(loaded.predict_proba(images), fitted.predict_proba(images))
    np.testing.assert_array_equal(loaded.locate(images), fitted.locate(images))
    np.testing.assert_array_equal(loaded.heatmap(images[:1])[0], fitted.heatmap(images[:1])[0])
    np.testing.assert_array_equal(loaded.classes_, fitted.classes_)


def test_a_file_keeps_another_estimator(tmp_path, canvases):
    train, test = canvases
    inner = PooledClassifier("mean+max", ridge=3.0, n_located=1)
    model = ImageClassifier(8, 4, estimator=inner).fit(train.images[:100], train.y[:100])
    model.save(tmp_path / "m")
    loaded = ImageClassifier.load(tmp_path / "m")
    assert loaded.estimator.get_params() == inner.get_params()
    np.testing.assert_array_equal(loaded.predict(test.images), model.predict(test.images))
    np.testing.assert_array_equal(loaded.boxes(test.images), model.boxes(test.images))
    with pytest.raises(AttributeError, match="has no attribute 'heatmap'"):
        loaded.heatmap(test.images)
    with pytest.raises(TypeError, match="PooledClassifier has no value vector"):
        loaded.coefficient_matrices()


def test_wrong_files_are_refused(tmp_path, fitted):
    path = tmp_path / "m"
    fitted.save(path)
    with pytest.raises(ModelFileError, match=r"holds a ImageClassifier: load it with"):
        ImageRegressor.load(path)
    with pytest.raises(ModelFileError, match="is not a saved estimator but a pipeline"):
        DiagAttClassifier.load(path)
    tensors, document = modelfile.read(path)
    document["estimator"]["class"] = "NoRowOfInterestWarning"
    modelfile.write(path, tensors, document)
    with pytest.raises(ModelFileError, match="holds a NoRowOfInterestWarning"):
        ImageClassifier.load(path)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="damaged"):
        ImageClassifier.load(path)


def test_a_foreign_estimator_is_fitted_but_not_saved(tmp_path, canvases):
    class Mine(PooledClassifier):
        pass

    train, _ = canvases
    model = ImageClassifier(estimator=Mine()).fit(train.images[:50], train.y[:50])
    with pytest.raises(TypeError, match=r"Mine cannot be saved.*one of diagatt's own"):
        model.save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_pixel_scale_is_that_of_all_pixels():
    rng = np.random.default_rng(0)
    images = rng.normal(50, 3, size=(20, 8, 16)).astype(np.float32)
    model = ImageClassifier(patch=np.array([4, 4]), estimator=PooledClassifier())
    model.fit(images, np.arange(20) % 2)
    assert model.pixel_mean_ == pytest.approx(images.mean(dtype=float), rel=1e-6)
    assert model.pixel_scale_ == pytest.approx(images.std(dtype=float), rel=1e-5)
    model.fit(np.full((4, 8, 8), np.float32(0.1)), [0, 1, 0, 1])
    assert model.pixel_scale_ == 1.0


@pytest.mark.parametrize("pixel", [0.1, 0.3, 1000.1])
def test_rounding_noise_of_constant_images_is_not_their_scale(pixel):
    """In float64 the standard deviation of equal pixels is 1e-17 or 1e-13, not 0."""
    images = np.full((4, 8, 8), pixel)
    model = ImageClassifier(4, estimator=PooledClassifier()).fit(images, [0, 1, 0, 1])
    assert model.pixel_scale_ == 1.0
    assert abs(model.rows(images).values).max() <= 1e-12


def test_a_patch_given_as_an_array_survives_a_file(tmp_path, canvases):
    train, _ = canvases
    model = ImageClassifier(patch=np.array([4, 8]), estimator=PooledClassifier())
    model.fit(train.images[:20], train.y[:20]).save(tmp_path / "m")
    loaded = ImageClassifier.load(tmp_path / "m")
    assert loaded.patch == (4, 8)
    np.testing.assert_array_equal(loaded.predict(train.images), model.predict(train.images))


def test_scikit_learn_conventions(canvases):
    train, _ = canvases
    inner = PooledClassifier()
    model = ImageClassifier(estimator=inner)
    assert model.get_params()["estimator__ridge"] == 1.0
    twin = clone(model.set_params(estimator__ridge=2.0, patch=4))
    assert (twin.estimator.ridge, twin.patch) == (2.0, 4)
    twin.fit(train.images[:50], train.y[:50], sample_weight=np.ones(50))
    assert not hasattr(twin.estimator, "coef_")
    with pytest.raises(NotFittedError):
        ImageClassifier().predict(train.images)


def test_bad_images_are_named_at_prediction(fitted, canvases):
    images = canvases[1].images[:3].copy()
    images[1, 0, 5] = np.nan
    with pytest.raises(ValueError, match=r"image 1 contains NaN at pixel \(0, 5\)"):
        fitted.predict(images)
    with pytest.raises(ValueError, match="image 0 has 3 channels, the first training image has 1"):
        fitted.predict(np.ones((1, 32, 32, 3)))
