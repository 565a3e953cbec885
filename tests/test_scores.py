"""Score forms against lengthened rows that are written out."""

import pytest
import torch

from diagatt.scores import SCORE_FORMS, get_score_form
from tests.attention.samples import lengthened, offsets_of, parts, samples
from tests.closeness import assert_equal_up_to_rounding

D, R, LENGTHS = 3, 2, [3, 1, 5, 2]
SIDES = {"quadratic": D, "affine": D + 1, "contextual": 2 * D + 1}


@pytest.fixture(params=SCORE_FORMS)
def form(request):
    return get_score_form(request.param)


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def long_rows(form):
    """x̃ of all rows, (N, D)."""
    return torch.cat([lengthened(X, form.name) for X in parts(*samples(LENGTHS, D))])


def drawn_matrix(form):
    """W without terms in the context alone, which are the same for all rows of a sample."""
    W = draw(R, form.side(D), form.side(D))
    W[:, D + 1 :, D:] = 0
    W[:, D:, D + 1 :] = 0
    return W


def brute_force(x, W):
    """x̃ W x̃ᵀ, (N, R)."""
    return torch.einsum("ja,rab,jb->jr", x, W, x)


def test_the_side_is_that_of_the_lengthened_row(form):
    assert form.side(D) == SIDES[form.name] == long_rows(form).shape[1]


def test_scores_are_quadratic_forms_of_lengthened_rows(form):
    W, x = drawn_matrix(form), long_rows(form)
    scores, products = form.scores(*samples(LENGTHS, D), W)
    assert_equal_up_to_rounding(scores, brute_force(x, W))
    assert products.shape == (len(x), 0)


def test_the_same_pass_gives_products_with_the_rows(form):
    values, offsets = samples(LENGTHS, D)
    W, project = drawn_matrix(form), draw(D, 4, seed=1)
    scores, products = form.scores(values, offsets, W, project)
    assert_equal_up_to_rounding(products, values @ project)
    assert_equal_up_to_rounding(scores, form.scores(values, offsets, W)[0])


def test_products_are_those_of_lengthened_rows(form):
    factor = draw(form.side(D), 4)
    products = form.products(*samples(LENGTHS, D), factor)
    assert_equal_up_to_rounding(products, long_rows(form) @ factor)


def test_the_context_is_what_rows_are_lengthened_by(form):
    values, offsets = samples(LENGTHS, D)
    context = form.context(values, offsets)
    first = torch.stack([lengthened(X, form.name)[0] for X in parts(values, offsets)])
    assert context.shape == (len(LENGTHS), form.side(D) - D)
    assert_equal_up_to_rounding(context, first[:, D:])


def test_split_undoes_join(form):
    W, T = draw(R, D, D), draw(R, D, form.side(D) - D, seed=1)
    terms = form.split(form.join(W, T), D)
    assert torch.equal(terms.quadratic, W)
    if not form.has_constant:
        assert terms.linear is terms.constant is terms.context is None
        return
    assert torch.equal(terms.linear, T[:, :, 0])
    assert torch.equal(terms.constant, torch.zeros(R, dtype=torch.float64))
    if form.has_context:
        assert torch.equal(terms.context, T[:, :, 1:])
    else:
        assert terms.context is None


def test_joined_matrices_score_rows_against_their_context(form):
    """x̃ W̃ x̃ᵀ = x W x + x T c̃."""
    values, offsets = samples(LENGTHS, D)
    W, T = draw(R, D, D), draw(R, D, form.side(D) - D, seed=1)
    scores, _ = form.scores(values, offsets, form.join(W, T))
    context = form.context(values, offsets).repeat_interleave(offsets.diff(), dim=0)
    expected = brute_force(values, W) + torch.einsum("ja,raq,jq->jr", values, T, context)
    assert_equal_up_to_rounding(scores, expected)


def test_terms_in_the_context_alone_change_no_difference_between_rows():
    form, (values, offsets) = get_score_form("contextual"), samples(LENGTHS, D)
    W = draw(R, form.side(D), form.side(D))
    scores, _ = form.scores(values, offsets, W)
    assert torch.equal(scores, form.scores(values, offsets, drawn_matrix(form))[0])
    for left_out in parts(brute_force(long_rows(form), W) - scores, offsets):
        assert_equal_up_to_rounding(left_out, left_out[:1].expand_as(left_out))


def test_an_unknown_form_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown score_form 'cubic'.*quadratic.*contextual"):
        get_score_form("cubic")


def test_offsets_of_one_sample_are_enough(form):
    values = draw(4, D)
    W = drawn_matrix(form)
    alone, _ = form.scores(values, offsets_of([4]), W)
    assert_equal_up_to_rounding(alone, brute_force(lengthened(values, form.name), W))
