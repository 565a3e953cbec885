"""DiagonalAttention against a dense evaluation of the paper's equations."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck
from torch.func import functional_call

from diagatt import DiagonalAttention
from diagatt.attention import coupling
from diagatt.attention.coupling import coupled_attention, n_candidates

quick = settings(max_examples=30, deadline=None, derandomize=True)

LENGTHS = [3, 1, 5, 2]
D, R, K = 3, 2, 2
PARAMETERIZATIONS = [
    ("full", None),
    ("full", 2),
    ("factored", None),
    ("factored", 1),
    ("factored", 3),
    ("psd", None),
    ("psd", 1),
]
FORMS = ["quadratic", "affine", "contextual"]
every_form = pytest.mark.parametrize("form", FORMS)
every_matrix = pytest.mark.parametrize(("parameterization", "rank"), PARAMETERIZATIONS)


def offsets_of(lengths):
    return torch.tensor([0, *np.cumsum(lengths)])


def samples(lengths=LENGTHS, d=D, seed=0):
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(sum(lengths), d, generator=generator, dtype=torch.float64)
    return values, offsets_of(lengths)


def module(n_heads=R, n_outputs=K, n_covariates=0, seed=0, **options):
    """A module in float64 with all parameters drawn."""
    result = DiagonalAttention(D, n_heads, n_outputs, n_covariates, **options).double()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in result.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator).double())
    return result


def parts(x, offsets):
    return [x[a:b] for a, b in itertools.pairwise(offsets.tolist())]


def lengthened(X, form):
    """X, (X, 1) or (X, 1, mean row)."""
    pieces = [X]
    if form != "quadratic":
        pieces.append(X.new_ones(len(X), 1))
    if form == "contextual":
        pieces.append(X.mean(dim=0).expand(len(X), -1))
    return torch.cat(pieces, dim=1)


def dense_evaluation(model, X):
    """κ (p, R) and z (K,) of one sample, straight from the paper."""
    W = model.query_key.matrix()
    lengthy = lengthened(X, model.score_form)
    kappa, z = [], model.intercept.clone()
    for r in range(model.n_heads):
        psi = torch.diagonal(lengthy @ W[r] @ lengthy.T) / math.sqrt(X.shape[1])
        kappa.append(torch.softmax(psi / model.temperature, dim=0))
        z = z + (X.T @ kappa[r]) @ model.value[r]
    return torch.stack(kappa, dim=1), z


@every_form
@every_matrix
def test_module_equals_the_equations(parameterization, rank, form):
    model = module(parameterization=parameterization, rank=rank, score_form=form, temperature=0.7)
    values, offsets = samples()
    dense = [dense_evaluation(model, X) for X in parts(values, offsets)]
    torch.testing.assert_close(
        model.attention(values, offsets), torch.cat([k for k, _ in dense]), rtol=0, atol=1e-10
    )
    expected = torch.stack([z for _, z in dense])
    torch.testing.assert_close(model(values, offsets), expected, rtol=0, atol=1e-10)


@every_form
@every_matrix
@pytest.mark.parametrize("coupled", ["independent", "distinct"])
def test_gradients_on_ragged_samples(parameterization, rank, form, coupled):
    options = {"parameterization": parameterization, "rank": rank, "score_form": form}
    model = module(n_covariates=1, coupling=coupled, temperature=2.0, **options)
    values, offsets = samples([2, 4, 3])
    covariates = torch.randn(3, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    names = [name for name, _ in model.named_parameters()]

    def predict(values, *parameters):
        given = dict(zip(names, parameters, strict=True))
        return functional_call(model, given, (values, offsets, covariates))

    parameters = [p.detach().clone().requires_grad_() for p in model.parameters()]
    assert gradcheck(predict, (values.requires_grad_(), *parameters), fast_mode=True)


@every_form
@pytest.mark.parametrize("coupled", ["independent", "distinct"])
def test_packed_and_padded_agree(form, coupled):
    lengths = [3, 2, 5, 2]
    model = module(score_form=form, coupling=coupled)
    values, offsets = samples(lengths)
    mask = torch.arange(7) < torch.tensor(lengths)[:, None]
    padded = torch.full((4, 7, D), 1e6, dtype=torch.float64)
    padded[mask] = values
    torch.testing.assert_close(model(padded, mask=mask), model(values, offsets), rtol=0, atol=1e-10)


def test_padded_samples_without_mask_are_all_real():
    model = module()
    padded = samples([4, 4])[0].reshape(2, 4, D)
    torch.testing.assert_close(model(padded), model(padded.flatten(0, 1), torch.tensor([0, 4, 8])))


@every_form
@pytest.mark.parametrize("coupled", ["independent", "distinct"])
def test_permuting_rows_permutes_attention_and_leaves_predictions(form, coupled):
    lengths = [4, 2, 6]
    model = module(score_form=form, coupling=coupled)
    values, offsets = samples(lengths)
    generator = torch.Generator().manual_seed(3)
    order = torch.cat(
        [
            start + torch.randperm(p, generator=generator)
            for start, p in zip(offsets, lengths, strict=False)
        ]
    )
    torch.testing.assert_close(
        model.attention(values[order], offsets), model.attention(values, offsets)[order]
    )
    torch.testing.assert_close(model(values[order], offsets), model(values, offsets))


@every_form
@pytest.mark.parametrize("coupled", ["independent", "distinct"])
def test_company_in_a_batch_changes_no_prediction(form, coupled):
    model = module(score_form=form, coupling=coupled)
    values, offsets = samples([4, 2, 40, 3])
    together = model(values, offsets)
    for i, X in enumerate(parts(values, offsets)):
        alone = model(X, torch.tensor([0, len(X)]))
        torch.testing.assert_close(alone[0], together[i], rtol=0, atol=1e-12)


def test_affine_scores_are_quadratic_scores_of_rows_with_a_one():
    affine = module(score_form="affine")
    values, offsets = samples()
    ones = torch.cat([values, torch.ones(len(values), 1, dtype=torch.float64)], dim=1)
    quadratic = DiagonalAttention(D + 1, R, K).double()
    # √d differs by the added feature: the temperature takes it back.
    quadratic.temperature = math.sqrt(D / (D + 1))
    with torch.no_grad():
        quadratic.query_key.set_matrix(affine.query_key.matrix())
        quadratic.value[:, :D] = affine.value
        quadratic.intercept.copy_(affine.intercept)
    torch.testing.assert_close(quadratic(ones, offsets), affine(values, offsets))


def test_temperature_divides_scores():
    cold, warm = module(temperature=1.0), module(temperature=4.0)
    values, offsets = samples()
    torch.testing.assert_close(cold.scores(values, offsets), warm.scores(values, offsets))
    with torch.no_grad():
        warm.query_key.weight.mul_(4)
    torch.testing.assert_close(warm.attention(values, offsets), cold.attention(values, offsets))
    hot = module(temperature=1e12)
    uniform = torch.cat([torch.full((p, R), 1 / p).double() for p in LENGTHS])
    torch.testing.assert_close(hot.attention(values, offsets), uniform)


def test_covariates_add_their_effect():
    model = module(n_covariates=2)
    values, offsets = samples()
    z = torch.randn(
        len(LENGTHS), 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )
    difference = model(values, offsets, z) - model(values, offsets)
    torch.testing.assert_close(difference, z @ model.covariate)


def test_float32_and_float64_agree():
    model = module()
    values, offsets = samples()
    exact = model(values, offsets)
    single = model.float()(values.float(), offsets)
    assert single.dtype == torch.float32
    torch.testing.assert_close(single.double(), exact, rtol=1e-4, atol=1e-4)


def test_penalty_is_half_the_squared_norms():
    model = module(parameterization="factored")
    expected = 0.5 * 3 * model.value.square().sum()
    expected = expected + 0.5 * 2 * sum((W**2).sum() for W in model.query_key.matrix())
    torch.testing.assert_close(model.penalty(3.0, 2.0), expected)


# ---------------------------------------------------------------------- parameter space


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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_features": 0}, "n_features must be at least 1, got 0"),
        ({"n_heads": 0}, "n_heads must be at least 1, got 0"),
        ({"temperature": 0.0}, "temperature must be positive, got 0.0"),
        ({"temperature": math.nan}, "temperature must be positive"),
        ({"parameterization": "sparse"}, "unknown parameterization 'sparse': choose.*full"),
        ({"score_form": "cubic"}, "unknown score_form 'cubic': choose.*quadratic"),
        ({"coupling": "loose"}, "unknown coupling 'loose': choose.*distinct"),
        ({"rank": 0}, "rank must lie between 1 and 3, got 0"),
        ({"rank": 5, "score_form": "affine"}, "rank must lie between 1 and 4, got 5"),
    ],
)
def test_impossible_modules_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        DiagonalAttention(**{"n_features": 3, **options})


def test_forward_refuses_packed_rows_without_offsets_and_empty_masks():
    model = module()
    with pytest.raises(ValueError, match="packed rows need offsets"):
        model(samples()[0])
    mask = torch.tensor([[True, True], [False, False]])
    with pytest.raises(ValueError, match="sample 1 has no real row in the mask"):
        model(torch.zeros(2, 2, D, dtype=torch.float64), mask=mask)


# ---------------------------------------------------------------------- coupled heads


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


def test_heads_are_coupled_within_groups_only():
    values, offsets = samples([3, 4, 2])
    four = module(n_heads=4, coupling="distinct", groups=2)
    weights = four.attention(values, offsets)
    for first in (0, 2):
        pair = module(n_heads=2, coupling="distinct")
        with torch.no_grad():
            pair.query_key.set_matrix(four.query_key.matrix()[first : first + 2])
        torch.testing.assert_close(weights[:, first : first + 2], pair.attention(values, offsets))


def test_one_head_has_nothing_to_be_coupled_with():
    values, offsets = samples()
    for heads, groups in [(1, 1), (2, 2)]:
        free = module(n_heads=heads)
        bound = module(n_heads=heads, coupling="distinct", groups=groups)
        torch.testing.assert_close(free(values, offsets), bound(values, offsets))
