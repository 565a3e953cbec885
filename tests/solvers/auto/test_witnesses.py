"""Who says whether there is any row of interest: entries with predictions made by hand."""

import numpy as np
import pytest
import torch

from diagatt.solvers.auto.contest import Contest, Entry
from diagatt.solvers.auto.contestants import Contestant
from diagatt.solvers.auto.many import Penalties
from diagatt.solvers.auto.witnesses import (
    CHOSEN_SHARE,
    DECIDING_FOLDS,
    NAMED_SHARE,
    contest_existence,
)
from diagatt.solvers.base import Model
from diagatt.solvers.existence import existence_test, together
from diagatt.solvers.outlying_rows import outlying_row_test
from tests.solvers.auto.samples import problem

N = 60
WITNESS = Contestant("unit", "pooled", Penalties(10, 5, 1))
CHOSEN = Contestant("squares", "pooled", Penalties(10, 5, 1))


@pytest.fixture
def contest():
    return Contest(problem("gaussian", N), torch.arange(N) % 5, Model(), 0)


def entry(contest, contestant, z):
    scores = torch.zeros(N, dtype=torch.float64)
    return Entry(contestant, torch.as_tensor(z)[:, None], scores, scores.clone())


def noise(seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=N))


def test_the_witness_is_heard(contest):
    witness = entry(contest, WITNESS, contest.samples.y + noise())
    found = contest_existence(contest, [witness])
    alone = existence_test(contest.samples, contest.folds, witness.z)
    assert found.statistic == pytest.approx(alone.statistic, rel=1e-9)
    assert found.n_folds == 5
    later = contest.folds >= DECIDING_FOLDS
    part = contest.samples.take(torch.nonzero(later)[:, 0])
    chosen = existence_test(part, contest.folds[later] - DECIDING_FOLDS, witness.z[later])
    outlying, share = outlying_row_test(contest.samples, None, contest.seed)
    rest = 1 - share
    tests = [(alone, rest * NAMED_SHARE), (chosen, rest * CHOSEN_SHARE), (outlying, share)]
    assert found.p_value == pytest.approx(together(tests).p_value, rel=1e-9)


def test_a_maximum_is_no_reason_to_believe_in_no_row(contest):
    z = contest.samples.y + noise()
    witness = entry(contest, WITNESS, z)
    alone = contest_existence(contest, [witness])
    for features, explains in ((("max",), False), (("size", "sum"), True)):
        uniform = Contestant("unit", "uniform", WITNESS.penalties, features)
        found = contest_existence(contest, [witness, entry(contest, uniform, z)])
        assert (found.p_value == 0.5) is explains  # no evidence of a row
        assert (found.statistic == pytest.approx(alone.statistic)) is not explains


def test_who_was_chosen_is_judged_where_nobody_had_chosen(contest):
    witness = entry(contest, WITNESS, noise(1))
    witness.is_alive = False  # it fell behind, but is heard
    chosen = entry(contest, CHOSEN, contest.samples.y + 0.1 * noise())
    found = contest_existence(contest, [witness, chosen])
    later = contest.folds >= DECIDING_FOLDS
    part = contest.samples.take(torch.nonzero(later)[:, 0])
    alone = existence_test(part, contest.folds[later] - DECIDING_FOLDS, chosen.z[later])
    assert (found.n_folds, found.n_samples) == (3, int(later.sum()))
    named = existence_test(contest.samples, contest.folds, witness.z)
    outlying, share = outlying_row_test(contest.samples, None, contest.seed)
    rest = 1 - share
    tests = [(named, rest * NAMED_SHARE), (alone, rest * CHOSEN_SHARE), (outlying, share)]
    assert found.p_value == pytest.approx(together(tests).p_value, rel=1e-9)
    chosen.z[~later] = 1e3 * noise(2)[~later, None]
    assert contest_existence(contest, [witness, chosen]) == found
    chosen.is_alive = False
    assert contest_existence(contest, [witness, chosen]).n_folds != 3
