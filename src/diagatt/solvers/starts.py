"""Where EM begins: principled starts, tried on a part of the data and ranked by likelihood.

With several heads, one head is built after the other, each beside what the earlier ones hold and
explain; then all are refined together.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from diagatt.segments import map_blocks, segment_mean, segment_sum
from diagatt.solvers.checkpoint import Checkpoint
from diagatt.solvers.diary import Diary
from diagatt.solvers.expectation import Expectation, ResponseModel
from diagatt.solvers.glm import fit_glm
from diagatt.solvers.likelihood import (
    EM,
    LatentRows,
    LikelihoodFit,
    LikelihoodSettings,
    join_heads,
    value_standard_errors,
)
from diagatt.solvers.problem import Problem
from diagatt.solvers.row_model import RowModel, context_of, gaussian_of
from diagatt.solvers.stored import AnyProblem
from diagatt.solvers.stored_expectation import StoredExpectation
from diagatt.theory.moments import Moments
from diagatt.theory.start import separating_start
from diagatt.theory.whitening import SeparationError

# Samples on which starts compete; all data refine the winner.
# At least so many, and so many times the number of features.
TRIAL_SAMPLES, TRIAL_FACTOR = 1000, 12
TRIAL_ITERATIONS = 25
TRIAL_TOLERANCE = 1e-2
REFINE_ITERATIONS = 30
# Scores first, the response later: λ of the first iterations of a start that looks at rows alone.
ROWS_FIRST = [0.0] * 8 + [0.25, 0.5, 0.75]


def fit_likelihood(
    problem: AnyProblem,
    settings: LikelihoodSettings,
    n_heads: int,
    seed: int,
    start: LatentRows | None = None,
    checkpoint: Checkpoint | None = None,
) -> LikelihoodFit:
    """Fit R heads: build and rank starts on a part of the samples, refine the best on all.

    With `start`, the fit of a part of these samples, or a `checkpoint` that was written before,
    nothing is built anew.
    """
    report: list[dict] = []
    diary = None
    if checkpoint is not None:
        diary = Diary(checkpoint, problem, settings, n_heads, seed)
        state = diary.read()
        start = start if state is None else state.model
    if start is None:
        generator = np.random.default_rng(seed)
        trial = _trial(problem, generator)
        best, report = _best_start(trial, settings, n_heads, generator)
        start = best.model
    em: EM
    if isinstance(problem, Problem):
        em = EM(_in_memory(problem, settings), settings)
    else:
        distinct = settings.coupling == "distinct"
        em = EM(StoredExpectation(problem, settings.score_form, distinct), settings)
    fit = em.run(_agreed(start, problem), settings.max_iterations, diary=diary)
    fit.starts = report
    fit.standard_errors = value_standard_errors(em, fit.model)
    return fit


def _trial(problem: AnyProblem, generator: np.random.Generator) -> Problem:
    """Samples on which starts compete, in memory."""
    size = max(TRIAL_SAMPLES, TRIAL_FACTOR * problem.n_features)
    size = min(size, problem.most_in_memory)
    chosen = np.arange(problem.n_samples)
    if problem.n_samples > size:
        chosen = np.sort(generator.choice(problem.n_samples, size, replace=False))
    elif isinstance(problem, Problem):
        return problem
    return problem.load(torch.from_numpy(chosen).to(problem.device))


def _agreed(start: LatentRows, problem: AnyProblem) -> LatentRows:
    """The first process's start: rounding may differ between machines."""
    tensors = start.tensors()
    agreed = problem.group.agree(list(tensors.values()))
    return LatentRows.of(dict(zip(tensors, agreed, strict=True)))


def _in_memory(problem: Problem, settings: LikelihoodSettings) -> Expectation:
    context = context_of(problem, settings.score_form)
    return Expectation(problem, context, settings.coupling == "distinct")


def _best_start(problem, settings, n_heads, generator) -> tuple[LikelihoodFit, list[dict]]:
    settings = replace(settings, gain_tolerance=TRIAL_TOLERANCE, verbose=False)
    expectation = _in_memory(problem, settings)
    heads: list[LatentRows] = []
    report: list[dict] = []
    log_prior, offset = None, None
    for k in range(n_heads):
        em = EM(expectation, settings, log_prior, offset)
        fits = {}
        for name, (start, supervision) in _starts(em, generator).items():
            fits[name] = em.run(start, TRIAL_ITERATIONS, supervision)
            value = fits[name].log_likelihood
            report.append({"head": k, "start": name, "log_likelihood": value})
        fit = max(fits.values(), key=lambda f: f.log_likelihood)
        heads.append(fit.model)
        if n_heads == 1:
            return fit, report
        log_prior, offset = _hand_over(em, fit.model)
    # The shared coefficients of the last head were fitted beside all others.
    together = join_heads(heads, gaussian_of(expectation.totals(log_prior)))
    return EM(expectation, settings).run(together, REFINE_ITERATIONS), report


