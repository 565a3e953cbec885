r"""A model of mapped rows, converted to the original features.

If x' = (x − s)A, lengthened rows are x̃' = x̃B, and

.. math:: \tilde x' W' \tilde x'^⊤/\sqrt{d'} = \tilde x (B W' B^⊤) \tilde x^⊤/\sqrt{d'}, \qquad
          ⟨v', x'⟩ + b' = ⟨A v', x⟩ + b' - ⟨A v', s⟩ .

Linear scores need few directions of mapped rows: if scores are ⟨x', u_r⟩ and effects ⟨x', v_rk⟩,
only the span of these vectors matters. With orthonormal columns Q that span it, x'' = x'Q,
u'' = Qᵀu and v'' = Qᵀv are the same model (`narrowed`), which takes less memory and time.
"""

from __future__ import annotations

import torch
from torch import Tensor

from diagatt.attention.blend import Member
from diagatt.attention.diagonal import DiagonalAttention
from diagatt.rowmaps import MOST_FULL, AffineMap
from diagatt.scores import ScoreForm

# Parameters of an output up to which all their covariances are returned.
MOST_COVARIANCES = 2000


def pulled_back(module: DiagonalAttention, affine: AffineMap) -> DiagonalAttention:
    """Return the same model as a function of original rows, in float64.

    W keeps its factors W' and B where these are smaller than W itself.
    """
    shift, A = affine
    return _substituted(module, A, -shift @ A)


def pushed_forward(module: DiagonalAttention, affine: AffineMap) -> DiagonalAttention:
    """Return a model of original rows as a function of mapped ones, in float64.

    Of a map to a subspace it is the model at the rows x = x'A⁺ + s.
    """
    return _substituted(module, torch.linalg.pinv(affine.matrix), affine.shift)


@torch.no_grad()
def _substituted(module: DiagonalAttention, A: Tensor, constant: Tensor) -> DiagonalAttention:
    """Return the model as a function of z where its rows are zA + constant."""
    d, mapped = A.shape
    B = _lengthened(A, constant, module.score_form)  # (D, D')
    scale = (d / mapped) ** 0.5
    query, key = _between(module, B, scale)
    value = module.value.double()  # (R, d', K)
    moved = torch.einsum("e,rek->rk", constant, value)
    none = None
    if module.none is not None:  # a none-row has no features: the constant is not added to it
        none = (module.none[0].double(), module.none[1].double() - moved)
    return DiagonalAttention.with_parameters(
        query,
        key,
        A @ value,
        module.intercept.double() + moved.sum(dim=0),
        module.covariate.double().clone(),  # effects may change their units in place
        none=none,
        **module.settings,
    )


def _between(module: DiagonalAttention, B: Tensor, scale: float) -> tuple[Tensor, Tensor | None]:
    """Return scale · B W' Bᵀ of every head, (R, D, D) and None, or two factors of it."""
    factors = module.small_factors
    if factors is not None:
        query, key = scale * B @ factors[0].double(), B @ factors[1].double()
        few = 2 * key.shape[-1] < len(B)
    else:
        W, few = module.query_key.matrix().double(), 2 * B.shape[1] < len(B)
        if few and module.score_form.has_context:
            # W leaves out terms in the mean row alone, which factors would multiply out: a none-row
            # would see them.
            W, first = W.clone(), module.n_features
            W[:, first:, first + 1 :] = W[:, first + 1 :, first:] = 0.0
        query, key = scale * B @ W, B.expand(module.n_heads, -1, -1)
    return (query, key.clone()) if few else (query @ key.mT, None)


def pulled_back_covariance(
    covariance: Tensor, affine: AffineMap, n_heads: int, n_outputs: int = 1
) -> Tensor:
    """Return the covariance of (V, b, γ), output by output, in original features.

    Of wide rows only the variances are returned, (P,): their covariances fill no memory. What is
    NaN, such as the covariances of the intercept of Cox's regression, stays NaN and does not spread
    to parameters that do not depend on it.
    """
    unknown = covariance.diagonal().isnan()
    covariance = covariance.masked_fill(unknown | unknown[:, None], 0)
    shift, A = affine
    d, mapped = A.shape
    per_output = len(covariance) // n_outputs
    rest = per_output - n_heads * mapped  # b and γ
    T = covariance.new_zeros(n_heads * d + rest, per_output)
    for r in range(n_heads):
        T[r * d : (r + 1) * d, r * mapped : (r + 1) * mapped] = A
        T[n_heads * d, r * mapped : (r + 1) * mapped] = -shift @ A
    T[n_heads * d :, n_heads * mapped :] = torch.eye(rest).to(T)
    if len(T) > MOST_COVARIANCES:
        places = torch.arange(len(covariance), device=T.device).split(per_output)
        own = [covariance[place[:, None], place] for place in places]
        variances = torch.cat([((T @ part) * T).sum(dim=1) for part in own])
        lost = torch.cat([_has_no_error(T, part) for part in unknown.split(per_output)])
        return variances.masked_fill(lost, torch.nan)
    T = torch.block_diag(*[T] * n_outputs)
    lost = _has_no_error(T, unknown)
    return (T @ covariance @ T.T).masked_fill(lost | lost[:, None], torch.nan)


def _has_no_error(T: Tensor, unknown: Tensor) -> Tensor:
    """Return which rows of a linear map depend on unknown columns, or on none at all."""
    return (T[:, unknown] != 0).any(dim=1) | ~T.any(dim=1)


def _lengthened(A: Tensor, constant: Tensor, form: ScoreForm) -> Tensor:
    """Return B, which maps lengthened rows: x̃' = x̃B."""
    d, mapped = A.shape
    B = A.new_zeros(form.side(d), form.side(mapped))
    B[:d, :mapped] = A
    if form.has_constant:
        B[d, mapped] = 1.0
        B[d, :mapped] = constant
    if form.has_context:
        B[d + 1 :, mapped + 1 :] = A
        B[d, mapped + 1 :] = constant
    return B


@torch.no_grad()
def narrowed(member: Member) -> Member:
    """Return the member in as few dimensions as its linear scores need, or the member itself."""
    attention, rows = member.attention, member.rows
    d = attention.n_features
    if member.features.kinds or "directions" not in rows._buffers or d <= MOST_FULL:
        return member
    W = attention.query_key.matrix()  # (R, d + 1, d + 1)
    if not attention.score_form.has_constant or attention.score_form.has_context:
        return member
    if bool(W[:, :d, :d].any()):
        return member
    linear = (W[:, :d, d] + W[:, d, :d]).double().T  # (d, R): √d·u
    seen = torch.cat([linear, attention.value.double().permute(1, 0, 2).flatten(1)], dim=1)
    Q = torch.linalg.qr(seen).Q  # (d, d'')
    few = Q.shape[1]
    query_key = W.new_zeros(len(W), few + 1, few + 1)
    half = (linear.T @ Q * ((few / d) ** 0.5 / 2)).to(W)
    query_key[:, :few, few] = query_key[:, few, :few] = half
    query_key[:, few, few] = W[:, d, d] * (few / d) ** 0.5
    narrow = DiagonalAttention.with_parameters(
        *(query_key, None, (Q.T @ attention.value.double()).to(W)),
        *(attention.intercept, attention.covariate),
        **attention.settings,
    )
    return Member(narrow, rows.narrowed(Q), member.features, member.weight, member.vote)
