"""Ways to write W: bounds, rank, the nearest point, the spread of a random start."""

import pytest
import torch

from diagatt import DiagonalAttention
from tests.attention.samples import D, R, every_matrix, module


@every_matrix
def test_projection_meets_the_bounds_and_is_idempotent(parameterization, rank):
    model = module(parameterization=parameterization, rank=rank, value_bound=0.5, score_bound=0.8)
    model.project_()
    W = model.query_key.matrix().detach().clone()
    V = model.value.detach().clone()
    assert torch.linalg.matrix_norm(W, 2).max() <= 0.8 + 1e-10
    assert torch.linalg.matrix_rank(W, atol=1e-8).max() <= (rank or D)
    assert V.norm().item() == pytest.approx(0.5)
    model.project_()
    torch.testing.assert_close(model.query_key.matrix(), W)
    torch.testing.assert_close(model.value, V)


@every_matrix
def test_projection_leaves_what_is_inside(parameterization, rank):
    model = module(parameterization=parameterization, rank=rank, value_bound=1e3, score_bound=1e3)
    if (parameterization, rank) == ("full", 2):
        model.project_()  # cuts the rank once
    W, V = model.query_key.matrix().detach().clone(), model.value.detach().clone()
    model.project_()
    torch.testing.assert_close(model.query_key.matrix(), W)
    torch.testing.assert_close(model.value, V)


@pytest.mark.parametrize("rank", [None, 2])
def test_projection_of_a_free_matrix_is_the_nearest_point(rank):
    """No other point of the space is nearer: tried at many random ones, near and far."""
    model = module(n_heads=1, rank=rank, score_bound=0.8)
    before = model.query_key.matrix().detach().clone()[0]
    model.project_()
    after = model.query_key.matrix().detach()[0]
    distance = (before - after).norm()
    generator = torch.Generator().manual_seed(1)
    for size in (1e-3, 1e-2, 1e-1, 1.0) * 50:
        other = after + size * torch.randn(D, D, dtype=torch.float64, generator=generator)
        U, S, Vh = torch.linalg.svd(other)
        S = S.clamp(max=0.8)
        S[rank:] *= rank is None
        assert (before - U * S @ Vh).norm() >= distance - 1e-9


def test_rank_alone_is_cut_without_a_bound():
    model = module(rank=1)
    U, S, Vh = torch.linalg.svd(model.query_key.matrix().detach())
    model.project_()
    nearest = U[:, :, :1] * S[:, None, :1] @ Vh[:, :1]  # Eckart and Young
    torch.testing.assert_close(model.query_key.matrix(), nearest)


@every_matrix
def test_set_matrix_takes_what_the_form_can_hold(parameterization, rank):
    model = DiagonalAttention(D, R, parameterization=parameterization, rank=rank).double()
    generator = torch.Generator().manual_seed(0)
    L = torch.randn(R, D, rank or D, dtype=torch.float64, generator=generator)
    W = L @ L.mT  # positive semidefinite, of the rank: every form can hold it
    model.query_key.set_matrix(W)
    torch.testing.assert_close(model.query_key.matrix(), W)


def test_start_is_reproducible_and_has_the_stated_spread():
    draws = []
    for _ in range(2):
        model = DiagonalAttention(60, 2, parameterization="factored")
        model.reset_parameters(0.3, torch.Generator().manual_seed(5))
        draws.append(model.query_key.query.detach().clone())
    torch.testing.assert_close(*draws, rtol=0, atol=0)
    assert draws[0].std().item() == pytest.approx(0.3, rel=0.05)
    full = DiagonalAttention(60, 2)
    full.reset_parameters(0.3, torch.Generator().manual_seed(5))
    product = model.query_key.matrix()
    assert full.query_key.weight.std().item() == pytest.approx(product.std().item(), rel=0.05)
