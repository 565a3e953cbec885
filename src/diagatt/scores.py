r"""Score forms: what a row is lengthened by before its quadratic form is taken.

Head r scores the lengthened row x̃ by x̃ W_r x̃ᵀ (equation diag_score, unscaled). Written out,

.. math:: \tilde x W \tilde x^⊤ = x W_{xx} x^⊤ + x·u + x T c + \text{const},

with an affine term if rows are lengthened by a constant 1, and a term that compares the row with
the mean row c of its sample if they are lengthened by that, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from diagatt.segments import map_blocks, row_forms, sample_of_row, segment_mean


class ScoreTerms(NamedTuple):
    """W of lengthened rows (x, 1, c), cut into the terms x W x + x·u + const + x T c."""

    quadratic: Tensor  # (R, d, d)
    linear: Tensor | None  # (R, d)
    constant: Tensor | None  # (R,)
    context: Tensor | None  # (R, d, d)


@dataclass(frozen=True)
class ScoreForm:
    """Which lengthened row x̃ is scored.

    Parameters
    ----------
    name : str
    has_constant : bool
        Whether rows are lengthened by a 1.
    has_context : bool
        Whether rows are lengthened by a 1 and by the mean row of their sample.

    Examples
    --------
    >>> [get_score_form(name).side(5) for name in ("quadratic", "affine", "contextual")]
    [5, 6, 11]
    """

    name: str
    has_constant: bool = False
    has_context: bool = False

    def side(self, d: int) -> int:
        """Return D, the side of W for rows of d features."""
        return d + self.has_constant + (d if self.has_context else 0)

    def context(self, values: Tensor, offsets: Tensor) -> Tensor:
        """Return what the rows of each sample are lengthened by, c̃, (n, D − d)."""
        ones = values.new_ones(len(offsets) - 1, int(self.has_constant))
        if not self.has_context:
            return ones
        return torch.cat([ones, map_blocks(segment_mean, values, offsets)], dim=1)

    def split(self, query_key: Tensor, d: int) -> ScoreTerms:
        """Cut W, (R, D, D), into its terms.

        Terms in c alone are the same for all rows of a sample; the softmax does not see them.
        """
        if not self.has_constant:
            return ScoreTerms(query_key, None, None, None)
        linear = query_key[:, :d, d] + query_key[:, d, :d]
        context = None
        if self.has_context:
            context = query_key[:, :d, d + 1 :] + query_key[:, d + 1 :, :d].mT
        return ScoreTerms(query_key[:, :d, :d].contiguous(), linear, query_key[:, d, d], context)

    def join(self, W: Tensor, T: Tensor) -> Tensor:
        """Return the symmetric W of lengthened rows whose score is x W x + x T c̃, (R, D, D)."""
        (R, d, q), D = T.shape, self.side(T.shape[1])
        query_key = W.new_zeros(R, D, D)
        query_key[:, :d, :d] = W
        query_key[:, :d, d : d + q] = T / 2
        query_key[:, d : d + q, :d] = T.mT / 2
        return query_key

    def scores(
        self, values: Tensor, offsets: Tensor, query_key: Tensor, project: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return x̃_j W_r x̃_jᵀ of every row, (N, R), unscaled, without terms in c alone.

        The same pass over the rows also gives their products with the (d, L) matrix `project`.
        """
        d, heads = values.shape[1], len(query_key)
        terms = self.split(query_key, d)
        linear = [] if terms.linear is None else [terms.linear.T]  # (d, R)
        linear += [values.new_empty(d, 0) if project is None else project]
        factors = torch.cat(linear, dim=1)  # (d, R + L)
        if _is_zero(terms.quadratic):
            scores, products = values.new_zeros(len(values), heads), values @ factors
        else:
            scores, products = row_forms(values, terms.quadratic, factors)
        if terms.constant is not None:
            scores, products = scores + products[:, :heads] + terms.constant, products[:, heads:]
        if terms.context is not None:
            mean_row = segment_mean(values, offsets)  # (n, d)
            sample = sample_of_row(offsets)
            pull = torch.stack([mean_row @ T.mT for T in terms.context], dim=1)  # (n, R, d)
            scores = scores + torch.einsum("jd,jrd->jr", values, pull[sample])
        return scores, products

    def products(self, values: Tensor, offsets: Tensor, factor: Tensor) -> Tensor:
        """Return the lengthened rows times a (D, L) matrix, (N, L)."""
        d = values.shape[1]
        product = values @ factor[:d]
        if self.has_constant:
            product = product + factor[d]
        if self.has_context:
            pulled = segment_mean(values, offsets) @ factor[d + 1 :]  # (n, L)
            product = product + pulled[sample_of_row(offsets)]
        return product


SCORE_FORMS: dict[str, ScoreForm] = {
    form.name: form
    for form in (
        ScoreForm("quadratic"),
        ScoreForm("affine", has_constant=True),
        ScoreForm("contextual", has_constant=True, has_context=True),
    )
}


def _is_zero(quadratic: Tensor) -> bool:
    """Whether scores are linear, so that there is nothing to multiply or to differentiate."""
    return not quadratic.requires_grad and not bool(quadratic.any())


def get_score_form(name: str) -> ScoreForm:
    """Look a score form up by name."""
    if name not in SCORE_FORMS:
        raise ValueError(f"unknown score_form {name!r}: choose one of {list(SCORE_FORMS)}.")
    return SCORE_FORMS[name]
