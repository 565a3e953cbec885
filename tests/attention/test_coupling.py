"""Heads with distinct rows: against enumeration of all assignments."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck

from diagatt import DiagonalAttention
from diagatt.attention import coupling
from diagatt.attention.coupling import coupled_attention, n_candidates
from diagatt.families import get_family
from tests.attention.samples import D, module, offsets_of, parts, samples

quick = settings(max_examples=30)


def enumerated(scores):
    """Attention of one sample by listing all assignments of distinct rows, (p, R)."""
    p, heads = scores.shape
    weights = np.zeros((p, heads))
    for rows in itertools.permutations(range(p), heads):
        mass = math.exp(sum(scores[j, k] for k, j in enumerate(rows)))
        weights[list(rows), range(heads)] += mass
    return weights / weights.sum(axis=0)


@st.composite
def ragged_scores(draw):
    heads = draw(st.integers(1, 3))
    lengths = draw(st.lists(st.integers(heads, 6), min_size=1, max_size=5))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    return 2 * rng.normal(size=(sum(lengths), heads)), lengths


@given(data=ragged_scores(), padding=st.sampled_from([0, 4]))
@quick
def test_coupled_attention_equals_enumeration(data, padding):
    scores, lengths = data
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coupling, "MOST_PADDING", padding)  # 0: rows are always sorted
        ours = coupled_attention(torch.from_numpy(scores), offsets_of(lengths)).numpy()
    cuts = np.cumsum(lengths)[:-1]
    expected = np.concatenate([enumerated(part) for part in np.split(scores, cuts)])
    np.testing.assert_allclose(ours, expected, atol=1e-12)


def test_coupled_attention_sums_to_one_beyond_the_candidates():
    lengths = [n_candidates(2) * 3, 2, 50]
    scores = torch.randn(sum(lengths), 2, generator=torch.Generator().manual_seed(0)).double()
    for part in parts(coupled_attention(scores, offsets_of(lengths)), offsets_of(lengths)):
        torch.testing.assert_close(part.sum(dim=0), torch.ones(2).double())
        assert (part >= 0).all()


def test_the_error_beyond_the_candidates_is_within_the_mass_left_out():
    """The truncated sum is the distribution given that every row is a candidate."""
    scores = 3 * np.random.default_rng(0).normal(size=(30, 2))
    ours = coupled_attention(torch.from_numpy(scores), torch.tensor([0, 30])).numpy()
    candidates = np.argsort(-scores, axis=0)[: n_candidates(2)]
    joint = np.exp(scores[:, None, 0] + scores[None, :, 1])
    np.fill_diagonal(joint, 0)
    left_out = 1 - joint[np.ix_(*candidates.T)].sum() / joint.sum()
    assert 0 < left_out < 0.01
    assert np.abs(ours - enumerated(scores)).max() <= left_out


@given(data=ragged_scores())
@quick
def test_sorting_and_padding_find_the_same_candidates(data):
    scores, lengths = data
    offsets = offsets_of(lengths)
    found = []
    for padding in (0, 1000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(coupling, "MOST_PADDING", padding)
            found.append(coupling.top_candidates(torch.from_numpy(scores), offsets, 3))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0)


def test_gradient_of_coupled_attention_through_both_ways():
    scores = torch.randn(9, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    offsets = offsets_of([2, 4, 3])
    for padding in (0, 1000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(coupling, "MOST_PADDING", padding)
            assert gradcheck(lambda s: coupled_attention(s, offsets), scores.requires_grad_())


def test_one_long_sample_among_many_short_ones_is_not_padded():
    lengths = [3] * 2000 + [200_000]  # padded, the scores alone would take 6 GB
    scores = torch.randn(sum(lengths), 2, generator=torch.Generator().manual_seed(0)).double()
    offsets = offsets_of(lengths)
    weights = coupled_attention(scores, offsets)
    np.testing.assert_allclose(weights[:3], enumerated(scores[:3].numpy()), atol=1e-12)
    torch.testing.assert_close(weights[offsets[-2] :].sum(dim=0), torch.ones(2).double())


LENGTHS = [3, 2, 5, 2]
RESPONSES = {
    "gaussian": [0.3, -1.2, 2.0, 0.5],
    "bernoulli": [0.0, 1.0, 1.0, 0.0],
    "multinomial": [0.0, 2.0, 1.0, 1.0],
    "poisson": [0.0, 3.0, 1.0, 7.0],
    "gamma": [0.2, 1.0, 3.0, 0.7],
    "negative_binomial": [0.0, 3.0, 1.0, 7.0],
    "binomial": [[0.0, 2.0], [3.0, 1.0], [2.0, 2.0], [4.0, 0.0]],
    "huber": [0.3, -1.2, 2.0, 0.5],
    "tweedie": [0.0, 1.0, 3.0, 0.7],
    "ordinal": [0.0, 2.0, 1.0, 3.0],
}
PHI = 0.7
every_family = pytest.mark.parametrize("family", sorted(RESPONSES))
few_families = pytest.mark.parametrize(
    "family", ["gaussian", "bernoulli", "multinomial", "poisson", "gamma", "ordinal"]
)
every_coupling = pytest.mark.parametrize(
    ("heads", "coupling"),
    [(1, "independent"), (2, "independent"), (2, "distinct"), (3, "distinct")],
)


def law_of(family):
    """Return the family; of ordered classes with thresholds for four."""
    found = get_family(family)
    shape = torch.tensor([0.7, 1.4], dtype=torch.float64)
    return found.with_shape(shape) if family == "ordinal" else found


def mixture(family, heads, coupling="independent", **options):
    K = 3 if family == "multinomial" else 1
    given = {"coupling": coupling, "score_form": "affine", "temperature": 2.0, **options}
    return module(heads, K, n_covariates=2, readout="mixture", family=law_of(family), **given)


def example(family, heads):
    lengths = [max(p, heads) for p in LENGTHS]
    values, offsets = samples(lengths)
    covariates = torch.randn(4, 2, generator=torch.Generator().manual_seed(3)).double()
    return values, offsets, covariates, torch.tensor(RESPONSES[family]).double()


def listed(model, X, covariates):
    """Return probability and predictor of every assignment of one sample's rows to heads."""
    heads = model.n_heads
    scores = model.scores(X, torch.tensor([0, len(X)])) / model.temperature
    mass, predictors = [], []
    for rows in itertools.product(range(len(X)), repeat=heads):
        if model.coupling == "distinct" and len(set(rows)) < heads:
            continue
        mass.append(sum(scores[j, r] for r, j in enumerate(rows)).exp())
        z = sum(X[j] @ model.value[r] for r, j in enumerate(rows))
        predictors.append(z + model.intercept + covariates @ model.covariate)
    return torch.stack(mass) / sum(mass), torch.stack(predictors)