def _hand_over(em: EM[Expectation], model: LatentRows) -> tuple[Tensor, Tensor]:
    """What the next head must know: how far rows are free, and what is explained already."""
    problem = em.expectation.problem
    r = torch.cat(em.expect(model, keep=True).responsibilities)  # (N, 1)
    free = torch.log1p(-r[:, 0].clamp(max=1 - 1e-6))
    effects = problem.values @ model.response.value[0].to(r.dtype)  # (N, K)
    explained = segment_sum(r * effects, problem.offsets)
    return (
        free if em.log_prior is None else em.log_prior + free,
        explained if em.offset is None else em.offset + explained,
    )


# ---------------------------------------------------------------------- the starts


def _starts(
    em: EM[Expectation], generator: np.random.Generator
) -> dict[str, tuple[LatentRows, list[float]]]:
    """Name → model and λ of the first iterations."""
    A0, C0 = gaussian_of(em.total)
    response = _pooled_response(em)

    def model(A1: Tensor, C1: Tensor) -> LatentRows:
        return LatentRows(RowModel(torch.stack([A0, A1]), torch.stack([C0, C1])), response)

    starts = {
        "response": (model(A0, C0), []),  # W = 0: the response alone finds rows
        "outlier": (model(A0, 2 * C0), ROWS_FIRST),  # W = C₀⁻¹/4
        "random": (model(*_random_active(A0, C0, generator)), ROWS_FIRST),
    }
    theory = _theory_covariance(em, starts["response"][0], C0)
    if theory is not None:
        starts["theory"] = (model(A0, theory), [])
    return starts


def _pooled_response(em: EM[Expectation]) -> ResponseModel:
    """GLM of mean-pooled rows: the sum of rows carries the active row's effect (β up to scale)."""
    problem = em.expectation.problem
    pooled = map_blocks(segment_mean, problem.values, problem.offsets)
    features = torch.cat([pooled, em.expectation.design], dim=1)
    d, K = problem.n_features, problem.n_outputs
    penalty = torch.zeros(features.shape[1], device=features.device)
    penalty[:d] = em.settings.ridge / em.weight
    y = problem.y
    if em.offset is not None and problem.family.name == "gaussian":
        y = y - em.offset[:, 0]
    beta = fit_glm(problem.family, features, y, problem.weights, penalty, K, max_steps=20)
    phi = max(0.5 * problem.scale, em.least_phi) if problem.family.name == "gaussian" else 1.0
    return ResponseModel(beta[:d][None], beta[d:], phi)


def _random_active(A0: Tensor, C0: Tensor, generator: np.random.Generator):
    """Active rows that differ from the background in a random direction."""
    L = torch.linalg.cholesky(C0)
    direction = torch.from_numpy(generator.standard_normal(len(C0))).to(C0)
    direction = L @ (direction / direction.norm())
    A1 = A0.clone()
    if A1.shape[1]:
        A1[:, 0] += direction
    return A1, 1.5 * C0 + 3 * torch.outer(direction, direction)


def _theory_covariance(
    em: EM[Expectation], response_start: LatentRows, C0: Tensor
) -> Tensor | None:
    """Covariance whose score is the theory's separating matrix for rows that the response names."""
    expected = em.expect(response_start)
    moments = em.head_moments(expected)[0]
    A1, C1 = gaussian_of(moments)
    mean = A1[:, 0] if A1.shape[1] else C0.new_zeros(len(C0))
    A0 = response_start.rows.A[0]
    mean0 = A0[:, 0] if A0.shape[1] else C0.new_zeros(len(C0))
    try:
        W = separating_start(
            [Moments(mean.cpu().numpy(), C1.cpu().numpy())],
            Moments(mean0.cpu().numpy(), C0.cpu().numpy()),
            divisor=1.0,
        )[0]
    except SeparationError:  # the rows that the response names do not stand out
        return None
    L = torch.linalg.cholesky(C0)
    white = 2 * L.T @ torch.from_numpy(W).to(C0) @ L  # score = ½ x (C₀⁻¹ − C₁⁻¹) x
    white = 0.8 * white / max(float(torch.linalg.matrix_norm(white, 2)), 0.8)
    eye = torch.eye(len(C0), dtype=C0.dtype, device=C0.device)
    return L @ torch.linalg.inv(eye - white) @ L.T
