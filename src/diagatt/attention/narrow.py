r"""Linear scores of very many dimensions see two of them, or a few more.

If scores of mapped rows x' are ⟨x', u_r⟩ and effects ⟨x', v_rk⟩, all that matters of x' is its part
in the span of these vectors. With orthonormal columns Q that span it, x'' = x'Q, u'' = Qᵀu and
v'' = Qᵀv are the same model: the member keeps a few directions of the original features instead of
hundreds, in memory, in its file and in every prediction.
"""

from __future__ import annotations

import torch

from diagatt.attention.blend import Member
from diagatt.attention.diagonal import DiagonalAttention
from diagatt.rowmaps import MOST_FULL


@torch.no_grad()
def narrowed(member: Member) -> Member:
    """Return the member with as few dimensions as its linear scores see, or the member itself."""
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
        temperature=attention.temperature,
        score_form=attention.score_form.name,
        coupling=attention.coupling,
        groups=attention.groups,
        readout=attention.readout,
        family=attention.family,
    )
    return Member(narrow, rows.narrowed(Q), member.features, member.weight, member.vote)
