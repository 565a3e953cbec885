"""Arithmetic within samples, and the quadratic scores of rows.

Everything takes packed rows and ``offsets`` (see `diagatt.ragged`); nothing is padded. Reductions
are differentiable. Scores never build an (N, d) temporary: rows go through one reused block.
"""

from __future__ import annotations

import math
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import pairwise

import torch
from torch import Tensor

from diagatt.panels import PanelForms, is_worth_it, panel_cuts

# A block of rows and its product with W stay in the second-level cache of common processors.
BLOCK_ROWS = 2048
# Whole samples that go through a function together: enough to hide the cost of calling it.
PASS_ROWS = 65536
# e⁻⁸⁰ is nothing compared with 1; what lies below becomes denormal numbers, which are slow.
LEAST_EXPONENT = -80.0
# Rows beyond which a sample's float32 numbers are summed in float64.
LONG_SAMPLE = 8192


def offsets_from(lengths: Tensor) -> Tensor:
    """Return where samples of these lengths (n,) begin and end, (n + 1,)."""
    return torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])


def sample_of_row(offsets: Tensor) -> Tensor:
    """Return the index of the sample that each packed row belongs to, (N,)."""
    lengths = offsets.diff()
    return torch.repeat_interleave(torch.arange(len(lengths), device=offsets.device), lengths)


def row_positions(offsets: Tensor) -> Tensor:
    """Return the index of each packed row within its sample, (N,).

    Examples
    --------
    >>> row_positions(torch.tensor([0, 2, 5]))
    tensor([0, 1, 0, 1, 2])
    """
    return torch.arange(int(offsets[-1]), device=offsets.device) - spread(offsets[:-1], offsets)


def spread(per_sample: Tensor, offsets: Tensor) -> Tensor:
    """Repeat each sample's line for each of its rows, (n, …) → (N, …)."""
    return torch.repeat_interleave(per_sample, offsets.diff(), dim=0)


def with_last(x: Tensor, last: Tensor, offsets: Tensor) -> Tensor:
    """Return rows with one more at the end of each sample, (N, …) and (n, …) → (N + n, …).

    Examples
    --------
    >>> with_last(torch.tensor([1, 2, 3]), torch.tensor([8, 9]), torch.tensor([0, 2, 3]))
    tensor([1, 2, 8, 3, 9])
    """
    order = x.new_empty(len(x) + len(last), dtype=torch.int64)
    order[places_before_last(offsets)] = torch.arange(len(x), device=x.device)
    order[one_longer(offsets)[1:] - 1] = torch.arange(len(last), device=x.device) + len(x)
    return torch.cat([x, last])[order]


def one_longer(offsets: Tensor) -> Tensor:
    """Return where samples begin and end if each has one row more, (n + 1,)."""
    return offsets + torch.arange(len(offsets), device=offsets.device)


def places_before_last(offsets: Tensor) -> Tensor:
    """Return where rows stand after each sample has got one more at its end, (N,)."""
    rows = torch.arange(int(offsets[-1]), device=offsets.device)
    return rows + sample_of_row(offsets)


def segment_sum(x: Tensor, offsets: Tensor) -> Tensor:
    """Return sums over the rows of each sample, (N, …) → (n, …)."""
    if x.dtype is torch.float32 and bool((offsets.diff() > LONG_SAMPLE).any()):
        return segment_sum(x.double(), offsets).float()  # one by one, small terms would be lost
    return _SegmentSum.apply(x, offsets)


class _SegmentSum(torch.autograd.Function):
    """Sums whose gradient is differentiable again, which torch's own is not."""

    @staticmethod
    def forward(ctx, x: Tensor, offsets: Tensor) -> Tensor:
        ctx.save_for_backward(offsets)
        return torch.segment_reduce(x.contiguous(), "sum", offsets=offsets, axis=0)

    @staticmethod
    def backward(ctx, grad: Tensor):
        (offsets,) = ctx.saved_tensors
        return spread(grad, offsets), None


def segment_max(x: Tensor, offsets: Tensor) -> Tensor:
    """Return maxima over the rows of each sample, (N, …) → (n, …)."""
    return torch.segment_reduce(x.contiguous(), "max", offsets=offsets, axis=0)


