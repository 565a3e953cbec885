"""Several restarts: their average, the order of their heads, how far they agree."""

import numpy as np
import pytest
import torch
from sklearn.utils import check_random_state

from diagatt import DiagonalAttention
from diagatt.solvers.gradient.restarts import average
from tests.solvers.gradient.training import gradient_regressor, trained, training
from tests.solvers.samples import D, make_problem, ragged

# Short fits need not find a row; what is tested here is something else.
pytestmark = pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")


@pytest.mark.parametrize("coupling", ["independent", "distinct"])
@pytest.mark.parametrize("n_heads", [1, 2])
def test_restarts_are_averaged(n_heads, coupling):
    X, y = ragged()
    options = {"n_heads": n_heads, "coupling": coupling, "optimizer": "adam", "max_epochs": 3}
    model = gradient_regressor(n_restarts=3, init_scale=1.0, **options).fit(X, y)
    seed = check_random_state(0).randint(2**31 - 1)
    problem = make_problem()
    settings = training(
        optimizer="adam",
        learning_rate=model.solver.learning_rate,
        batch_size=model.solver.batch_size,
        max_epochs=3,
        ridge=1.0,
        score_ridge=0.1,
    )
    shape = {"n_heads": n_heads, "coupling": coupling}
    fits = [
        trained(problem, settings, seed=int(s), init_scale=1.0, **shape)[0]
        for s in np.random.SeedSequence(seed).generate_state(3)
    ]
    with torch.no_grad():
        singles = [fit(problem.values, problem.offsets)[:, 0].numpy() for fit in fits]
    assert np.ptp(singles, axis=0).max() > 1e-3  # the restarts do differ
    np.testing.assert_allclose(model.predict(X), np.mean(singles, axis=0), atol=1e-10)
    assert model.value_.shape == (3 * n_heads, D)
    assert len(model.history_) == model.n_restarts_ == 3
    assert model.n_heads_ == n_heads
    assert all(weights.shape[1] == n_heads for weights in model.attention(X))


def test_averaging_puts_heads_in_the_order_of_the_first_restart():
    problem, generator = make_problem(), torch.Generator().manual_seed(0)
    first = DiagonalAttention(D, 3).double()
    first.reset_parameters(1.0, generator)
    swapped = DiagonalAttention(D, 3).double()
    order = [2, 0, 1]
    with torch.no_grad():
        first.value.copy_(torch.randn(3, D, 1, generator=generator))
        swapped.query_key.set_matrix(first.query_key.matrix()[order])
        swapped.value.copy_(first.value[order])
    both = average([first, swapped], problem)
    torch.testing.assert_close(both.query_key.matrix()[:3], both.query_key.matrix()[3:])
    torch.testing.assert_close(
        both(problem.values, problem.offsets), first(problem.values, problem.offsets)
    )


def test_restart_agreement_is_the_share_of_equal_votes():
    X, y = ragged()
    model = gradient_regressor(n_heads=2, n_restarts=4, init_scale=1.0, max_epochs=2).set_params(
        solver__optimizer="adam", coupling="independent"
    )
    model.fit(X, y)
    module, (values, offsets) = model.to_module(), X.to_torch()
    with torch.no_grad():
        kappa = module.attention(values, offsets).numpy().reshape(-1, 4, 2)
    expected = []
    for i, weights in enumerate(np.split(kappa, X.offsets[1:-1])):
        votes = weights.argmax(axis=0)  # (M, R)
        np.testing.assert_array_equal(model.locate(X[[i]])[0], weights.mean(axis=1).argmax(axis=0))
        expected.append((votes == weights.mean(axis=1).argmax(axis=0)).mean(axis=0))
    agreement = model.restart_agreement(X)
    np.testing.assert_allclose(agreement, expected)
    assert ((agreement >= 0) & (agreement <= 1)).all()
    assert (agreement < 1).any()
    np.testing.assert_allclose(np.concatenate(model.attention(X)), kappa.mean(axis=1), atol=1e-12)


def test_one_restart_always_agrees_with_itself():
    X, y = ragged()
    assert (gradient_regressor(n_heads=2).fit(X, y).restart_agreement(X) == 1).all()
