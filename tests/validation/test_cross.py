"""Cross-validation against loops written by hand."""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.metrics import roc_auc_score

from diagatt import DiagAttClassifier, DiagAttRegressor, PooledClassifier, RaggedRows, simulate
from diagatt.kinds import KINDS, Columns, Inputs
from diagatt.resampling import draw_folds, paired_interval
from diagatt.validation import OURS, Part, Task, Validation, bag_statistics, cross_validate
from diagatt.validation.baselines import mean_pooling, trees
from diagatt.validation.writing import figures, methods_paragraph, scores_table, shown_interval

pytestmark = pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")
N = 45
DATA = simulate.regression(N, p=(2, 5), d=3, mu=(3,), sigma2=(4,), seed=0)
LABELS = np.array(["a", "b", "c"])[np.digitize(DATA.y, np.quantile(DATA.y, [0.3, 0.6]))]
Z = np.random.default_rng(0).normal(size=(N, 1))
CLASSES = Task(np.unique(LABELS))


def inputs(y):
    return Inputs(KINDS["rows"], DATA.X, y, Z, [str(i) for i in range(N)], Columns())


@pytest.fixture(scope="module")
def validation():
    fold = draw_folds(LABELS, True, n_folds=3)
    make = lambda n: DiagAttClassifier(solver="uniform", ridge=n / 10, verbose=True)  # noqa: E731
    notes = []
    advance = lambda note: notes.append(note)  # noqa: E731
    found = cross_validate(inputs(LABELS), make, CLASSES, fold, advance=advance)
    assert notes[:3] == ["fold 1: diagatt", "fold 1: mean pooling", "fold 1: trees"]
    return found


def test_predictions_are_those_of_models_that_did_not_see_the_sample(validation):
    for k in range(3):
        train, test = np.flatnonzero(validation.fold != k), np.flatnonzero(validation.fold == k)
        model = DiagAttClassifier(solver="uniform", ridge=len(train) / 10)
        model.fit(DATA.X[train], LABELS[train], covariates=Z[train])
        expected = model.predict_proba(DATA.X[test], covariates=Z[test])
        np.testing.assert_allclose(validation.predictions[OURS][test], expected)
        for name, method in {"mean pooling": mean_pooling, "trees": trees}.items():
            parts = [Part(DATA.X[i], Z[i], LABELS[i]) for i in (train, test)]
            np.testing.assert_allclose(
                validation.predictions[name][test], method(*parts, CLASSES, 0)
            )


def test_intervals_are_those_of_the_folds(validation):
    expected = []
    for k in range(3):
        here = validation.fold == k
        p = validation.predictions["trees"][here]
        expected.append(roc_auc_score(LABELS[here], p, multi_class="ovr"))
    assert list(validation.scores("trees")["auc"].values()) == pytest.approx(expected, abs=1e-3)
    found = list(validation.scores("trees")["auc"].values())
    assert validation.interval("trees", "auc") == paired_interval(found, 1 / 2)
    ours = list(validation.scores(OURS)["auc"].values())
    gaps = np.subtract(ours, found)
    assert validation.difference("trees", "auc") == pytest.approx(paired_interval(gaps, 1 / 2))


def test_the_table_the_figures_and_the_paragraph_tell_the_same(validation):
    head, lines = scores_table(validation)
    assert head[:5] == ["method", "score", "mean", "low", "high"]
    assert len(lines) == 3 * 4
    drawn = figures(validation)
    assert set(drawn) == {"roc", "calibration", "confusion"}
    said = methods_paragraph(validation, "45 samples", "site", "uniform", 0, "1.0")
    assert validation.verdict() in said
    assert "3-fold cross-validation; samples with the same site were held out together" in said
    assert f"{validation.interval(OURS, 'auc')[0]:.3f}" in said


def test_mean_pooling_is_the_pooled_classifier_on_standardized_rows_and_covariates():
    part = Part(DATA.X, None, LABELS)
    X = DATA.X.values
    same = RaggedRows((X - X.mean(axis=0)) / X.std(axis=0), DATA.X.offsets)
    model = PooledClassifier(ridge="auto", selection=5, random_state=0).fit(same, LABELS)
    np.testing.assert_allclose(mean_pooling(part, part, CLASSES, 0), model.predict_proba(same))
    with_Z = mean_pooling(Part(DATA.X, Z, LABELS), Part(DATA.X, Z), CLASSES, 0)
    assert not np.allclose(with_Z, model.predict_proba(same))


def test_trees_see_statistics_and_covariates():
    features = np.hstack([bag_statistics(DATA.X), Z])
    expected = ExtraTreesClassifier(300, random_state=0).fit(features, LABELS)
    found = trees(Part(DATA.X, Z, LABELS), Part(DATA.X, Z), CLASSES, 0)
    np.testing.assert_array_equal(found, expected.predict_proba(features))