@every_family
@every_coupling
def test_density_and_mean_are_sums_over_assignments(family, heads, coupling):
    model, law = mixture(family, heads, coupling), law_of(family)
    values, offsets, covariates, y = example(family, heads)
    phi = PHI if law.has_dispersion else 1.0
    density = model.log_density(y, values, offsets, covariates, phi)
    mean = law.inverse_link(model(values, offsets, covariates))
    for i, X in enumerate(parts(values, offsets)):
        probability, z = listed(model, X, covariates[i])
        each = law.log_density(y[i].expand(len(z), *y[i].shape), z, phi).exp()
        torch.testing.assert_close(density[i].exp(), probability @ each)
        torch.testing.assert_close(mean[i], probability @ law.inverse_link(z))


@pytest.mark.parametrize("family", ["bernoulli", "multinomial", "ordinal"])
@every_coupling
def test_the_loss_of_classes_is_the_density_of_the_mixture(family, heads, coupling):
    model = mixture(family, heads, coupling)
    values, offsets, covariates, y = example(family, heads)
    loss = law_of(family).loss(y, model(values, offsets, covariates))
    torch.testing.assert_close(loss, -model.log_density(y, values, offsets, covariates))


@every_coupling
def test_with_an_identity_link_the_mixture_predicts_the_pooled_row(heads, coupling):
    model = mixture("gaussian", heads, coupling)
    values, offsets, covariates, _ = example("gaussian", heads)
    z = model(values, offsets, covariates)
    model.readout = "pooled"
    torch.testing.assert_close(model(values, offsets, covariates), z)


