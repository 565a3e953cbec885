"""Intervals, class sets, row sets, discoveries and temperatures of fitted models."""

import warnings

import numpy as np
import pytest

from diagatt import DiagAttClassifier, DiagAttRegressor, NotAPosteriorWarning, RaggedRows, simulate
from diagatt.solvers import Likelihood
from diagatt.stores import RowStore
from tests.estimators.samples import skewed
from tests.solvers.test_existence import shifted

pytestmark = pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")


@pytest.fixture(scope="module")
def drawn():
    return simulate.regression(400, p=6, d=3, mu=(1.5,), sigma2=(2,), seed=0, dtype=np.float64)


@pytest.fixture(scope="module")
def regressor(drawn):
    model = DiagAttRegressor(solver=Likelihood(), random_state=0)
    return model.fit(drawn.X, drawn.y).calibrate(drawn.X, drawn.y)


@pytest.fixture(scope="module")
def new(drawn):
    return drawn.draw(1500, seed=1)


def test_intervals_cover_new_responses_also_where_rows_are_ambiguous(regressor, new):
    for level in (0.5, 0.9):
        ends = regressor.predict_interval(new.X, level)
        inside = (ends[:, 0] <= new.y) & (new.y <= ends[:, 1])
        assert abs(inside.mean() - level) < 4 * np.sqrt(level * (1 - level) / 400)
    unsure = regressor.certainty(new.X).entropy[:, 0]
    ambiguous = unsure > np.quantile(unsure, 2 / 3)
    assert inside[ambiguous].mean() > 0.83
    width = ends[:, 1] - ends[:, 0]
    wide = width > np.median(width)
    error = np.abs(new.y - regressor.predict(new.X))
    assert error[wide].mean() > 1.2 * error[~wide].mean()  # rows that disagree predict worse


def test_intervals_follow_the_units_of_y(drawn, new):
    ends = []
    for unit in (1.0, 100.0):
        model = DiagAttRegressor(solver=Likelihood(), ridge=0.0, random_state=0)
        model.fit(drawn.X, unit * drawn.y).calibrate(drawn.X, unit * drawn.y)
        ends.append(model.predict_interval(new.X[:50]) / unit)
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-3, atol=1e-3)


def test_counts_have_no_negative_ends():
    X, y = shifted("poisson")
    model = DiagAttRegressor(solver=Likelihood(), family="poisson", random_state=0)
    ends = model.fit(X, y).calibrate(X, y).predict_interval(X)
    assert (ends[:, 0] >= 0).all()
    assert (ends[:, 0] < ends[:, 1]).all()
    assert ((ends[:, 0] <= y) & (y <= ends[:, 1])).mean() > 0.85


def test_class_sets_cover_each_class():
    X, y = shifted("multinomial", n=300, effect=3.0)
    new, truth = shifted("multinomial", n=1500, seed=1, effect=3.0)
    words = np.array(["low", "middle", "high"])
    model = DiagAttClassifier(solver=Likelihood(), random_state=0).fit(X, words[y])
    sets = model.calibrate(X, words[y]).predict_set(new, level=0.8)
    for k in range(3):
        own = [words[k] in sets[i] for i in np.flatnonzero(truth == k)]
        assert 0.7 < np.mean(own) < 0.93
    assert all(len(found) > 0 for found in sets)
    sizes = [sum(map(len, model.predict_set(new, level))) for level in (0.5, 0.8, 0.95)]
    assert sizes == sorted(sizes)


def test_gaussian_rows_have_posteriors_and_sets_that_cover(regressor, new):
    assert 0.7 < regressor.row_temperature_ < 1.4
    found = regressor.certainty(new.X, level=0.9)
    covered = [truth in rows for truth, rows in zip(new.rows[:, 0], found.row_sets, strict=True)]
    assert 0.86 < np.mean(covered) < 0.95
    kept = [j in rows for j, rows in zip(found.rows[:, 0], found.row_sets, strict=True)]
    assert all(kept)
    named = regressor.discoveries(new.X, fdr=0.1)
    assert named.is_trusted
    wrong = np.mean([new.rows[line.sample, 0] != line.row for line in named])
    assert len(named) > 30  # weights are the flattest that 400 responses do not reject
    assert wrong < 0.1 + 2 * np.sqrt(0.09 / len(named))
    assert [line.local_fdr for line in named] == sorted(line.local_fdr for line in named)


