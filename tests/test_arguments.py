"""Arguments of the functions that users call: what is wrong is refused by name."""

import datetime
import traceback
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import diagatt
from diagatt import datasets, metrics, plots, simulate, survival_metrics, theory
from diagatt.arguments import with_checked_arguments
from diagatt.scoring import scorer

CODES = np.arange(8) % 2
CHANCES = np.column_stack([0.3 + 0.05 * np.arange(8), 0.7 - 0.05 * np.arange(8)])
NUMBERS = np.linspace(-1, 2, 8)
EVENT, TIME = CODES == 0, np.arange(1.0, 9.0)
ROWS = theory.Moments(np.ones(3), 4 * np.eye(3))
OTHERS = theory.Moments(np.zeros(3), np.eye(3))
#: A call of each kind of function that is right.
CALLS = {
    metrics.calibration_error: {"y": CODES, "probability": CHANCES, "n_bins": 3},
    metrics.class_scores: {"y": CODES, "probability": CHANCES, "ordered": True},
    metrics.concordance: {"event": EVENT, "time": TIME, "risk": NUMBERS, "weights": TIME},
    metrics.log_density: {"y": NUMBERS, "mean": NUMBERS, "family": "gaussian"},
    metrics.mean_deviance: {"family_name": "gaussian", "y": NUMBERS, "mean": NUMBERS},
    metrics.number_scores: {"y": NUMBERS, "mean": NUMBERS[::-1], "family": "gaussian"},
    metrics.quadratic_kappa: {"y": CODES, "predicted": CODES, "n_classes": 2},
    metrics.ranked_probability_score: {"y": CODES, "probability": CHANCES},
    metrics.rmse: {"y": NUMBERS, "prediction": NUMBERS},
    survival_metrics.cumulative_auc: {"event": EVENT, "time": TIME, "risk": NUMBERS, "times": [3]},
    survival_metrics.evaluation_times: {"event": EVENT, "time": TIME},
    survival_metrics.survival_scores: {"event": EVENT, "time": TIME, "risk": NUMBERS},
    simulate.regression: {"n": 3, "p": (2, 4), "d": 2, "s": 1, "rho": 0.1, "noise": 1, "seed": 0},
    simulate.classification: {"n": 3, "p": 4, "d": 2, "pi": 0.5, "seed": [1, 2]},
    simulate.ar1: {"d": 3, "r": 0.5},
    simulate.draw: {
        "parameters": simulate.regression(1, p=2, d=2).parameters,
        "n": 2,
        "seed": None,
    },
    datasets.fold_texts: {"texts": ["a", "b", "c"], "n_folds": 2, "seed": 0},
    datasets.split_texts: {"texts": ["a", "b"], "shares": (0.5, 0.5), "seed": 0},
    theory.expected_score: {"W": np.eye(3), "row": ROWS},
    theory.score_gap: {"W": np.eye(3), "active": ROWS, "competitors": [OTHERS]},
    theory.single_head_separator: {"active": ROWS, "background": OTHERS, "tau": 1.0},
    theory.subgaussian_radius: {"q": 3, "lambda_delta": 1, "K": 1, "p_max": 9, "eta": 0.1},
    theory.samples_needed: {"target": 0.1, "d": 5, "s": 1, "q": None, "C": 1.0},
    plots.roc: {"happened": EVENT, "probability": CHANCES[:, 1], "label": None},
    plots.calibration: {"correct": EVENT, "probability": CHANCES[:, 1], "n_bins": 2},
    plots.confusion: {"y": CODES, "predicted": CODES, "classes": [0, 1]},
}
HOSTILE = [
    *(None, np.nan, np.inf, -1, 0, 2.5, 10**30, 1j, True, "a", "", [], [[]], {}, object()),
    *(datetime.date(2020, 1, 1), [[1, 2], [3]], np.full(8, np.nan), np.array(["a"] * 8)),
    *(
        np.zeros((8, 3)),
        NUMBERS[1:],
        np.ma.masked_array(NUMBERS, mask=EVENT),
        pd.Series([None] * 8),
    ),
]


def named(function):
    return f"{function.__module__.split('.')[1]}.{function.__name__}"


@pytest.mark.parametrize("function", CALLS, ids=named)
def test_an_answer_or_one_sentence_of_ours(function):
    plt.close("all")
    function(**CALLS[function])
    home = str(Path(diagatt.__file__).parent)
    for name in CALLS[function]:
        for value in HOSTILE:
            try:
                function(**{**CALLS[function], name: value})
            except (ValueError, TypeError) as error:
                last = traceback.extract_tb(error.__traceback__)[-1].filename
                if not last.startswith(home) and "sklearn/utils" not in last:
                    raise AssertionError(f"{name} = {value!r} ended in {last}") from error
            plt.close("all")


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: simulate.regression(2.5), "n must be a whole number, got 2.5"),
        (lambda: simulate.regression(9, p=(4,)), "p must be a whole number or a pair"),
        (lambda: simulate.regression(9, d=4, rho="a"), "rho must be a finite number, got 'a'"),
        (lambda: simulate.draw("a", 3, 0), "parameters must be a Parameters, got 'a'"),
        (lambda: simulate.regression(3, seed=-1), "seed must be None, a whole number from 0"),
        (
            lambda: metrics.rmse(NUMBERS, np.ma.masked_array(NUMBERS, mask=EVENT)),
            r"\[0\] is masked",
        ),
        (lambda: metrics.rmse([1.0, np.nan], [1.0, 2.0]), r"y\[1\] is nan: pass finite numbers"),
        (
            lambda: metrics.class_scores([0, 2], CHANCES[:2]),
            "y has the class 2, and probability ha",
        ),
        (
            lambda: metrics.class_scores([0, 1], 3 * CHANCES[:2]),
            r"probability\[0\] does not lie betw",
        ),
        (
            lambda: metrics.quadratic_kappa([0, 3], [0, 1], 2),
            "must be columns of classes from 0 to",
        ),
        (
            lambda: metrics.concordance([2, 0], [1, 2], [1, 2]),
            r"event\[0\] is 2: pass 0 or 1",
        ),
        (
            lambda: metrics.concordance(EVENT, TIME, NUMBERS, [1.0]),
            "weights must be one number per",
        ),
        (
            lambda: datasets.fold_texts("abc"),
            "texts must be a list, each entry a string, got 'abc'",
        ),
        (lambda: datasets.text_groups([]), "there is no text: pass at least one"),
        (lambda: theory.expected_score(np.eye(3), 3), "row must be a Moments, got 3"),
        (
            lambda: plots.confusion(CODES, CODES, classes=[0]),
            "must hold all classes that occur, and",
        ),
        (
            lambda: plots.calibration(EVENT, CHANCES[:, 0], n_bins=0),
            "n_bins must be a whole number",
        ),
        (
            lambda: scorer("acuracy"),
            "there is no score 'acuracy': sklearn.metrics.get_scorer_names",
        ),
    ],
)
def test_messages_name_the_argument(act, message):
    with pytest.raises(ValueError, match=message):
        act()


def test_what_is_wrong_inside_is_one_sentence():
    def first(values: list) -> float:
        return values[7]

    with pytest.raises(
        ValueError, match=r"first cannot work with these arguments \(list index out"
    ):
        with_checked_arguments(first)([1.0])
