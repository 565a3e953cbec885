"""A seeded part of `benchmarks.battery`: hostile input is refused in words, the rest is right.

Every registered estimator and solver takes part. ``python -m benchmarks.battery`` runs all cases.
"""

from functools import cache

import numpy as np
import pytest

from benchmarks.battery import judge
from benchmarks.battery.__main__ import PARTS, table
from benchmarks.battery.judge import Case
from tests.short_contest import shorten_contests

PER_FAMILY, PER_FAMILY_BESIDE = 45, 10  # what stands beside X needs a fit for most cases
WRONG = ("silent", "raw", "hang")
FAMILIES = {
    "commands": ["commands"],
    "settings": ["parameters"],
    "inputs": ["texts and images"],
    "fits": ["responses", "weights", "covariates", "stores"],
    "beside": ["orders", "scores", "groups", "row labels", "certainty"],
    "samples": ["arrays", "frames", "names", "nonsense"],
}


@pytest.fixture(autouse=True, scope="module")
def _short_contests():
    """What is refused, and which answers agree, does not depend on how long contests take."""
    with pytest.MonkeyPatch.context() as patched:
        shorten_contests(patched)
        yield


@cache
def drawn(part):
    """Cases of each family of a part, drawn with a seed.

    Compiling the group lasso takes a minute, and fits to odd magnitudes take long: those are left
    to the benchmark.
    """
    found = {}
    for case in PARTS[part].cases():
        if not case.name.startswith("GroupLasso"):
            found.setdefault(case.family, []).append(case)
    rng, most = np.random.default_rng(0), PER_FAMILY_BESIDE if part == "beside" else PER_FAMILY
    return {
        family: [cases[i] for i in rng.choice(len(cases), min(most, len(cases)), False)]
        for family, cases in found.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("family", [(p, f) for p, own in FAMILIES.items() for f in own], ids=str)
def test_nothing_is_silent_raw_or_hangs(family):
    part, name = family
    findings = [judge(case) for case in drawn(part)[name]]
    wrong = [f"{f.verdict}: {f.case.name}: {f.said}" for f in findings if f.verdict in WRONG]
    assert not wrong, "\n".join(wrong)


# ---------------------------------------------------------------------- the judge itself


def verdict(act, refuses, **more):
    return judge(Case("family", "case", act, refuses, **more), seconds=0.2).verdict


def forever():
    while True:
        pass


def our_refusal():
    from diagatt import RaggedRows

    return RaggedRows.from_samples([])


def test_the_judge_knows_what_happened():
    assert verdict(lambda: 1, False) == "right"
    assert verdict(lambda: 1, True) == "silent"
    assert verdict(lambda: 1, False, right=lambda answer: answer == 2) == "silent"
    assert verdict(our_refusal, True, words="list of samples is empty") == "refused"
    assert verdict(our_refusal, True, words="something else") == "raw"
    assert verdict(our_refusal, False) == "silent"
    assert verdict(lambda: np.zeros(2).reshape(3), True) == "raw"
    assert verdict(lambda: {}["key"], True) == "raw"
    assert verdict(forever, None) == "hang"


def test_the_table_counts_verdicts():
    cases = [Case("a", "x", lambda: 1, False), Case("b", "y", lambda: 1, True)]
    said = table([judge(case) for case in cases]).splitlines()
    assert said[2:] == [
        "| a | 1 | 0 | 0 | 0 | 0 | 1 |",
        "| b | 1 | 1 | 0 | 0 | 0 | 0 |",
        "| all | 2 | 1 | 0 | 0 | 0 | 1 |",
    ]
