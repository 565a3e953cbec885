"""DiagonalAttention against a dense evaluation of the paper's equations."""

import math

import pytest
import torch
from torch.autograd import gradcheck
from torch.func import functional_call

from diagatt import DiagonalAttention
from tests.attention.samples import (
    LENGTHS,
    D,
    K,
    R,
    every_form,
    every_matrix,
    lengthened,
    module,
    parts,
    samples,
)


def dense_evaluation(model, X):
    """κ (p, R) and z (K,) of one sample, straight from the paper."""
    W = model.query_key.matrix()
    lengthy = lengthened(X, model.score_form.name)
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
