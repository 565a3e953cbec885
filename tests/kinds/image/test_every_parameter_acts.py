"""No parameter of what reads images is idle: it changes the result, or is refused.

The parameters are those of `__init__`; one without a case below fails.
"""

import numpy as np
import pandas as pd
import pytest

from diagatt import DiagAttClassifier, DiagAttRegressor, PooledClassifier, PooledRegressor
from diagatt.images import ImageClassifier, ImageRegressor, PatchRows
from diagatt.solvers import Gradient
from tests.solvers.test_every_parameter_acts import differ, parameters_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

GREY = np.random.default_rng(0).normal(size=(30, 6, 6))
COLOUR = np.random.default_rng(1).integers(0, 255, size=(30, 6, 6, 3), dtype=np.uint8)
Y = np.arange(30) % 2
# What else is set, the images, and the value that must make a difference; a text says why it is
# refused.
PATCHES = {
    "patch": ({"patch": 2}, GREY, 3, None),
    "stride": ({"patch": 2}, GREY, 1, None),
    "padding": ({"patch": 4, "padding": "edge"}, GREY, "zero", None),
    "channels": ({"patch": 2}, list(COLOUR), "grey", None),
    "max_pixels": ({"patch": 2}, GREY, 10, "max_pixels"),
}
KINDS = {
    ImageClassifier: (DiagAttClassifier, PooledClassifier),
    ImageRegressor: (DiagAttRegressor, PooledRegressor),
}
SHORT = Gradient(optimizer="adam", max_epochs=2, batch_size=8)


def rows_of(images, **given):
    found = PatchRows(**given).fit(images).transform(images)
    return {"values": found.values, "offsets": found.offsets}


def predictions(kind, images, **given):
    options = {"patch": 2, "estimator": KINDS[kind][0](solver=SHORT), "random_state": 0}
    model = kind(**{**options, **given}).fit(images, Y)
    predict = getattr(model, "predict_proba", model.predict)
    return {"predict": predict(images)}


@pytest.mark.parametrize("name", PatchRows._get_param_names())
def test_every_parameter_of_patches_acts(name):
    others, images, value, refusal = PATCHES[name]
    if refusal:
        with pytest.raises(ValueError, match=refusal):
            rows_of(images, **others, **{name: value})
        return
    assert differ(rows_of(images, **others), rows_of(images, **{**others, name: value}))


@pytest.mark.parametrize(("kind", "name"), parameters_of(KINDS))
def test_every_parameter_of_an_estimator_of_images_acts(kind, name):
    cases = {
        **PATCHES,
        "estimator": ({}, GREY, KINDS[kind][1](), None),
        "random_state": ({}, GREY, 1, None),
    }
    others, images, value, refusal = cases[name]
    if refusal:
        with pytest.raises(ValueError, match=refusal):
            predictions(kind, images, **others, **{name: value})
        return
    before = predictions(kind, images, **others)
    assert not differ(before, predictions(kind, images, **others))
    assert differ(before, predictions(kind, images, **{**others, name: value}))


@pytest.mark.parametrize(("kind", "name"), parameters_of([PatchRows, *KINDS]))
def test_every_parameter_has_values_that_are_refused(kind, name):
    with pytest.raises(ValueError, match=rf"{name} must be .*, got <object"):
        kind(**{name: object()}).fit(GREY, Y)


def test_responses_in_another_order_than_the_images_are_refused():
    ids = [f"scan {i:02d}" for i in range(30)]
    images, y = pd.Series(list(GREY), index=ids), pd.Series(Y, index=ids)
    model = ImageClassifier(2, estimator=PooledClassifier())
    aligned = model.fit(images, y).predict(images)
    np.testing.assert_array_equal(model.fit(GREY, Y).predict(GREY), aligned)
    with pytest.raises(ValueError, match=r"y\[0\] is labelled 'scan 29', but sample 0 of X is"):
        model.fit(images, y[::-1])
