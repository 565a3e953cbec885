"""Diagnostics on data."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diagatt import DiagAttRegressor, RaggedRows, simulate
from diagatt.theory import diagnose
from tests.theory.draws import seeds
from tests.theory.samples import QuadraticModel, ragged

mpl.use("Agg")


def test_strong_rows_are_called_localizable():
    X, rows = ragged(np.random.default_rng(1), 600, 100)
    found = diagnose(X, rows)
    head = found.heads[0]
    assert found.localizable
    assert head.verdict.startswith("localizable: gap")
    assert head.empirical_error == 0.0
    assert head.empirical_error <= head.bound <= 0.05
    assert head.softmax_error <= 0.1
    assert head.active.n_features == 100
    assert str(found) == f"head 0: {head.verdict}"


def test_equal_rows_are_not():
    rng = np.random.default_rng(2)
    X, rows = ragged(rng, 300, 5, strength=1.0)
    head = diagnose(X, rows).heads[0]
    assert not head.localizable
    assert head.empirical_error > 0.5
    assert "localizable: gap" not in head.verdict.removeprefix("not ")


def test_a_fitted_model_is_judged_on_true_rows_with_heads_matched():
    X, rows = ragged(np.random.default_rng(3), 400, 140, s=2)
    first, second = (np.diag((np.arange(140) * 2 // 140 == k).astype(float)) for k in range(2))
    model = QuadraticModel([second, first])  # heads in the other order
    found = diagnose(X, rows, model)
    assert [(h.head, h.signal_class) for h in found.heads] == [(0, 1), (1, 0)]
    assert all(h.empirical_error == 0 and h.source == "fitted model" for h in found.heads)
    assert found.localizable
    # warmer scores keep the row but blur the weights
    warm = diagnose(X, rows, model, temperature=1e4)
    assert all("weights blurred" in h.verdict for h in warm.heads)
    assert warm.heads[0].gap == pytest.approx(found.heads[0].gap / 1e4)


def test_a_model_without_labels_says_so():
    X, _ = ragged(np.random.default_rng(4), 200, 20)
    head = diagnose(X, model=QuadraticModel([np.eye(20)])).heads[0]
    assert np.isnan(head.empirical_error)
    assert "own choices" in head.verdict


def test_heads_that_choose_the_same_row_are_accepted():
    X, _ = ragged(np.random.default_rng(5), 100, 10)
    found = diagnose(X, model=QuadraticModel([np.eye(10), 2 * np.eye(10)]))
    assert len(found.heads) == 2
    assert found.heads[1].gap == pytest.approx(2 * found.heads[0].gap)


@settings(max_examples=30)
@given(seed=seeds, strength=st.floats(0.5, 5), s=st.integers(1, 2))
def test_the_bound_is_never_violated(seed, strength, s):
    X, rows = ragged(np.random.default_rng(seed), 60, 8, s=s, strength=strength)
    weights = np.stack([np.diag((np.arange(8) * s // 8 == k).astype(float)) for k in range(s)])
    for head in diagnose(X, rows, QuadraticModel(weights), eta=0.2).heads:
        assert head.empirical_error <= head.bound
        if head.localizable:
            assert head.bound <= head.guarantee.eta


def test_too_few_samples_for_a_radius():
    X, rows = ragged(np.random.default_rng(6), 10, 4)
    head = diagnose(X, rows, QuadraticModel([np.eye(4)])).heads[0]
    assert np.isinf(head.radius)
    assert "at least 19" in head.verdict


def test_plot_draws_one_panel_per_head():
    from matplotlib.figure import Figure

    X, rows = ragged(np.random.default_rng(7), 120, 20, s=2)
    found = diagnose(X, rows)
    axes = Figure().subplots(1, 2)
    assert found.plot(axes) is axes
    assert axes[0].get_xlabel() == "score of head 0"
    assert len(axes[1].get_legend().get_texts()) == 2
    with pytest.raises(ValueError, match="one per head"):
        found.plot(axes[0])
    drawn = found.plot()
    assert len(drawn) == 2
    mpl.pyplot.close("all")


def test_labels_are_checked():
    X, rows = ragged(np.random.default_rng(10), 30, 4, s=2)
    with pytest.raises(ValueError, match="pass rows"):
        diagnose(X)
    with pytest.raises(ValueError, match="sample 2 has"):
        diagnose(X, np.where(np.arange(30)[:, None] == 2, 99, rows))
    with pytest.raises(ValueError, match="two classes"):
        diagnose(X, np.zeros((30, 2), dtype=int))
    with pytest.raises(ValueError, match="integers of shape"):
        diagnose(X, rows[:5])
    with pytest.raises(ValueError, match="test_fraction"):
        diagnose(X, rows, test_fraction=1.0)
    single = RaggedRows.from_rows(np.eye(4))
    with pytest.raises(ValueError, match="background"):
        diagnose(single, np.zeros(4, dtype=int), test_fraction=0)

    class Wrong(QuadraticModel):
        def scores(self, X):
            return super().scores(X)[:-1]

        def locate(self, X):
            return rows

    with pytest.raises(ValueError, match=r"model\.scores gave shape"):
        diagnose(X, rows, Wrong([np.eye(4)]))


def test_a_fitted_estimator_is_diagnosed():
    """Scores of a real fit: a large gap where rows stand out, and the error that was observed."""
    train = simulate.regression(600, p=8, d=6, mu=(2.0,), sigma2=(9.0,), seed=0)
    test = train.draw(400, seed=1)
    model = DiagAttRegressor(solver="likelihood", random_state=0).fit(train.X, train.y)
    diagnosis = diagnose(test.X, test.rows, model)
    head = diagnosis.heads[0]
    located = model.locate(test.X)[:, 0]
    assert head.empirical_error == pytest.approx(np.mean(located != test.rows[:, 0]))
    scores = np.concatenate(model.scores(test.X))[:, 0]
    active = scores[test.X.offsets[:-1] + test.rows[:, 0]]
    background = np.delete(scores, test.X.offsets[:-1] + test.rows[:, 0])
    assert head.gap == pytest.approx(active.mean() - background.mean(), rel=0.05)
