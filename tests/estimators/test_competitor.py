"""What every competitor promises: input types, files, tuning, weights, refusals."""

import numpy as np
import pytest
from sklearn.base import clone, is_classifier

from diagatt.competitors.group_lasso import GroupLassoClassifier, GroupLassoRegressor
from diagatt.competitors.mdsp import MDSPClassifier, MDSPRegressor
from diagatt.competitors.standard import StdAttClassifier, StdAttRegressor
from diagatt.competitors.two_step import TwoStepClassifier, TwoStepRegressor
from diagatt.estimators.gated import GatedAttentionClassifier, GatedAttentionRegressor
from diagatt.estimators.pooled import PooledClassifier, PooledRegressor
from tests.estimators.samples import ragged, responses

SMALL = {"random_state": 0, "n_located": 2}
MODELS = [
    PooledRegressor(**SMALL),
    PooledClassifier(**SMALL),
    GroupLassoRegressor(**SMALL),
    GroupLassoClassifier(**SMALL),
    TwoStepRegressor(**SMALL),
    TwoStepClassifier(**SMALL),
    StdAttRegressor(score_ridge=10.0, **SMALL),
    StdAttClassifier(score_ridge=10.0, **SMALL),
    GatedAttentionRegressor(4, score_ridge=10.0, **SMALL),
    GatedAttentionClassifier(4, score_ridge=10.0, **SMALL),
    MDSPRegressor(max_steps=10, **SMALL),
    MDSPClassifier(max_steps=10, **SMALL),
]
WEIGHTED = [m for m in MODELS if not isinstance(m, TwoStepRegressor | TwoStepClassifier)]
WEIGHTED = [m for m in WEIGHTED if not isinstance(m, MDSPRegressor | MDSPClassifier)]
X = ragged(n=40, d=3, longest=4)

each = pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)


def y_of(model, kind="three"):
    return responses(X, kind if is_classifier(model) else "gaussian")


def known(model, y):
    """MDSP is shown the responses."""
    return (y,) if isinstance(model, MDSPRegressor | MDSPClassifier) else ()


def predictions(model, samples, y):
    shown = known(model, y)
    predict = model.predict_proba if is_classifier(model) else model.predict
    return predict(samples, *shown), model.locate(samples, *shown)


@each
def test_input_types_give_the_same_fit(model):
    y = y_of(model)
    expected = predictions(clone(model).fit(X, y), X, y)
    samples = list(X)
    for same in (samples, tuple(samples), np.array([*samples, None], dtype=object)[:-1]):
        got = predictions(clone(model).fit(same, y), same, y)
        np.testing.assert_allclose(got[0], expected[0])
        np.testing.assert_array_equal(got[1], expected[1])


@each
def test_saved_and_loaded_model_is_the_same(model, tmp_path):
    y = y_of(model)
    fitted = clone(model).fit(X, y)
    fitted.save(tmp_path / "model.safetensors")
    loaded = type(model).load(tmp_path / "model.safetensors")
    for before, after in zip(*(predictions(m, X, y) for m in (fitted, loaded)), strict=True):
        np.testing.assert_array_equal(before, after)
    assert vars(loaded).keys() == vars(fitted).keys()


@each
def test_locate_names_rows_that_exist(model):
    y = y_of(model)
    _, located = predictions(clone(model).fit(X, y), X, y)
    assert located.shape == (40, 2)
    assert located.dtype.kind == "i"
    assert (located < X.lengths[:, None]).all()
    assert (np.sum(located >= 0, axis=1) == np.minimum(X.lengths, 2)).all()
    assert all(len(set(rows)) == 2 for rows in located.tolist())


@each
def test_prediction_of_a_sample_does_not_depend_on_its_company(model):
    y = y_of(model)
    fitted = clone(model).fit(X, y)
    together = predictions(fitted, X, y)
    for i in range(0, 40, 9):
        alone = predictions(fitted, X[i : i + 1], y[i : i + 1])
        np.testing.assert_allclose(alone[0][0], together[0][i], rtol=1e-6, atol=1e-9)
        np.testing.assert_array_equal(alone[1][0], together[1][i])


@each
def test_float32_is_close_to_float64(model):
    y = y_of(model, "two")
    single = predictions(clone(model).fit(X.astype(np.float32), y), X.astype(np.float32), y)
    double = predictions(clone(model).fit(X, y), X, y)
    np.testing.assert_allclose(single[0], double[0], atol=5e-3)


@pytest.mark.parametrize("model", WEIGHTED, ids=lambda m: type(m).__name__)
def test_weight_zero_is_absence_and_weight_two_is_repetition(model):
    y = y_of(model)
    weights = np.ones(40)
    weights[3:9], weights[20:25] = 0, 2
    chosen = np.repeat(np.arange(40), weights.astype(int))
    weighted = predictions(clone(model).fit(X, y, sample_weight=weights), X, y)[0]
    repeated = predictions(clone(model).fit(X[chosen], y[chosen]), X, y)[0]
    np.testing.assert_allclose(weighted, repeated, atol=1e-4)


@each
def test_open_parameters_are_tuned_then_refitted_on_all(model):
    y = y_of(model)
    name, grid = next(iter(model.grids.items()))
    values = list(grid[:2])
    tuned = clone(model).set_params(**{name: values}, selection=3).fit(X, y)
    tried = {r[f"{name}_"]: r["loss"] for r in tuned.selection_}
    assert set(tried) == set(values)
    assert all(len(r["folds"]) == 3 for r in tuned.selection_)
    best = min(tuned.selection_, key=lambda r: r["loss"])
    fixed = {n: best[f"{n}_"] for n in model.grids}
    assert all(getattr(tuned, f"{n}_") == value for n, value in fixed.items())
    refitted = clone(model).set_params(**fixed).fit(X, y)
    np.testing.assert_allclose(
        predictions(tuned, X, y)[0], predictions(refitted, X, y)[0], atol=1e-8
    )


BAD = [
    ({"n_located": 0}, "n_located must be a whole number of at least 1, got 0"),
    ({"selection": 1}, "selection must be 'holdout' or a whole number of at least 2, got 1"),
]


@each
@pytest.mark.parametrize(("parameters", "message"), BAD)
def test_impossible_settings_are_refused(model, parameters, message):
    name, grid = next(iter(model.grids.items()))
    with pytest.raises(ValueError, match=message):
        clone(model).set_params(**{name: list(grid[:2])}, **parameters).fit(X, y_of(model))


@each
def test_an_empty_list_of_values_is_refused(model):
    name = next(iter(model.grids))
    with pytest.raises(ValueError, match=rf"{name} must be .* or 'auto', got \[\]"):
        clone(model).set_params(**{name: []}).fit(X, y_of(model))


@each
def test_bad_samples_are_refused_by_number(model):
    samples = [np.array(s) for s in X]
    samples[7][0, 1] = np.nan
    with pytest.raises(ValueError, match="sample 7, row 0 contains NaN"):
        clone(model).fit(samples, y_of(model))


def test_family_of_classes_is_refused_for_numbers():
    with pytest.raises(ValueError, match="family 'bernoulli' is for classes"):
        PooledRegressor(family="bernoulli").fit(X, responses(X))


def test_response_outside_its_family_is_refused():
    with pytest.raises(ValueError, match="outside the range of the poisson family"):
        StdAttRegressor(family="poisson").fit(X, -np.ones(40))
