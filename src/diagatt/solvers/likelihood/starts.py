"""Starts of EM, which are tried on a part of the data and ranked by likelihood.

With several heads, one head is built after the other, given which rows the earlier heads chose and
what these rows explain. Then all heads are refined together.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from diagatt.scores import ScoreForm
from diagatt.segments import segment_sum
from diagatt.solvers.glm import fit_glm
from diagatt.solvers.likelihood.em import EM, EMSettings, Expectation, join_heads
from diagatt.solvers.likelihood.latent_rows import (
    LatentRows,
    NoneModel,
    ResponseModel,
    RowModel,
    gaussian_of,
)
from diagatt.solvers.problem import Samples, mean_rows

TRIAL_ITERATIONS = 25
TRIAL_TOLERANCE = 1e-2
REFINE_ITERATIONS = 30
# Share of samples that have an active row at the start, if some may have none.
START_SHARE = 0.5
# λ of the first iterations of starts that ignore the response at first.
ROWS_FIRST = [0.0] * 8 + [0.25, 0.5, 0.75]


def best_start(
    samples: Samples,
    score_form: ScoreForm,
    distinct: bool,
    settings: EMSettings,
    n_heads: int,
    generator: np.random.Generator,
) -> tuple[LatentRows, list[dict]]:
    """Build and rank starts; return the best one and a report of their likelihoods."""
    settings = replace(settings, tolerance=TRIAL_TOLERANCE, verbose=False)
    heads: list[LatentRows] = []
    report: list[dict] = []
    part = samples
    for k in range(n_heads):
        em = EM(Expectation(part, score_form, distinct), settings)
        fits = em.run_together(starting_models(em, part, generator), TRIAL_ITERATIONS)
        report += [
            {"head": k, "start": name, "log_likelihood": found.log_likelihood}
            for name, found in fits.items()
        ]
        fit = max(fits.values(), key=lambda f: f.log_likelihood)
        heads.append(fit.model)
        if n_heads == 1:
            return fit.model, report
        part = _for_next_head(em, part, fit.model)
    # The shared coefficients of the last head were fitted together with all others.
    background = gaussian_of(Expectation(part, score_form, distinct).totals)
    together = EM(Expectation(samples, score_form, distinct), settings)
    return together.run(join_heads(heads, background), REFINE_ITERATIONS).model, report


def _for_next_head(em: EM, part: Samples, model: LatentRows) -> Samples:
    """Return the samples for the next head, with the rows that are free and what is explained."""
    expected = em.expectation.of_part(part).run(model.rows, model.response, keep=True)
    r = torch.cat(expected.responsibilities)  # (N, 1)
    taken = r[:, 0]
    if part.log_prior is not None:  # a row of weight w is w rows, of which one is taken
        taken = taken / part.log_prior.exp()
    free = torch.log1p(-taken.clamp(max=1 - 1e-6))
    effects = part.values @ model.response.value[0].to(r.dtype)  # (N, K)
    explained = segment_sum(r * effects, part.offsets)
    return replace(
        part,
        log_free=free if part.log_free is None else part.log_free + free,
        offset=explained if part.offset is None else part.offset + explained,
    )


def starting_models(
    em: EM, samples: Samples, generator: np.random.Generator
) -> dict[str, tuple[LatentRows, list[float]]]:
    """Return models to start from, with λ of the first iterations, by name."""
    A0, C0 = gaussian_of(em.total)
    response = _pooled_response(em, samples)

    def model(A1: Tensor, C1: Tensor) -> LatentRows:
        return LatentRows(RowModel(torch.stack([A0, A1]), torch.stack([C0, C1])), response)

    return {
        "response": (model(A0, C0), []),  # W = 0: the response alone finds rows
        "outlier": (model(A0, 2 * C0), ROWS_FIRST),  # W = C₀⁻¹/4
        "random": (model(*_random_active(A0, C0, generator)), ROWS_FIRST),
    }


def _pooled_response(em: EM, samples: Samples) -> ResponseModel:
    """Fit the GLM of mean rows: the mean of rows carries the active row's effect, up to scale."""
    family, d = samples.family, samples.n_features
    features = torch.cat([mean_rows(samples), em.expectation.of_part(samples).design], dim=1)
    penalty = torch.zeros(features.shape[1], device=features.device)
    penalty[:d] = em.settings.ridge / em.weight
    given = (samples.y, samples.weights, penalty, samples.n_outputs)
    beta = fit_glm(family, features, *given, max_steps=20, offset=samples.offset)
    phi = max(family.initial_dispersion(samples.scale), em.least_phi)
    none = NoneModel(START_SHARE, beta.new_zeros(beta.shape[1])) if em.settings.none else None
    return ResponseModel(beta[:d][None], beta[d:], phi, none)


def _random_active(A0: Tensor, C0: Tensor, generator: np.random.Generator):
    """Draw active rows that differ from the background in a random direction."""
    L = torch.linalg.cholesky(C0)
    direction = torch.from_numpy(generator.standard_normal(len(C0))).to(C0)
    direction = L @ (direction / direction.norm())
    A1 = A0.clone()
    if A1.shape[1]:
        A1[:, 0] += direction
    return A1, 1.5 * C0 + 3 * torch.outer(direction, direction)
