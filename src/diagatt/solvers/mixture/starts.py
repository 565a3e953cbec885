"""Starts of `Mixture`: each is trained briefly on a part of the data, and the best one is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from diagatt.scores import ScoreForm
from diagatt.segments import spread
from diagatt.solvers.gradient.train import History, run_lbfgs, start_at_pooled
from diagatt.solvers.mixture.objective import MixtureModule, MixtureTraining
from diagatt.solvers.problem import Samples

TRIAL_STEPS = 30
# Spread of the random entries of W, for rows of unit variance.
NOISE = 0.1
# Factor of the pooled values in the start called "shy".
SMALL_VALUES = 0.3
# Share of the responses with a log link that are not cut down in the fit of the first values.
KEPT_SHARE = 0.95


def best_start(
    build: Callable[[], MixtureModule],
    samples: Samples,
    how: MixtureTraining,
    n_starts: int,
    generator: torch.Generator,
) -> tuple[MixtureModule, History, list[dict[str, Any]]]:
    """Train every start briefly; return that of the smallest objective, its steps, and a report.

    The first start has uniform attention and the values of the GLM of mean rows, the second has
    small values, the third gives unusual rows high scores, and all others are random. With a log
    link, the largest responses are cut down for the first values, which one huge count would
    dominate.
    """
    short = replace(how, max_steps=TRIAL_STEPS, verbose=False)
    names = ["pooled", "shy", "outlier"][:n_starts]
    names += [f"random {k}" for k in range(n_starts - len(names))]
    found, report = list[tuple[MixtureModule, History]](), list[dict[str, Any]]()
    first = build()
    start_at_pooled(first.attention, _without_largest(samples), how.ridge, first.attention.n_heads)
    for name in names:
        module = build()
        module.load_state_dict(first.state_dict())
        _set_start(module, name, samples, generator)
        history, minimum = run_lbfgs(module, samples, short)
        found.append((module, history))
        report.append({"start": name, "objective": minimum.value})
    best = min(range(n_starts), key=lambda k: report[k]["objective"])
    return *found[best], report


def _without_largest(samples: Samples) -> Samples:
    """Return samples for the first values: with a log link, the largest responses are cut down."""
    if not samples.family.has_log_link or samples.family.response_width > 1:
        return samples
    order = samples.y.argsort()
    mass = samples.weights[order].double().cumsum(0)
    place = int(torch.searchsorted(mass, KEPT_SHARE * mass[-1]))
    return replace(samples, y=samples.y.clamp(max=float(samples.y[order[place]])))


@torch.no_grad()
def _set_start(
    module: MixtureModule, name: str, samples: Samples, generator: torch.Generator
) -> None:
    attention = module.attention
    form, R, d = attention.score_form, attention.n_heads, samples.n_features
    mean, variance = _moments(samples)
    W = mean.new_zeros(R, form.side(d), form.side(d))
    if name == "outlier":
        W += _outlier(form, mean, variance)
    # Heads that are alike would stay alike, and factors of zero would stay zero.
    stuck = R > 1 or attention.query_key.factors() is not None
    if stuck or name.startswith("random"):
        noise = torch.randn(W.shape, generator=generator, dtype=W.dtype).to(W.device)
        unit = torch.ones_like(W[0, 0])  # (D,)
        unit[:d] = variance.sqrt()
        unit[len(unit) - d :] *= variance.sqrt() if form.has_context else 1.0
        W += (NOISE if name == "outlier" or stuck else 1.0) * noise / unit / unit[:, None]
        W[:, d:, d:] = 0  # the softmax does not see these
    attention.query_key.set_matrix(W.to(attention.value.dtype))
    if name == "shy":
        attention.value.mul_(SMALL_VALUES)


def _moments(samples: Samples) -> tuple[Tensor, Tensor]:
    """Return mean and variance of the rows' features, (d,) each; samples count by their weight."""
    # Rows of a sample share its weight.
    weights = samples.weights / samples.row_mass.to(samples.weights)
    weights = spread(weights, samples.offsets)[:, None].double()
    if samples.log_prior is not None:
        weights = weights * samples.log_prior.double().exp()[:, None]
    rows = samples.values.double()
    mean = (weights * rows).sum(dim=0) / weights.sum()
    variance = (weights * (rows - mean).square()).sum(dim=0) / weights.sum()
    return mean, torch.where(variance > 1e-12 * mean.square(), variance, 1.0)


def _outlier(form: ScoreForm, mean: Tensor, variance: Tensor) -> Tensor:
    """Return the W that scores active rows of twice the variance: Σ (x − m)²/(4 s²), (1, D, D)."""
    d = len(mean)
    quadratic = torch.diag(1 / (4 * variance))[None]
    linear = mean.new_zeros(1, d, form.side(d) - d)
    if form.has_constant:
        linear[0, :, 0] = -mean / (2 * variance)
    return form.join(quadratic, linear) * d**0.5