def test_weights_that_are_too_sure_are_recalibrated_and_labels_repair_sets():
    (X, y, _), (new, _, place) = skewed(250, 0), skewed(1000, 1)
    model = DiagAttRegressor(solver=Likelihood(), random_state=0).fit(X, y)
    plain = model.certainty(new).posterior
    with pytest.warns(NotAPosteriorWarning, match="never compared with held-out responses"):
        assert not model.discoveries(new)
    model.calibrate(X, y)
    assert model.row_temperature_ > 1.5
    with pytest.warns(NotAPosteriorWarning, match="too sure"):
        found = model.certainty(new)
    assert found.posterior.mean() < plain.mean()
    with pytest.warns(NotAPosteriorWarning, match="responses contradict the weights.*: label"):
        none = model.discoveries(new, fdr=0.3)
    assert (len(none), none.is_trusted) == (0, False)
    model.calibrate_rows(new[:100], place[:100])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotAPosteriorWarning)
        sets = model.certainty(new[100:], level=0.8).row_sets
        assert model.discoveries(new[100:]).is_trusted
    covered = np.mean([p in rows for p, rows in zip(place[100:], sets, strict=True)])
    assert covered > 0.8 - 3 * np.sqrt(0.16 / 100)


def test_rows_are_named_only_if_held_out_responses_confirm_them(regressor, new, monkeypatch):
    weights, ratios, of_samples = regressor.held_out_rows_.T
    assert (of_samples == 1).all()
    assert len(weights) == 400
    # Responses prefer located rows to others where weights are large.
    assert ratios[weights > 0.8].mean() < -0.5 < ratios[weights < 0.5].mean()
    silent = np.column_stack([weights, np.zeros_like(ratios), of_samples])
    monkeypatch.setattr(regressor, "held_out_rows_", silent)
    with pytest.warns(NotAPosteriorWarning, match="do not confirm"):
        assert not regressor.discoveries(new.X)


def test_a_saved_model_says_the_same(regressor, new, tmp_path):
    regressor.save(tmp_path / "m.safetensors")
    again = DiagAttRegressor.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(
        again.predict_interval(new.X[:20]), regressor.predict_interval(new.X[:20])
    )
    assert again.existence_ == regressor.existence_
    assert again.row_temperature_ == regressor.row_temperature_
    assert list(again.discoveries(new.X)) == list(regressor.discoveries(new.X))


def test_a_model_that_is_fitted_again_forgets(drawn, regressor):
    model = DiagAttRegressor(solver=Likelihood(), random_state=0)
    model.fit(drawn.X, drawn.y)
    assert model.row_temperature_ is None
    with pytest.raises(ValueError, match="calibrate"):
        model.predict_interval(drawn.X)


def test_wrong_labels_and_levels_are_refused(regressor, drawn):
    few = RaggedRows.from_samples([np.asarray(s) for s in list(drawn.X)[:3]])
    with pytest.raises(ValueError, match=r"row_labels\[1\] = 6, but sample 1 has 6 rows"):
        regressor.calibrate_rows(few, [0, 6, 0])
    with pytest.raises(ValueError, match="whole numbers"):
        regressor.calibrate_rows(few, [0.5, 1.0, 0.0])
    with pytest.raises(ValueError, match="shape"):
        regressor.calibrate_rows(few, [0, 1])
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        regressor.certainty(few, level=90)
    with pytest.raises(ValueError, match="fdr must be between 0 and 1"):
        regressor.discoveries(few, fdr=0.0)


def test_several_heads_have_sets_each():
    data = simulate.regression(150, p=5, d=3, mu=(3, -3), sigma2=(2, 2), seed=0, dtype=np.float64)
    model = DiagAttRegressor(n_heads=2, solver=Likelihood(), random_state=0).fit(data.X, data.y)
    model.calibrate(data.X, data.y)
    sets = model.certainty(data.X).row_sets
    assert len(sets[0]) == 2
    assert model.calibrate_rows(data.X, data.rows).labelled_rows_.shape == (150, 2, 3)
    assert model.discoveries(data.X, fdr=0.5).is_trusted


def test_a_file_whose_scores_do_not_fit_together_is_refused(regressor):
    from diagatt.modelfile import ModelFileError

    for name, wrong in (
        ("conformal_classes_", np.zeros(3, dtype=np.int64)),
        ("row_thresholds_", np.zeros((5, 1))),
        ("labelled_rows_", np.zeros((4, 2))),
    ):
        tensors, document = regressor.to_document()
        document["fitted"].pop(name, None)
        with pytest.raises(ModelFileError, match=name):
            DiagAttRegressor.from_document({**tensors, name: wrong}, document)


