"""Fits are what they were: W, V, predictions and located rows of every case in `cases`."""

import numpy as np
import pytest

from diagatt.estimators import containers
from tests.golden.cases import CASES, FITS, SEEDS, fit

# Without these, an "auto" optimizer takes L-BFGS, whose path depends on the processor's rounding.
ADAM = {"row_dropout", "value_dropout", "validation_fraction", "value_bound", "score_bound"}

pytestmark = pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")


@pytest.fixture(autouse=True)
def _no_store_is_read_whole(monkeypatch):
    monkeypatch.setattr(containers, "READ_WHOLE", 0)


@pytest.fixture(scope="module")
def expected():
    with np.load(FITS) as file:
        return dict(file)


# Fits of the default stop after few steps, and paths of L-BFGS amplify rounding.
EARLY_STOP = 1e-2


def takes_lbfgs(case):
    how = case.get("how", {})
    by_adam = case.get("store") or how.get("optimizer") == "adam" or ADAM & set(how)
    return case["solver"] == "gradient" and not by_adam


def test_every_stored_fit_belongs_to_a_case(expected):
    quantities = {"query_key", "value", "predict", "locate"}
    keys = {f"{name}/{seed}/{what}" for name in CASES for seed in SEEDS for what in quantities}
    assert set(expected) == keys


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", CASES)
def test_fits_are_what_they_were(name, seed, expected):
    case = CASES[name]
    found, lbfgs = fit(case, seed), takes_lbfgs(case)
    share = 1e-3 if lbfgs else 1e-8
    if case["solver"] == "auto":
        lbfgs, share = True, EARLY_STOP
    for what in ("query_key", "value", "predict"):
        before = expected[f"{name}/{seed}/{what}"]
        tolerance = share * np.abs(before).max()
        np.testing.assert_allclose(found[what], before, rtol=0, atol=tolerance, err_msg=what)
    moved = found["locate"] != expected[f"{name}/{seed}/locate"]
    assert moved.mean() <= (0.01 if lbfgs else 0)