def segment_mean(x: Tensor, offsets: Tensor, log_prior: Tensor | None = None) -> Tensor:
    """Return means over the rows of each sample, (N, d) → (n, d), weighted by e^log_prior, (N,)."""
    if log_prior is not None:
        return segment_sum(segment_softmax(log_prior[:, None], offsets).to(x) * x, offsets)
    lengths = offsets.diff().to(x.dtype)
    return segment_sum(x, offsets) / lengths.reshape(-1, *[1] * (x.ndim - 1))


def segment_spread(x: Tensor, offsets: Tensor, log_prior: Tensor | None = None) -> Tensor:
    """Return standard deviations over the rows of each sample, (N, d) → (n, d), weighted alike."""
    centred = x - spread(segment_mean(x, offsets, log_prior), offsets)
    return segment_mean(centred.square(), offsets, log_prior).sqrt()


def segment_argmax(x: Tensor, offsets: Tensor) -> Tensor:
    """Return the position of the first largest row of each column and sample, (N, R) → (n, R)."""
    lengths = offsets.diff()
    position = row_positions(offsets)  # (N,)
    is_largest = x >= spread(segment_max(x, offsets), offsets)  # (N, R)
    beyond = int(lengths.max())
    first = torch.where(is_largest, position[:, None], beyond).to(torch.float64)
    return (-segment_max(-first, offsets)).to(torch.int64)


def segment_softmax(scores: Tensor, offsets: Tensor) -> Tensor:
    r"""Return the softmax over the rows of each sample (equation softmax_diag_score).

    .. math:: κ_j = e^{ψ_j} / Σ_l e^{ψ_l}, \quad l \text{ in the sample of } j

    Examples
    --------
    >>> segment_softmax(torch.tensor([[0.0], [0.0], [5.0]]), torch.tensor([0, 2, 3]))
    tensor([[0.5000],
            [0.5000],
            [1.0000]])
    """
    sample = sample_of_row(offsets)
    peak = segment_max(scores.detach(), offsets)  # softmax does not depend on the shift
    weights = torch.exp((scores - peak[sample]).clamp(min=LEAST_EXPONENT))  # (N, R)
    return weights / segment_sum(weights, offsets)[sample]


def segment_logsumexp(x: Tensor, offsets: Tensor) -> Tensor:
    r"""Return :math:`\log Σ_j e^{x_j}` over the rows of each sample, (N, …) → (n, …).

    A sample needs one finite row; the others may be −∞.

    Examples
    --------
    >>> segment_logsumexp(torch.tensor([[0.0], [0.0], [5.0]]), torch.tensor([0, 2, 3]))
    tensor([[0.6931],
            [5.0000]])
    """
    peak = segment_max(x.detach(), offsets)
    terms = torch.exp((x - spread(peak, offsets)).clamp(min=LEAST_EXPONENT))
    return peak + segment_sum(terms, offsets).log()


def weighted_pool(weights: Tensor, values: Tensor, offsets: Tensor) -> Tensor:
    """Return pooled rows Xᵀκ of every sample and head, (N, R) and (N, d) → (n, R, d)."""
    heads = [segment_sum(values * weights[:, r : r + 1], offsets) for r in range(weights.shape[1])]
    return torch.stack(heads, dim=1)


def sample_blocks(offsets: Tensor, rows: int = PASS_ROWS) -> Iterator[tuple[slice, slice]]:
    """Cut samples into consecutive blocks of about `rows` rows: (samples, rows) slices.

    A sample is never split; one that is longer than a block is a block of its own.

    Examples
    --------
    >>> list(sample_blocks(torch.tensor([0, 2, 3, 9]), rows=4))
    [(slice(0, 2, None), slice(0, 3, None)), (slice(2, 3, None), slice(3, 9, None))]
    """
    cuts, start = offsets.tolist(), 0
    while start < len(cuts) - 1:
        stop = max(bisect_right(cuts, cuts[start] + rows) - 1, start + 1)
        yield slice(start, stop), slice(cuts[start], cuts[stop])
        start = stop


def map_blocks(
    function: Callable[..., Tensor],
    values: Tensor,
    offsets: Tensor,
    *per_sample: Tensor,
    log_prior: Tensor | None = None,
) -> Tensor:
    """Return ``function(values, offsets, *per_sample)``, in the memory of one block.

    The function is given `log_prior`, (N,), by name if there is one.
    """
    parts = [
        function(
            values[rows],
            offsets[samples.start : samples.stop + 1] - rows.start,
            *(array[samples] for array in per_sample),
            **({} if log_prior is None else {"log_prior": log_prior[rows]}),
        )
        for samples, rows in sample_blocks(offsets)
    ]
    return torch.cat(parts)


