"""Large contests: few ways to fit per map, then the rest of the grid where attention leads."""

from types import SimpleNamespace

import pytest

from diagatt.families import get_family
from diagatt.solvers.auto import _finer
from diagatt.solvers.auto.contestants import (
    attention_contestants,
    extreme_contestants,
    likelihood_contestant,
    uniform_contestants,
    wide_contestants,
)

BERNOULLI = get_family("bernoulli")
COARSE = [
    c
    for rows in ("unit", "common")
    for c in attention_contestants(rows, BERNOULLI, (), coarse=True)
]


def contest(leader, *others):
    """Return the attributes of a contest that `_finer` uses."""
    entries = [SimpleNamespace(contestant=c) for c in (leader, *others)]
    samples = SimpleNamespace(family=BERNOULLI)
    return SimpleNamespace(entries=entries, samples=samples, leader=lambda entered: entered[0])


def test_the_rest_of_the_grid_of_the_leading_map_follows():
    leader = next(c for c in COARSE if c.rows == "common" and c.readout == "mixture")
    found = _finer(contest(leader, *COARSE))
    grid = attention_contestants("common", BERNOULLI)
    assert set(found) == set(grid) - set(COARSE)
    assert len(grid) > len(found) > 0


@pytest.mark.parametrize(
    "leader",
    [
        uniform_contestants("unit")[0],
        extreme_contestants("unit", [0])[0],
        likelihood_contestant(BERNOULLI),
        wide_contestants(BERNOULLI)[0],
    ],
    ids=["no attention", "an extreme", "Gaussian rows", "linear scores of wide rows"],
)
def test_nothing_follows_where_no_map_with_a_grid_leads(leader):
    assert _finer(contest(leader, *COARSE)) == []
