"""L-BFGS for many problems at once: against closed forms and scipy."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize, rosen, rosen_der

from diagatt.solvers.auto.lbfgs import MEMORY, _Memory, minimize_many


class Counted:
    """An objective that notes which problems it was asked about, and their values."""

    def __init__(self, function):
        self._function, self.asked, self.values = function, [], {}

    def __call__(self, x, which):
        self.asked.append(which.tolist())
        values, slopes = self._function(x, which)
        return values, slopes


def quadratics(M=5, P=6, seed=0):
    """Convex quadratics of condition numbers from 1 to 10⁴, with their minima."""
    rng = np.random.default_rng(seed)
    A, c = np.empty((M, P, P)), rng.normal(size=(M, P))
    for m in range(M):
        Q = np.linalg.qr(rng.normal(size=(P, P)))[0]
        A[m] = Q * np.geomspace(1, 10.0**m, P) @ Q.T
    A, c = torch.from_numpy(A), torch.from_numpy(c)

    def objective(x, which):
        step = x - c[which]
        slope = torch.einsum("mpq,mq->mp", A[which], step)
        return 1 + 0.5 * (step * slope).sum(dim=1), slope

    return objective, c


def test_quadratics_are_solved():
    objective, minima = quadratics()
    found = minimize_many(objective, torch.zeros_like(minima), 500, 1e-15)
    torch.testing.assert_close(found, minima, rtol=0, atol=1e-5)


def rosenbrock(x, which):
    points = x.numpy()
    slopes = np.stack([rosen_der(p) for p in points])
    return torch.tensor([1 + rosen(p) for p in points]).double(), torch.from_numpy(slopes)


def test_rosenbrock_as_scipy_solves_it():
    starts = np.random.default_rng(0).uniform(-1.5, 1.5, size=(4, 3))
    found = minimize_many(rosenbrock, torch.from_numpy(starts), 1000, 1e-14).numpy()
    for start, ours in zip(starts, found, strict=True):
        theirs = minimize(rosen, start, jac=rosen_der, method="L-BFGS-B", options={"ftol": 1e-14})
        assert rosen(ours) <= theirs.fun + 1e-6
        np.testing.assert_allclose(ours, theirs.x, atol=5e-3)


def test_every_problem_stops_on_its_own():
    objective, minima = quadratics()
    counted = Counted(objective)
    start = minima + 1.0
    start[2] = minima[2]  # done from the start
    minimize_many(counted, start, 500, 1e-12)
    times = np.bincount(np.concatenate(counted.asked), minlength=5)
    assert times[2] == min(times)
    assert times[0] < times[4]  # the well-conditioned one is done earlier
    assert len(counted.asked[-1]) < 5


def test_a_problem_ends_where_it_ends_alone():
    objective, minima = quadratics()
    start = torch.zeros_like(minima)
    together = minimize_many(objective, start, 40, 1e-6)
    for m in range(5):
        alone = minimize_many(lambda x, _, m=m: objective(x, torch.tensor([m])), start[m:m + 1],
                              40, 1e-6)  # fmt: skip
        torch.testing.assert_close(together[m], alone[0], rtol=0, atol=1e-9)


@pytest.mark.parametrize("steps", [0, 1, 2, 5, 20])
def test_values_never_rise(steps):
    start = torch.from_numpy(np.random.default_rng(1).uniform(-1.5, 1.5, size=(4, 3)))
    which = torch.arange(4)
    before = rosenbrock(minimize_many(rosenbrock, start, steps, 0.0), which)[0]
    after = rosenbrock(minimize_many(rosenbrock, start, steps + 1, 0.0), which)[0]
    assert bool((after <= before).all())


def test_the_start_is_not_changed_and_infinite_values_are_avoided():
    def barrier(x, which):
        """x − log x, whose first long step leaves its domain."""
        inside = x > 0
        safe = torch.where(inside, x, 1.0)
        value = torch.where(inside, 1e3 * safe - safe.log(), torch.nan)[:, 0]
        return value, 1e3 - 1 / safe

    start = torch.tensor([[0.5]], dtype=torch.float64)
    found = minimize_many(barrier, start, 200, 1e-14)
    assert float(start) == 0.5
    assert float(found) == pytest.approx(1e-3, rel=1e-4)


def two_loops(pairs, slope):
    """The inverse Hessian of the pairs times the slope, as in Nocedal's recursion."""
    q, factors = slope.clone(), []
    for s, y in reversed(pairs):
        factors.append(s @ q / (s @ y))
        q -= factors[-1] * y
    if pairs:
        s, y = pairs[-1]
        q *= (s @ y) / (y @ y)
    for (s, y), factor in zip(pairs, reversed(factors), strict=True):
        q += (factor - y @ q / (s @ y)) * s
    return q


def test_the_compact_form_is_the_two_loop_recursion():
    rng = np.random.default_rng(2)
    M, P = 3, 30
    memory = _Memory(torch.zeros(M, P, dtype=torch.float64))
    kept = [[] for _ in range(M)]
    for step in range(MEMORY + 4):
        slope = torch.from_numpy(rng.normal(size=(M, P)))
        expected = torch.stack([two_loops(pairs[-MEMORY:], g)
                                for pairs, g in zip(kept, slope, strict=True)])  # fmt: skip
        torch.testing.assert_close(memory.times(slope), expected, rtol=1e-9, atol=1e-9)
        s = torch.from_numpy(rng.normal(size=(M, P)))
        y = s * torch.from_numpy(rng.uniform(0.5, 2.0, size=(M, P)))
        memory.remember(s, y, torch.ones(M, dtype=torch.bool))
        for m in range(M):
            kept[m].append((s[m], y[m]))
        if step == 2:  # the second problem is done
            memory.keep(torch.tensor([True, False, True]))
            M, kept = 2, [kept[0], kept[2]]


def test_a_step_that_did_not_move_teaches_nothing():
    rng = np.random.default_rng(3)
    s, y, slope = (torch.from_numpy(rng.normal(size=(1, 5))) for _ in range(3))
    y = y + 10 * s
    memory = _Memory(torch.zeros(1, 5, dtype=torch.float64))
    memory.remember(s, y, torch.tensor([True]))
    before = memory.times(slope)
    memory.remember(2 * s, y, torch.tensor([False]))
    torch.testing.assert_close(memory.times(slope), before, rtol=1e-12, atol=1e-12)
