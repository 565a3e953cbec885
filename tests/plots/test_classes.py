"""Curves and tables of classes against scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix, roc_curve

from diagatt import plots

Y = np.random.default_rng(0).integers(2, size=40)
P = np.random.default_rng(1).uniform(size=40)


def test_the_curve_is_that_of_scikit_learn_and_others_are_added():
    ax = plots.roc(Y, P, label="ours")
    plots.roc(Y, 1 - P, label="theirs", ax=ax)
    alarms, hits, _ = roc_curve(Y, P)
    diagonal, ours, theirs = ax.lines
    np.testing.assert_array_equal(ours.get_xdata(), alarms)
    np.testing.assert_array_equal(ours.get_ydata(), hits)
    assert ours.get_color() != theirs.get_color()
    assert [t.get_text().split(" (")[0] for t in ax.get_legend().get_texts()] == ["ours", "theirs"]
    assert list(diagonal.get_xdata()) == [0, 1]


def test_a_curve_needs_both_outcomes():
    with pytest.raises(ValueError, match="samples without it"):
        plots.roc([1, 1], [0.2, 0.3])


def test_confusions_are_those_of_scikit_learn():
    names = np.array(["a", "b", "a class with a very long name"])
    y, predicted = (names[np.random.default_rng(k).integers(3, size=50)] for k in range(2))
    ax = plots.confusion(y, predicted, classes=names)
    counts = confusion_matrix(y, predicted, labels=names)
    assert [int(t.get_text().split("\n")[0]) for t in ax.texts] == counts.ravel().tolist()
    assert ax.get_title() == f"{100 * counts.trace() / 50:.1f} % right"
    assert ax.get_yticklabels()[2].get_text() == "a class with …"
