"""Quantiles of held-out scores: they cover within each third of ambiguity."""

import numpy as np
import pytest

from diagatt.certainty.conformal import Conformity, score_quantiles


def drawn(n, seed):
    """Scores that grow with ambiguity, although they were normalized."""
    rng = np.random.default_rng(seed)
    ambiguity = rng.uniform(size=n)
    return np.abs(rng.normal(size=n)) * (1 + 3 * ambiguity**2), ambiguity


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_new_scores_are_covered_in_every_third(level):
    held_out, ambiguity = drawn(6000, 0)
    new, place = drawn(30_000, 1)
    conformity = Conformity(held_out, None, 1.0, ambiguity=ambiguity)
    covered = new <= score_quantiles(conformity, level, place)
    se = np.sqrt(level * (1 - level) * (1 / 2000 + 1 / 10_000))
    for k in range(3):
        third = (place > k / 3) & (place <= (k + 1) / 3)
        assert abs(covered[third].mean() - level) < 4 * se
    whole = score_quantiles(Conformity(held_out, None, 1.0), level, place)
    assert np.ptp(whole) == 0
    assert (new <= whole)[place > 2 / 3].mean() < level - 0.05  # one quantile for all does not


def test_few_samples_are_taken_together():
    scores, ambiguity = drawn(140, 0)
    conformity = Conformity(scores, None, 1.0, ambiguity=ambiguity)
    together = np.sort(scores)[int(np.ceil(141 * 0.9)) - 1]
    assert set(score_quantiles(conformity, 0.9, ambiguity)) == {together}


def test_a_level_beyond_a_third_is_asked_of_all():
    scores, ambiguity = drawn(210, 0)  # 70 each: no third knows what 99 % of scores reach
    conformity = Conformity(scores, None, 1.0, ambiguity=ambiguity)
    assert set(score_quantiles(conformity, 0.99, ambiguity)) == {np.sort(scores)[208]}
    assert np.isinf(score_quantiles(conformity, 0.999, ambiguity)).all()
