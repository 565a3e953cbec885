"""What every attention module promises the trainer."""

import pytest
import torch

from diagatt import DiagonalAttention
from diagatt.attention import GatedAttention, StandardAttention
from tests.closeness import assert_equal_up_to_rounding

D, K = 3, 2
OFFSETS = torch.tensor([0, 3, 4, 9])
MODULES = {
    "diagonal": lambda: DiagonalAttention(D, 2, K, n_covariates=1, score_form="affine"),
    "coupled": lambda: DiagonalAttention(D, 2, K, coupling="distinct", parameterization="psd"),
    "gated": lambda: GatedAttention(D, 4, K),
    "standard": lambda: StandardAttention(D, 5, 2, K),
}


@pytest.fixture(params=MODULES)
def module(request):
    """A module in float64 with all parameters drawn."""
    generator, made = torch.Generator().manual_seed(0), MODULES[request.param]().double()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator).double())
    return made


def rows(offsets=OFFSETS):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(int(offsets[-1]), D, generator=generator, dtype=torch.float64)


def test_predictors_are_linear_in_v_and_b(module):
    offsets = torch.tensor([0, 3, 5, 9])  # two rows at least: coupled heads need them
    with torch.no_grad():
        features = module.features(rows(offsets), offsets)
        z = features @ module.value.reshape(-1, K) + module.intercept
        assert_equal_up_to_rounding(module(rows(offsets), offsets), z)


def test_every_parameter_is_an_effect_or_scores(module):
    effects, scoring = module.effects(), module.scoring()
    assert effects[:2] == [module.value, module.intercept]
    ours = [id(parameter) for parameter in (*effects, *scoring)]
    assert sorted(ours) == sorted(id(parameter) for parameter in module.parameters())


@torch.no_grad()
def test_the_penalty_grows_with_values_and_scores_but_not_with_the_intercept(module):
    before = float(module.penalty(2.0, 3.0))
    value = float(module.value.square().sum())
    module.intercept.add_(10)
    assert float(module.penalty(2.0, 3.0)) == before
    module.value.mul_(2)
    assert float(module.penalty(2.0, 3.0)) == pytest.approx(before + 3 * value)
    module.value.zero_()
    assert float(module.penalty(0.0, 3.0)) == pytest.approx(before - value)
    for parameter in module.scoring():
        parameter.zero_()
    assert float(module.penalty(2.0, 3.0)) == 0


def test_blocks_cover_every_sample_once_with_its_rows(module):
    offsets = torch.arange(0, 5 * 4000 + 1, 5)
    blocks = list(module.blocks(offsets))
    samples = [i for part, _ in blocks for i in range(part.start, part.stop)]
    assert samples == list(range(4000))
    for part, inside in blocks:
        assert (inside.start, inside.stop) == (5 * part.start, 5 * part.stop)


def test_nothing_is_bounded_unless_asked(module):
    assert not module.projects
    before = [parameter.detach().clone() for parameter in module.parameters()]
    module.project_()
    for ours, theirs in zip(module.parameters(), before, strict=True):
        assert torch.equal(ours, theirs)
