"""Where the mixture solver begins: large responses with a log link do not decide it."""

from dataclasses import replace

import numpy as np
import torch

from diagatt.solvers.mixture.starts import _without_largest
from tests.solvers.samples import problem_of, ragged


def counts(n=40):
    X, z = ragged(n)
    return problem_of(X, np.random.default_rng(0).poisson(np.exp(z / 4)), "poisson")


def test_the_size_of_the_largest_count_does_not_matter():
    problem = counts()
    huge = problem.y.clone()
    huge[int(huge.argmax())] = 1e6
    same = _without_largest(replace(problem, y=huge))
    assert torch.equal(same.y, _without_largest(problem).y)
    assert torch.equal(same.y.clamp(max=float(same.y.max())), same.y)
    kept = problem.y < same.y.max()
    assert torch.equal(same.y[kept], problem.y[kept])
    assert float(kept.double().mean()) < 0.95 <= float((problem.y <= same.y.max()).double().mean())


def test_a_weight_of_two_is_a_copy():
    problem = counts()
    twice = problem.take(torch.arange(40).repeat_interleave(2))
    heavy = replace(problem, weights=2 * problem.weights)
    assert torch.equal(_without_largest(twice).y[::2], _without_largest(heavy).y)


def test_other_responses_are_left_alone():
    problem = problem_of(*ragged(20))
    assert _without_largest(problem) is problem
