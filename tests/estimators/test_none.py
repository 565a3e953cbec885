"""Samples without a row of interest, as users see them: locate, certainty, summary, files."""

import numpy as np
import pytest

from diagatt import DiagAttClassifier, DiagAttRegressor
from diagatt.solvers import Likelihood, Mixture
from tests.solvers.none import some_without


@pytest.fixture(scope="module")
def drawn():
    return some_without(400, 0.6, seed=8, level=1.0)


@pytest.fixture(scope="module", params=[Likelihood(none=True), Mixture(none=True, n_starts=1)])
def model(request, drawn):
    return DiagAttRegressor(solver=request.param, random_state=0).fit(*drawn[:2])


def test_locate_says_none_where_none_is_most_probable(model, drawn):
    X, _, place = drawn
    located, found = model.locate(X, none=True)[:, 0], model.certainty(X)
    best = np.array([kappa.max() for kappa in model.attention(X)])
    mass = np.array([kappa.sum() for kappa in model.attention(X)])
    np.testing.assert_allclose(found.none[:, 0], 1 - mass, atol=1e-6)
    np.testing.assert_array_equal(located == -1, found.none[:, 0] > best)
    np.testing.assert_array_equal(located[located >= 0], model.locate(X)[located >= 0, 0])
    assert ((located == -1) == (place == -1)).mean() > 0.75  # chance is .6
    assert model.locate(X).min() == 0
    assert abs(model.prevalence_ - np.mean(place >= 0)) < 0.06


def test_the_probability_of_none_means_what_it_says(model, drawn):
    """Its mean in each half of the samples is the share of samples without a row there."""
    X, _, place = drawn
    none = model.certainty(X).none[:, 0]
    for part in (none > np.median(none), none <= np.median(none)):
        se = np.sqrt(np.mean(none[part] * (1 - none[part])) / part.sum())
        assert abs(none[part].mean() - np.mean(place[part] == -1)) < 4 * se


def test_row_sets_are_about_samples_that_have_a_row(model, drawn):
    X, _, place = drawn
    sets = model.certainty(X, level=0.9).row_sets
    has = np.flatnonzero(place >= 0)
    held = np.mean([place[i] in sets[i] for i in has])
    assert abs(held - 0.9) < 4 * np.sqrt(0.09 / len(has)) + 0.05  # sets of mass hold a bit more
    named = model.calibrate(*drawn[:2]).discoveries(X, fdr=0.2)
    assert 0 < len(named) < len(place)
    wrong = np.mean([place[line.sample] != line.row for line in named])
    assert wrong < 0.2 + 3 * np.sqrt(0.16 / len(named))


def test_summary_and_files_keep_it(model, drawn, tmp_path):
    X = drawn[0]
    assert f"{100 * model.prevalence_:.1f} % (estimated)" in str(model.summary())
    path = tmp_path / "m.safetensors"
    model.save(path)
    again = DiagAttRegressor.load(path)
    assert again.prevalence_ == model.prevalence_
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.locate(X, none=True), model.locate(X, none=True))


def test_predictions_are_those_of_rows_and_of_none(model, drawn):
    """The gaussian mean is Σ κ ⟨v, x⟩ + κ_none a + b."""
    X = drawn[0]
    kappa = model.attention(X)
    rows = np.array([k[:, 0] @ (x @ model.value_[0]) for k, x in zip(kappa, X, strict=True)])
    none = np.array([1 - k.sum() for k in kappa]) * model.none_value_[0]
    np.testing.assert_allclose(model.predict(X), rows + none + model.intercept_, rtol=1e-4)


def test_several_classes_have_a_mean_each_without_a_row():
    X, z, place = some_without(150, 0.6, seed=9)
    y = np.where(place == -1, 2, (z > 0).astype(int))
    model = DiagAttClassifier(solver=Mixture(none=True, n_starts=1), random_state=0).fit(X, y)
    assert model.none_value_.shape == (1, 3)
    assert np.argmax(model.none_value_[0] + model.intercept_) == 2
    given = model.attention(X[:5], target=2)
    assert [len(k) for k in given] == [len(x) for x in X[:5]]
    plain = model.attention(X[:5])
    assert all(g.sum() < k.sum() for g, k in zip(given, plain, strict=True))  # 2 speaks for none


def test_a_fit_that_does_not_know_none_says_so(drawn):
    model = DiagAttRegressor(solver="likelihood", random_state=0).fit(*drawn[:2])
    assert model.prevalence_ is None
    assert model.certainty(drawn[0]).none is None
    with pytest.raises(ValueError, match="none=True"):
        model.locate(drawn[0], none=True)
