"""Samples that carry their covariates."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

from diagatt import (
    BlendedRegressor,
    DiagAttClassifier,
    DiagAttRegressor,
    PooledRegressor,
    WithCovariates,
    simulate,
)
from diagatt.images import ImageClassifier

pytestmark = pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")
N = 40
DATA = simulate.regression(N, p=3, d=2, mu=(3,), sigma2=(4,), seed=0)
Z = np.random.default_rng(1).normal(size=(N, 2))
NAMES = ["age", "dose"]
FRAMES = {
    "array": Z,
    "pandas": pd.DataFrame(Z, columns=NAMES),
    "polars": pl.DataFrame(dict(zip(NAMES, Z.T, strict=True))),
    "arrow": pa.table(dict(zip(NAMES, Z.T, strict=True))),
}
MODEL = DiagAttRegressor(solver="uniform")


@pytest.mark.parametrize("given", FRAMES.values(), ids=FRAMES)
def test_samples_and_covariates_are_cut_together(given):
    both = WithCovariates(DATA.X, given)
    order = np.random.default_rng(0).permutation(N)[:20]
    part = both[order]
    assert part.shape == (len(part),) == (20,)
    np.testing.assert_array_equal(part[3], DATA.X[int(order[3])])
    expected = MODEL.fit(DATA.X[order], DATA.y[order], covariates=Z[order])
    found = DiagAttRegressor(solver="uniform").fit(part, DATA.y[order])
    np.testing.assert_array_equal(found.predict(both), expected.predict(DATA.X, covariates=Z))
    np.testing.assert_array_equal(found.locate(both[5:9]), expected.locate(DATA.X[5:9]))
    assert list(getattr(found, "covariate_names_in_", NAMES)) == NAMES


def test_tools_of_scikit_learn_need_no_routing():
    both, folds = WithCovariates(DATA.X, Z), KFold(2)
    y = DATA.y + 3 * Z[:, 0]
    scores = cross_val_score(MODEL, both, y, cv=folds, scoring="neg_mean_squared_error")
    expected = []
    for train, test in folds.split(y):
        model = MODEL.fit(DATA.X[train], y[train], covariates=Z[train])
        errors = y[test] - model.predict(DATA.X[test], covariates=Z[test])
        expected.append(-(errors**2).mean())
    np.testing.assert_allclose(scores, expected)
    search = GridSearchCV(MODEL, {"ridge": [1.0, 10.0]}, cv=folds).fit(both, y)
    best = DiagAttRegressor(solver="uniform", **search.best_params_).fit(DATA.X, y, covariates=Z)
    np.testing.assert_array_equal(search.predict(both), best.predict(DATA.X, covariates=Z))


def test_images_and_blends_take_them():
    rng = np.random.default_rng(0)
    images, y = [rng.uniform(size=(8, 8)) for _ in range(N)], rng.integers(2, size=N)
    inner = DiagAttClassifier(solver="uniform")
    both = WithCovariates(images, Z)
    model = ImageClassifier(patch=4, estimator=inner, random_state=0)
    found = model.fit(both, y).predict_proba(both)
    same = ImageClassifier(patch=4, estimator=inner, random_state=0).fit(images, y, covariates=Z)
    np.testing.assert_array_equal(found, same.predict_proba(images, covariates=Z))
    assert model.score(both, y) == same.score(images, y, covariates=Z)
    blend = BlendedRegressor([("one", MODEL, None)]).fit(WithCovariates(DATA.X, Z), DATA.y)
    expected = MODEL.fit(DATA.X, DATA.y, covariates=Z).predict(DATA.X, covariates=Z)
    np.testing.assert_array_equal(blend.predict(WithCovariates(DATA.X, Z)), expected)


def test_what_does_not_fit_together_is_refused():
    with pytest.raises(ValueError, match="covariates have 3 lines, X has 40 samples"):
        WithCovariates(DATA.X, Z[:3])
    with pytest.raises(ValueError, match="X carries covariates, and others were given"):
        MODEL.fit(WithCovariates(DATA.X, Z), DATA.y, covariates=Z)
    with pytest.raises(ValueError, match="fitted with 0 covariates, got 2"):
        PooledRegressor().fit(DATA.X, DATA.y).predict(WithCovariates(DATA.X, Z))
    assert "2 covariates" in repr(WithCovariates(DATA.X, Z))