def row_forms(values: Tensor, query_key: Tensor, linear: Tensor) -> tuple[Tensor, Tensor]:
    r"""Return quadratic and linear forms of every row, from one pass over the rows.

    Parameters
    ----------
    values : tensor of shape (N, d)
    query_key : tensor of shape (R, d, d)
    linear : tensor of shape (d, L)

    Returns
    -------
    quadratic : tensor of shape (N, R)
        Diagonal of :math:`X W_r X^\top` (equation diag_score, unscaled), as ⟨x_j, x_j W_r⟩.
    effects : tensor of shape (N, L)
        X times `linear`. Both are differentiable in everything; the gradient in W is one weighted
        Gram matrix.

    Examples
    --------
    >>> x = torch.tensor([[1.0, 2.0]])
    >>> row_forms(x, torch.eye(2)[None], torch.tensor([[3.0], [0.0]]))
    (tensor([[5.]]), tensor([[3.]]))
    """
    return _RowForms.apply(values, query_key, linear)


_scratch = threading.local()


def _scratch_like(block: Tensor, shape: tuple[int, ...] | None = None) -> Tensor:
    """Return memory that this thread has used before: fresh pages cost as much as a product."""
    pool = _scratch.__dict__
    shape = tuple(block.shape) if shape is None else shape
    key, size = f"{block.dtype} {block.device}", math.prod(shape)
    if key not in pool or pool[key].numel() < size:
        pool[key] = block.new_empty(size)
    return pool[key][:size].view(shape)


def weighted_gram(values: Tensor, weights: Tensor) -> Tensor:
    r"""Return :math:`Σ_j c_{jr}\, x_j^\top x_j` for every column r of the weights, (R, d, d)."""
    d, heads = values.shape[1], weights.shape[1]
    gram = values.new_zeros(heads, d, d)
    cuts = list(pairwise(panel_cuts(d) if is_worth_it(values) else [0, d]))
    for start in range(0, len(values), BLOCK_ROWS):
        block = values[start : start + BLOCK_ROWS]
        scaled = _scratch_like(block)
        for r in range(heads):
            torch.mul(block, weights[start : start + BLOCK_ROWS, r : r + 1], out=scaled)
            for left, right in cuts:  # one triangle, in panels
                gram[r, :right, left:right].addmm_(block[:, :right].T, scaled[:, left:right])
    return gram if len(cuts) == 1 else gram.triu() + gram.triu(1).mT


class _RowForms(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values: Tensor, query_key: Tensor, linear: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(values, query_key, linear)
        quadratic = values.new_empty(len(values), len(query_key))
        effects = values.new_empty(linear.shape[1], len(values))  # few long lines: a fast product
        if is_worth_it(values):
            forms = PanelForms(query_key, linear, _scratch_like)
            for start in range(0, len(values), BLOCK_ROWS):
                part = slice(start, start + BLOCK_ROWS)
                forms(values[part], quadratic[part], effects[:, part])
            return quadratic, effects.T
        ones, by_line = values.new_ones(values.shape[1]), linear.T.contiguous()
        for start in range(0, len(values), BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            block = values[part]
            torch.mm(by_line, block.T, out=effects[:, part])  # while the block is in the cache
            product = _scratch_like(block)
            for r, W in enumerate(query_key):
                torch.mm(block, W, out=product)
                torch.mv(product.mul_(block), ones, out=quadratic[part, r])
        return quadratic, effects.T

    @staticmethod
    def backward(ctx, grad: Tensor, grad_effects: Tensor):
        values, query_key, linear = ctx.saved_tensors
        grad_values = grad_query_key = grad_linear = None
        if ctx.needs_input_grad[0]:
            grad_values = grad_effects @ linear.T
            for r, W in enumerate(query_key):
                grad_values.addcmul_(values @ (W + W.T), grad[:, r : r + 1])
        if ctx.needs_input_grad[1]:
            grad_query_key = weighted_gram(values, grad)
        if ctx.needs_input_grad[2]:
            grad_linear = values.T @ grad_effects
        return grad_values, grad_query_key, grad_linear