def test_bag_statistics_are_those_of_numpy():
    X = RaggedRows(DATA.X.values.astype(float), DATA.X.offsets)
    found = bag_statistics(X)
    for i, rows in enumerate(X):
        parts = [rows.mean(axis=0), rows.min(axis=0), rows.max(axis=0), rows.std(axis=0)]
        np.testing.assert_allclose(found[i], np.concatenate(parts), atol=1e-12)


def test_a_class_that_training_lacks_has_probability_zero():
    some = LABELS != "b"
    found = trees(Part(DATA.X[some], None, LABELS[some]), Part(DATA.X), CLASSES, 0)
    assert (found[:, 1] == 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1)


def test_numbers_have_their_own_scores_and_verdict():
    fold = draw_folds(DATA.y, False, n_folds=2)
    make = lambda n: DiagAttRegressor(solver="likelihood", random_state=0)  # noqa: E731
    found = cross_validate(inputs(DATA.y), make, Task(None), fold)
    assert list(found.scores(OURS)) == ["r2", "rmse", "mae", "log_score"]
    assert found.difference("trees", "rmse")[0] == pytest.approx(
        found.interval("trees", "rmse")[0] - found.interval(OURS, "rmse")[0]
    )  # smaller errors are better
    assert set(figures(found)) == {"observed-predicted"}
    assert found.found_rows == [None, None]  # one solver: nothing was tested out of fold


def judged(ours, pooled, trees):
    """A validation whose R² by fold are known, by errors of the wanted size."""
    y = np.tile([0.0, 1.0, 2.0, 3.0], 4)
    fold = np.repeat(np.arange(4), 4)
    error = np.array([1.0, -1.0, 1.0, -1.0])
    errors = {OURS: ours, "mean pooling": pooled, "trees": trees}
    predictions = {
        name: y + np.concatenate([np.sqrt((1 - r2) * 5 / 4) * error for r2 in values])
        for name, values in errors.items()
    }
    return Validation(Task(None), y, fold, predictions)


@pytest.mark.parametrize(
    ("pooled", "trees", "start", "end"),
    [
        ([0.5, 0.51, 0.5, 0.49], [0.8, 0.7, 0.9, 0.8], "Single rows matter: the", "trees."),
        ([0.8, 0.7, 0.9, 0.8], [0.8] * 4, "These folds do not show that", "trees."),
        (
            [0.95, 0.96, 0.95, 0.94],
            [0.99] * 4,
            "Single rows do not help here: the",
            "Trees predict better.",
        ),
    ],
)
def test_the_verdict_follows_from_the_intervals(pooled, trees, start, end):
    found = judged([0.8, 0.81, 0.8, 0.79], pooled, trees)
    assert found.interval(OURS, "r2")[0] == pytest.approx(0.8)
    assert found.verdict().startswith(start)
    assert found.verdict().endswith(end)


def test_where_all_rank_perfectly_the_log_score_decides():
    y, fold = np.tile([0, 1], 8), np.repeat(np.arange(4), 4)
    sure = {OURS: 0.99, "mean pooling": 0.8, "trees": 0.8}
    predictions = {m: np.eye(2)[y] * p + np.eye(2)[1 - y] * (1 - p) for m, p in sure.items()}
    found = Validation(Task(np.array([0, 1])), y, fold, predictions)
    assert found.verdict().startswith("Single rows matter: the difference in log score is +0.213")


def test_intervals_are_written_within_the_range_of_a_score():
    assert shown_interval("r2", -0.5, -1.2, 1.4) == "-0.50 [-1.20, 1.00]"
    assert shown_interval("rmse", 12345.6, -3, 20000.0) == "12346 [0, 20000]"
    assert shown_interval("rmse", 0.12, 0.1, 0.2) == "0.120 [0.100, 0.200]"
    assert shown_interval("log_score", -103.4, -110.2, -99.96) == "-103 [-110, -100.0]"
    assert shown_interval("log_score", -0.5, -0.6, -0.4) == "-0.50 [-0.60, -0.40]"


def test_the_paragraph_keeps_intervals_within_the_range_of_a_score():
    found = judged([0.99, 1.0, 0.99, 0.9], [0.5] * 4, [0.5] * 4)
    assert found.interval(OURS, "r2")[2] > 1
    paragraph = methods_paragraph(found, "16 samples", None, "auto", 0, "1")
    assert " to 1.000); it was" in paragraph


def test_a_difference_of_two_shares_is_at_most_one():
    y, fold = np.tile([0, 1], 8), np.repeat(np.arange(4), 4)
    right, wrong = np.eye(2)[y] * 0.8 + 0.1, np.eye(2)[1 - y] * 0.8 + 0.1
    pooled = np.where((fold == 0)[:, None], right, wrong)
    predictions = {OURS: right, "mean pooling": pooled, "trees": pooled}
    found = Validation(Task(np.array([0, 1])), y, fold, predictions)
    assert found.difference("mean pooling", "auc")[2] > 1
    assert "+0.750 (95 % interval -0.465 to +1.000) against mean pooling" in found.verdict()
