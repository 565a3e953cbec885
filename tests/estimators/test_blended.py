"""Blends: the mean of members that each read their own blocks."""

import numpy as np
import pytest
from sklearn.utils import get_tags

from diagatt import (
    BlendedClassifier,
    BlendedRegressor,
    DiagAttClassifier,
    DiagAttRegressor,
    GatedAttentionRegressor,
    GroupLassoRegressor,
    ModelFileError,
    RaggedRows,
    modelfile,
    simulate,
)
from diagatt.solvers import Gradient
from tests.short_contest import shorten_contests

# Short fits need not find a row; what is tested here is something else.
pytestmark = pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")

SHORT = {"solver": Gradient(optimizer="adam", max_epochs=5)}


@pytest.fixture(autouse=True)
def _short_contests(monkeypatch):
    shorten_contests(monkeypatch)


@pytest.fixture(scope="module")
def numbers():
    return simulate.regression(120, p=5, d=6, seed=0)


@pytest.fixture(scope="module")
def classes():
    return simulate.classification(120, p=5, d=6, seed=0)


def columns(X, chosen):
    return RaggedRows(X.values[:, chosen], X.offsets)


def test_a_blend_is_the_mean_of_members_fitted_by_hand(numbers):
    X, y = numbers.X, numbers.y
    one, two = DiagAttRegressor(2, random_state=3, **SHORT), DiagAttRegressor(random_state=4)
    blend = BlendedRegressor([("one", one, (0, 2)), ("two", two, [1])], n_blocks=3).fit(X, y)
    first, second = columns(X, [0, 1, 4, 5]), columns(X, [2, 3])
    one.fit(first, y), two.fit(second, y)
    expected = (one.predict(first) + two.predict(second)) / 2
    np.testing.assert_allclose(blend.predict(X), expected)
    for ours, a, b in zip(
        blend.attention(X), one.attention(first), two.attention(second), strict=True
    ):
        np.testing.assert_allclose(ours[:, 0], (a.mean(axis=1) + b[:, 0]) / 2, rtol=1e-6)


def test_probabilities_are_averaged_and_the_heaviest_row_is_located(classes):
    X, y = classes.X, np.where(classes.y == 1, "yes", "no")
    members = [("a", DiagAttClassifier(**SHORT), None), ("b", DiagAttClassifier(), [0])]
    blend = BlendedClassifier(members, n_blocks=2, random_state=0).fit(X, y)
    parts = [X, columns(X, [0, 1, 2])]
    each = [m.predict_proba(part) for m, part in zip(blend.members_, parts, strict=True)]
    np.testing.assert_allclose(blend.predict_proba(X), np.mean(each, axis=0))
    assert blend.classes_.tolist() == ["no", "yes"]
    np.testing.assert_array_equal(
        blend.predict(X), np.array(["no", "yes"])[np.mean(each, axis=0).argmax(axis=1)]
    )
    weights = blend.attention(X)
    np.testing.assert_allclose([w.sum() for w in weights], 1, rtol=1e-5)
    assert blend.locate(X)[:, 0].tolist() == [int(w.argmax()) for w in weights]
    seeds = {member.random_state for member in blend.members_}
    assert len(seeds) == 2  # each its own


def test_features_outside_the_blocks_do_not_matter(numbers):
    members = [("middle", DiagAttRegressor(random_state=0), [1])]
    blend = BlendedRegressor(members, n_blocks=3).fit(numbers.X, numbers.y)
    values = numbers.X.values.copy()
    values[:, [0, 1, 4, 5]] = 7
    changed = RaggedRows(values, numbers.X.offsets)
    np.testing.assert_array_equal(blend.predict(changed), blend.predict(numbers.X))


def test_weights_and_covariates_reach_the_members(numbers):
    X, y = numbers.X, numbers.y
    weights, Z = np.linspace(0.5, 2, len(y)), np.arange(len(y))[:, None] / len(y)
    member = DiagAttRegressor(random_state=0, **SHORT)
    blend = BlendedRegressor([("only", member, None)]).fit(X, y, weights, Z)
    member.fit(X, y, sample_weight=weights, covariates=Z)
    np.testing.assert_array_equal(blend.predict(X, Z), member.predict(X, Z))


def test_a_file_keeps_everything(tmp_path, classes):
    members = [("a", DiagAttClassifier(**SHORT), None), ("b", DiagAttClassifier(), (1,))]
    blend = BlendedClassifier(members, n_blocks=2, random_state=0).fit(classes.X, classes.y)
    blend.save(tmp_path / "blend")
    loaded = BlendedClassifier.load(tmp_path / "blend")
    np.testing.assert_array_equal(loaded.predict_proba(classes.X), blend.predict_proba(classes.X))
    np.testing.assert_array_equal(loaded.locate(classes.X), blend.locate(classes.X))
    names = [(name, type(m), b if b is None else tuple(b)) for name, m, b in loaded.members]
    assert names == [("a", DiagAttClassifier, None), ("b", DiagAttClassifier, (1,))]
    again = loaded.fit(classes.X, classes.y)
    np.testing.assert_array_equal(again.predict_proba(classes.X), blend.predict_proba(classes.X))


def test_a_file_with_a_member_of_another_library_is_refused(tmp_path, numbers):
    blend = BlendedRegressor([("a", DiagAttRegressor(**SHORT), None)]).fit(numbers.X, numbers.y)
    tensors, document = blend.to_document()
    document["members"][0]["class"] = "Stranger"
    modelfile.write(tmp_path / "blend", tensors, document)
    with pytest.raises(ModelFileError, match="holds a Stranger"):
        BlendedRegressor.load(tmp_path / "blend")


@pytest.mark.parametrize(
    ("members", "n_blocks", "error", "words"),
    [
        ([], 1, ValueError, "members is empty"),
        ([("a", DiagAttRegressor(), [0])], 4, ValueError, "6 features are not 4 blocks"),
        ([("a", DiagAttRegressor(), [3])], 3, ValueError, r"'a' reads blocks \[3\].*0 to 2"),
        ([("a", DiagAttRegressor(), [])], 3, ValueError, r"'a' reads blocks \[\]: give at least"),
        ([("a", GroupLassoRegressor(), None)], 1, TypeError, "'a'.*has no attention"),
    ],
)
def test_bad_members_are_named(numbers, members, n_blocks, error, words):
    with pytest.raises(error, match=words):
        BlendedRegressor(members, n_blocks=n_blocks).fit(numbers.X, numbers.y)


def test_a_member_without_blocks_is_refused_by_its_shape():
    with pytest.raises(ValueError, match=r"a member is \(name, estimator, blocks\), not \('a', "):
        BlendedRegressor([("a", DiagAttRegressor())]).fit(np.zeros((4, 2, 3)), np.arange(4.0))


def test_blends_take_several_outcomes_if_all_members_do():
    X, y = np.random.default_rng(0).standard_normal((20, 3, 2)), np.arange(20.0)
    both = BlendedRegressor([("a", DiagAttRegressor(solver="likelihood"), None)])
    assert get_tags(both).target_tags.multi_output
    found = both.fit(X, np.stack([y, y], axis=1)).predict(X)
    np.testing.assert_allclose(found[:, 0], found[:, 1], rtol=1e-6)
    alone = BlendedRegressor([("a", GatedAttentionRegressor(), None)])
    assert not get_tags(alone).target_tags.multi_output
