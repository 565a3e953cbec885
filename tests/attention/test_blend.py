"""Blends: means and attention weights of members, averaged by hand."""

import numpy as np
import pytest
import torch

from diagatt.attention.blend import Blend, Member
from diagatt.attention.sample_features import SampleFeatures
from diagatt.families import get_family
from diagatt.rowmaps import ROW_MAPS
from tests.attention.samples import every_form, module, parts, samples

LENGTHS = [3, 2, 5, 4]
FAMILIES = ["gaussian", "bernoulli", "multinomial", "poisson"]


def member(rows, weight, vote, seed, features=(), family="gaussian", n_heads=1, **options):
    """A member with drawn parameters on mapped rows of D dimensions."""
    values, offsets = samples(LENGTHS)
    mapped = ROW_MAPS[rows].fitted_to(values)
    beside = SampleFeatures.fitted_to(features, mapped(values), offsets, torch.ones(4))
    K = 3 if family == "multinomial" else 1
    given = {"score_form": "affine", "family": family, **options}
    attention = module(n_heads, K, 1 + len(beside.shift), seed=seed, **given)
    with torch.no_grad():
        for parameter in attention.effects():
            parameter.mul_(0.5)
    return Member(attention, mapped, beside, weight, vote)


def example():
    values, offsets = samples(LENGTHS, seed=7)
    covariates = torch.randn(4, 1, generator=torch.Generator().manual_seed(1)).double()
    return values, offsets, covariates


def blended(members, family="gaussian"):
    return Blend(members, get_family(family))


@every_form
@pytest.mark.parametrize("readout", ["pooled", "mixture"])
def test_a_blend_of_one_member_is_that_member(form, readout):
    one = member("unit", 1.0, 1.0, 0, ("size", "max"), n_heads=2, score_form=form, readout=readout)
    values, offsets, covariates = example()
    mapped = one.rows(values)
    beside = torch.cat([covariates, one.features(mapped, offsets)], dim=1)
    blend = blended([one])
    with torch.no_grad():
        assert torch.equal(
            blend(values, offsets, covariates), one.attention(mapped, offsets, beside)
        )
        np.testing.assert_array_equal(
            blend.attention(values, offsets), one.attention.attention(mapped, offsets)
        )
        scores = one.attention.scores(mapped, offsets) / one.attention.temperature
        np.testing.assert_array_equal(blend.scores(values, offsets), scores)
    assert blend.n_heads == 2
    assert blend.coupling == one.attention.coupling


@pytest.mark.parametrize("family", FAMILIES)
def test_means_are_averaged(family):
    members = [
        member("unit", 0.5, 0.3, 0, family=family),
        member("ranks", 0.3, 0.0, 1, ("sum",), family=family),
        member("common", 0.2, 0.7, 2, family=family, readout="mixture"),
        member("given", 0.0, 0.0, 3, family=family),  # says nothing
    ]
    law, (values, offsets, covariates) = get_family(family), example()
    with torch.no_grad():
        each = [m(m.rows(values), offsets, covariates) for m in members]
        expected = sum(m.weight * law.inverse_link(z) for m, z in zip(members, each, strict=True))
        z = blended(members, family)(values, offsets, covariates)
    found = law.inverse_link(z)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    if family == "multinomial":
        np.testing.assert_allclose(found.sum(dim=1), 1.0, rtol=1e-12)


def test_extreme_members_leave_predictors_finite():
    members = [member("given", 0.5, 1.0, seed, family="bernoulli") for seed in (0, 1)]
    with torch.no_grad():
        for one in members:
            one.attention.intercept.fill_(1e4)
    values, offsets, covariates = example()
    assert torch.isfinite(blended(members, "bernoulli")(values, offsets, covariates)).all()


@pytest.mark.parametrize(("heads", "coupling"), [(1, "distinct"), (2, "independent")])
def test_votes_average_attention(heads, coupling):
    how = {"n_heads": heads, "coupling": coupling}
    members = [
        member("unit", 0.0, 0.25, 0, **how),
        member("common", 1.0, 0.0, 1, **how),
        member("ranks", 0.0, 0.75, 2, **how),
    ]
    blend, (values, offsets, _) = blended(members), example()
    with torch.no_grad():
        kappa = blend.attention(values, offsets)
        own = [m.attention.attention(m.rows(values), offsets) for m in (members[0], members[2])]
        every = blend.weights_of_voters(values, offsets)
        scores = blend.scores(values, offsets)
        raw = [m.attention.scores(m.rows(values), offsets) for m in (members[0], members[2])]
    np.testing.assert_allclose(kappa, 0.25 * own[0] + 0.75 * own[1], rtol=1e-12)
    np.testing.assert_array_equal(every, torch.cat(own, dim=1))
    np.testing.assert_allclose(scores, 0.25 * raw[0] + 0.75 * raw[1], rtol=1e-12)
    for sample in parts(kappa, offsets):
        np.testing.assert_allclose(sample.sum(dim=0), 1.0, rtol=1e-12)
    assert blend.votes == [0.25, 0.75]


def test_votes_that_do_not_sum_to_one_are_shares():
    blend = blended([member("unit", 0.5, 1.0, 0), member("common", 0.5, 3.0, 1)])
    assert blend.votes == [0.25, 0.75]


def test_without_votes_all_members_attend_alike():
    members = [member("unit", 0.9, 0.0, 0), member("common", 0.1, 0.0, 1)]
    blend, (values, offsets, _) = blended(members), example()
    assert blend.votes == [0.5, 0.5]
    with torch.no_grad():
        expected = sum(m.weights(m.rows(values), offsets) for m in members) / 2
        np.testing.assert_allclose(blend.attention(values, offsets), expected, rtol=1e-12)


def test_a_map_that_members_share_is_applied_once():
    members = [member("unit", 0.5, 0.5, seed) for seed in (0, 1)]
    members[1].rows = members[0].rows
    calls = []
    members[0].rows.register_forward_hook(lambda *_: calls.append(1))
    values, offsets, covariates = example()
    blend = blended(members)
    with torch.no_grad():
        blend(values, offsets, covariates)
        for read in (blend.attention, blend.scores, blend.weights_of_voters):
            read(values, offsets)
    assert len(calls) == 4


def test_single_precision_rows_stay_in_single_precision():
    members = [member("unit", 0.5, 0.5, 0), member("ranks", 0.5, 0.5, 1, ("size",))]
    values, offsets, covariates = example()
    with torch.no_grad():
        exact = blended(members)(values, offsets, covariates)
        for one in members:
            one.attention.float()
        short = blended(members)(values.float(), offsets, covariates.float())
    assert short.dtype == torch.float32
    assert short.shape == (len(LENGTHS), 1)
    np.testing.assert_allclose(short, exact, rtol=0, atol=1e-3 * float(exact.abs().max()))
