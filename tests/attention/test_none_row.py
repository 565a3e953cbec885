"""The none-row against sums by hand, gradients and invariances."""

import numpy as np
import pytest
import torch

from diagatt.attention.diagonal import DiagonalAttention
from diagatt.attention.none_row import given_some, none_probability
from diagatt.attention.row_terms import row_terms
from diagatt.families import get_family
from tests.closeness import assert_equal_up_to_rounding

OFFSETS = torch.tensor([0, 2, 3, 7])


def module_of(readout="pooled", family="poisson", temperature=1.0, seed=0):
    rng = np.random.default_rng(seed)
    parts = [rng.normal(size=shape) for shape in ((1, 4, 4), (1, 3, 1), (1,), (0, 1), (1,), (1, 1))]
    W, V, b, c, nu, a = (torch.from_numpy(0.4 * part) for part in parts)
    how = {"readout": readout, "family": family, "score_form": "affine", "temperature": temperature}
    return DiagonalAttention.with_parameters(W, None, V, b, c, none=(nu, a), **how)


def values(seed=1):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(7, 3)))


def by_hand(module, x):
    """Weights, (p + 1,), and predictors, (p + 1,), of the rows of one sample and of "none"."""
    longer = torch.cat([x, torch.ones(len(x), 1)], dim=1)
    W, (nu, a) = module.query_key.matrix()[0], module.none
    psi = torch.einsum("pd,de,pe->p", longer, W, longer) / 3**0.5
    tau = module.temperature
    weight = torch.cat([(psi / tau).exp(), len(x) * (nu / tau).exp()])
    z = torch.cat([x @ module.value[0, :, 0], a[0]]) + module.intercept
    return weight / weight.sum(), z


@pytest.mark.parametrize("temperature", [1.0, 3.0])
@pytest.mark.parametrize("readout", ["pooled", "mixture"])
def test_none_competes_with_rows(readout, temperature):
    module, x = module_of(readout, temperature=temperature), values()
    family, y = get_family("poisson"), torch.tensor([0.0, 2.0, 1.0], dtype=torch.float64)
    with torch.no_grad():
        z, kappa = module(x, OFFSETS), module.attention(x, OFFSETS)
        terms = row_terms(module, x, OFFSETS)
        for i, (start, stop) in enumerate([(0, 2), (2, 3), (3, 7)]):
            weight, own = by_hand(module, x[start:stop])
            assert_equal_up_to_rounding(kappa[start:stop, 0], weight[:-1])
            assert_equal_up_to_rounding(none_probability(kappa, OFFSETS)[i, 0], weight[-1])
            given = given_some(kappa, OFFSETS)[start:stop, 0]
            assert_equal_up_to_rounding(given, weight[:-1] / weight[:-1].sum())
            expected = (weight * own).sum()
            if readout == "mixture":
                expected = (weight * own.exp()).sum().log()
                density = family.log_density(y[i].expand(len(own)), own[:, None], 1.0)
                found = module.log_density(y, x, OFFSETS)[i]
                assert_equal_up_to_rounding(found, (weight.log() + density).logsumexp(0))
            assert_equal_up_to_rounding(z[i, 0], expected)
        assert_equal_up_to_rounding(terms.weights(), kappa)
        features = module.features(x, OFFSETS)
        linear = torch.cat([module.value[0], module.none_value])
        if readout == "pooled":
            assert_equal_up_to_rounding(features @ linear + module.intercept, z)


def test_gradients_are_those_of_differences():
    module, x = module_of("mixture", "gaussian"), values()
    y = torch.tensor([0.3, -1.0, 0.7], dtype=torch.float64)

    def total(nu, a, V):
        state = {"none_score": nu, "none_value": a, "value": V}
        given = (y, x, OFFSETS, None, 0.7)
        return torch.func.functional_call(_Density(module), _named(state), given)

    given = [module.none_score, module.none_value, module.value]
    points = [p.detach().clone().requires_grad_() for p in given]
    assert torch.autograd.gradcheck(total, points)


class _Density(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, *given):
        return self.module.log_density(*given)


def _named(state):
    return {f"module.{name}": tensor for name, tensor in state.items()}


def test_copies_of_rows_leave_the_chance_of_none_alone():
    """The factor p: a sample whose rows are all there twice is as likely to have none."""
    module, x = module_of(), values()
    twice = torch.cat([x[:2], x[:2], x[2:3], x[2:3], x[3:], x[3:]])
    with torch.no_grad():
        once = none_probability(module.attention(x, OFFSETS), OFFSETS)
        again = none_probability(module.attention(twice, 2 * OFFSETS), 2 * OFFSETS)
    assert_equal_up_to_rounding(again, once)


def test_a_known_row_is_not_none():
    module, x = module_of("mixture", "gaussian"), values()
    y = torch.zeros(3, dtype=torch.float64)
    known = torch.zeros(7, dtype=torch.float64)
    known[0] = -1e4  # the active row of the first sample is its second
    with torch.no_grad():
        found = module.log_density(y, x, OFFSETS, log_known=known)
        weight, z = by_hand(module, x[:2])
    density = get_family("gaussian").log_density(y[:1], z[1:2, None], 1.0)
    assert_equal_up_to_rounding(found[:1], weight[1].log() + density)


def test_none_is_for_one_head():
    with pytest.raises(ValueError, match="one head"):
        DiagonalAttention(3, n_heads=2, none=True)