def test_intervals_of_counts_follow_the_exposure():
    """Twice the exposure has the interval of twice the mean."""
    X, y = shifted("poisson")
    exposure = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    model = DiagAttRegressor(solver=Likelihood(), family="poisson", random_state=0)
    model.fit(X, y, exposure=exposure).calibrate(X, y, exposure=exposure)
    once = model.predict_interval(X, exposure=np.ones(len(y)))
    twice = model.predict_interval(X, exposure=2 * np.ones(len(y)))
    assert (twice[:, 1] > once[:, 1]).all()
    np.testing.assert_array_equal(once, model.predict_interval(X))
    assert model.existence_test(X, y, exposure=exposure).is_found


def test_frequent_classes_are_not_held_more_often_than_rare_ones():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4600, 2, 1))
    x[:, 0] += 4  # the row of interest
    y = (rng.random(len(x)) < 1 / (1 + np.exp(1.7 - 0.8 * x[:, 0, 0]))).astype(int)
    model = DiagAttClassifier(solver=Likelihood()).fit(x[:600], y[:600])
    model.calibrate(x[:600], y[:600])
    sets = model.predict_set(x[600:], level=0.9)
    for label in (0, 1):
        held = np.mean([label in s for s, own in zip(sets, y[600:], strict=True) if own == label])
        error = np.sqrt(0.09 / (y[:600] == label).sum() + 0.09 / (y[600:] == label).sum())
        assert abs(held - 0.9) < 4 * error


def test_class_sets_cover_the_most_ambiguous_third_and_older_files_still_load(tmp_path):
    """A file without ambiguity has the sets of today's thresholds by class."""
    X, y = shifted("bernoulli", n=400, effect=3.0)
    new, truth = shifted("bernoulli", n=2000, seed=1, effect=3.0)
    model = DiagAttClassifier(solver=Likelihood(), random_state=0).fit(X, y).calibrate(X, y)
    entropy = model.certainty(new).entropy[:, 0]
    unsure = entropy > np.quantile(entropy, 2 / 3)

    def covered(sets):
        return np.mean([truth[i] in sets[i] for i in np.flatnonzero(unsure)])

    sets = model.predict_set(new, level=0.9)
    se = np.sqrt(0.09 * (3 / 400 + 3 / 2000))
    assert covered(sets) > 0.9 - 3 * se
    path = tmp_path / "m.safetensors"
    model.save(path)
    again = DiagAttClassifier.load(path)
    assert all(map(np.array_equal, sets, again.predict_set(new, level=0.9)))
    store = RowStore.from_rows(tmp_path / "store", new, truth)
    assert all(map(np.array_equal, sets, model.predict_set(store, level=0.9)))
    tensors, document = model.to_document()
    del tensors["conformal_ambiguity_"]
    document["fitted"].pop("conformal_ambiguity_", None)
    older = DiagAttClassifier.from_document(tensors, document)
    p = older.predict_proba(new)
    for k in (0, 1):
        own = np.sort(model.conformal_scores_[model.conformal_classes_ == k])
        cut = own[int(np.floor((len(own) + 1) * 0.1)) - 1]
        holds = np.array([k in labels for labels in older.predict_set(new, level=0.9)])
        assert holds[p[:, k] >= cut].all()
        assert (p[holds, k] >= np.minimum(cut, 0.5)).all()  # or it is the most probable one


def test_regressions_of_one_row_samples_are_calibrated_without_rows_to_look_for():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 3))
    y = X @ [1.0, -1.0, 0.0] + rng.normal(size=900)
    model = DiagAttRegressor(random_state=0).fit(X[:400], y[:400])
    with pytest.raises(ValueError, match=r"with the samples of the fit$"):
        model.predict_interval(X[400:])
    model.calibrate(X[:400], y[:400])
    low, high = model.predict_interval(X[400:]).T
    assert abs(((low <= y[400:]) & (y[400:] <= high)).mean() - 0.9) < 0.05
    assert (model.existence_, model.has_row_of_interest_, model.row_temperature_) == (None,) * 3
    assert (model.certainty(X[400:]).posterior == 1).all()
    classes = DiagAttClassifier(random_state=0).fit(X[:400], y[:400] > 0)
    sets = classes.calibrate(X[:400], y[:400] > 0).predict_set(X[400:])
    held = np.mean([label in labels for label, labels in zip(y[400:] > 0, sets, strict=True)])
    assert 0.85 < held < 0.97
    with pytest.raises(ValueError, match="all samples have one row"):
        model.existence_test(X, y)


def test_families_without_intervals_say_so():
    X, y = shifted("gaussian")
    model = DiagAttRegressor(solver=Likelihood(), family="quantile", random_state=0)
    with pytest.raises(ValueError, match="'quantile' family predicts a quantile"):
        model.fit(X, y).calibrate(X, y).predict_interval(X)