@every_family
def test_one_row_leaves_nothing_to_mix(family):
    model = mixture(family, 1)
    values, offsets = samples([1, 1, 1, 1])
    mixed = model(values, offsets)
    model.readout = "pooled"
    pooled = model(values, offsets)
    if family == "multinomial":  # equal up to a shift
        pooled = pooled - pooled.mean(dim=1, keepdim=True)
    torch.testing.assert_close(mixed, law_of(family).widened(pooled))


@few_families
@every_coupling
def test_gradients_of_density_and_mean(family, heads, coupling):
    model, law = mixture(family, heads, coupling), law_of(family)
    values, offsets, covariates, y = example(family, heads)
    names, parameters = zip(*model.named_parameters(), strict=True)
    phi = torch.tensor(PHI, dtype=torch.float64, requires_grad=law.has_dispersion)

    class Both(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, phi):
            given = (values, offsets, covariates)
            return self.model(*given), self.model.log_density(y, *given, phi)

    def both(phi, *given):
        state = {f"model.{name}": value for name, value in zip(names, given, strict=True)}
        return torch.func.functional_call(Both(), state, (phi,))

    assert gradcheck(both, (phi, *parameters), fast_mode=True)


def test_groups_average_the_predictors_of_their_mixtures():
    first, second = (mixture("bernoulli", 1, seed=seed) for seed in (0, 1))
    values, offsets = samples(LENGTHS)
    both = DiagonalAttention.with_parameters(
        torch.cat([m.query_key.matrix() for m in (first, second)]),
        None,
        torch.cat([first.value, second.value]) / 2,
        (first.intercept + second.intercept) / 2,
        first.covariate,
        temperature=2.0,
        score_form="affine",
        groups=2,
        readout="mixture",
        family="bernoulli",
    )
    second.intercept.data = first.intercept.data = both.intercept.data
    expected = (first(values, offsets) + second(values, offsets)) / 2
    torch.testing.assert_close(both(values, offsets), expected)
    with pytest.raises(ValueError, match="one group"):
        both.log_density(torch.zeros(4), values, offsets)


def test_rows_that_cannot_be_active_leave_gradients_finite():
    """Padded candidates and equal rows of distinct heads have probability 0."""
    model = mixture("poisson", 2, "distinct")
    values, offsets = samples([2, 9])
    model.log_density(torch.tensor([1.0, 2.0]).double(), values, offsets).sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


def test_probabilities_sum_to_one_beyond_the_candidates():
    model = mixture("bernoulli", 2, "independent")
    lengths = [2 * n_candidates(2), 3]
    values, offsets = samples(lengths)
    total = sum(
        model.log_density(torch.full((2,), y).double(), values, offsets).exp() for y in (0.0, 1.0)
    )
    torch.testing.assert_close(total, torch.ones(2).double())


def test_extreme_predictors_stay_finite():
    model = mixture("bernoulli", 1)
    values, offsets = samples(LENGTHS)
    z = model(1e3 * values, offsets).detach()
    assert torch.isfinite(z).all()
    assert float(z.abs().max()) > 30  # beyond what logit(sigmoid(z)) could give back
    density = model.log_density(torch.zeros(4).double(), 1e3 * values, offsets)
    assert torch.isfinite(density).all()


def test_a_mixture_needs_a_family_and_a_known_readout():
    with pytest.raises(ValueError, match="needs the family"):
        DiagonalAttention(D, readout="mixture")
    with pytest.raises(ValueError, match="unknown readout 'mean'"):
        DiagonalAttention(D, readout="mean")


def test_the_linear_part_of_the_score_has_its_own_penalty():
    model, linear = mixture("gaussian", 2), 0.0
    with torch.no_grad():
        W = model.query_key.weight
        W.copy_((W + W.mT) / 2)  # both halves of the linear part agree
        u = 2 * W[:, :D, D] / D**0.5  # the coefficient of x in the score
        linear = u.square().sum()
        W_without = W.clone()
        W_without[:, :D, D] = W_without[:, D, :D] = 0
    expected = 0.5 * (5.0 * linear + 3.0 * W_without.square().sum())
    torch.testing.assert_close(model.penalty(0.0, 3.0, 5.0), expected)
