"""Maximum likelihood for the latent-row model by EM.

Each sample has R distinct active rows, one a head (`row_model`); its response follows a GLM of
them (equation eq:individualized_framework). The E-step (`expectation`) finds which rows are
active, using the response; the M-step is moments and one Newton step, exact for the gaussian
family. The fitted scores need no response: they are diagonalized attention.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Generic, TypeVar

import torch
from torch import Tensor

from diagatt.attention.diagonal import DiagonalAttention
from diagatt.solvers.expectation import Expectation, Expected, ResponseModel
from diagatt.solvers.row_model import RowModel, RowMoments, estimate_row_model
from diagatt.solvers.stored import AnyProblem
from diagatt.solvers.stored_expectation import StoredExpectation

if TYPE_CHECKING:
    from diagatt.solvers.diary import Diary

E = TypeVar("E", Expectation, StoredExpectation)

# The residual variance is not believed to be smaller than this part of the response's.
LEAST_PHI = 1e-4


@dataclass(frozen=True)
class LikelihoodSettings:
    """How to fit; the names are those of the estimators' parameters."""

    score_form: str = "affine"
    coupling: str = "distinct"
    covariance: str = "full"
    covariance_rank: int = 2
    shrinkage: float | None = None
    ridge: float = 1.0
    max_iterations: int = 100
    gain_tolerance: float = 1e-4
    verbose: bool = False


@dataclass(frozen=True)
class LatentRows:
    """Parameters of the latent-row model."""

    rows: RowModel
    response: ResponseModel

    def tensors(self) -> dict[str, Tensor]:
        """All parameters, for a file or another process."""
        rows, response = self.rows, self.response
        phi = torch.tensor(response.phi, dtype=torch.float64, device=rows.A.device)
        parts = {"A": rows.A, "C": rows.C, "value": response.value, "shared": response.shared}
        return {**parts, "phi": phi}

    @classmethod
    def of(cls, tensors: dict[str, Tensor]) -> LatentRows:
        """Back from `tensors`."""
        t = tensors
        response = ResponseModel(t["value"], t["shared"], float(t["phi"]))
        return cls(RowModel(t["A"], t["C"]), response)


@dataclass
class LikelihoodFit:
    """Where EM ended."""

    model: LatentRows
    log_likelihood: float
    history: list[dict[str, float]]
    starts: list[dict] = field(default_factory=list)
    standard_errors: Tensor | None = None  # (R·d + m,)


@dataclass
class EMState:
    """Where EM is, before an E-step."""

    model: LatentRows
    schedule: list[float]  # λ of the next iterations
    step: float = 1.0
    best: float = -math.inf  # log-likelihood of `kept`
    kept: LatentRows | None = None
    expected: Expected | None = None  # E-step of `kept`
    last: float = -math.inf
    is_done: bool = False
    history: list[dict[str, float]] = field(default_factory=list)


class EM(Generic[E]):
    """EM on one problem, for all heads together or for one head beside earlier ones.

    Parameters
    ----------
    expectation : Expectation
    settings : LikelihoodSettings
    log_prior, offset : tensors, optional
        What earlier heads leave to this one; see `Expectation.run`. Rows count as far as they
        are free, as background too.
    """

    def __init__(
        self,
        expectation: E,
        settings: LikelihoodSettings,
        log_prior: Tensor | None = None,
        offset: Tensor | None = None,
    ) -> None:
        self.expectation: E = expectation
        self.settings = settings
        self.log_prior, self.offset = log_prior, offset
        self.total = expectation.totals(log_prior)
        self.weight = expectation.problem.total_weight
        self.cc = expectation.context_moments()
        self.least_phi = LEAST_PHI * expectation.problem.scale

    def expect(self, model: LatentRows, supervision: float = 1.0, keep: bool = False) -> Expected:
        """E-step; the log-likelihood is that of all rows and, by λ, of the responses."""
        expected = self.expectation.run(
            model.rows, model.response, supervision, self.log_prior, self.offset, keep
        )
        expected.log_likelihood += model.rows.background_log_likelihood(self.total)
        return expected

    def maximize(self, expected: Expected, response: ResponseModel, step: float = 1.0):
        """M-step: row moments in closed form, the GLM by a Newton step."""
        active = self.head_moments(expected)
        background = self._background(expected, active)
        s = self.settings
        rows = estimate_row_model(active, background, s.covariance, s.shrinkage, s.covariance_rank)
        return LatentRows(rows, self._newton(expected, response, step))

    def _background(self, expected: Expected, active: list[RowMoments]) -> RowMoments:
        """Moments of rows that no head chose, each as far as it is not chosen."""
        if expected.held is not None:
            background = self.total - expected.held
        elif len(active) > 1 and not self.expectation.distinct:
            return self.total  # independent heads may choose a row twice: it cannot be taken out
        else:
            background = self.total
            for moments in active:
                background = background - moments
        nothing_left = background.count < 1e-6 * self.total.count  # every row is active
        return self.total if nothing_left else background

    def head_moments(self, expected: Expected) -> list[RowMoments]:
        """Moments of the rows that each head chose; every sample counts once a head."""
        heads = zip(expected.xx, expected.xc, strict=True)
        return [RowMoments(xx, xc, self.cc, self.weight) for xx, xc in heads]

    def _newton(self, expected: Expected, response: ResponseModel, step: float) -> ResponseModel:
        R, d, K = response.value.shape
        family = self.expectation.problem.family
        bound = family.curvature_bound()
        H = expected.moments * (1.0 if bound is None else bound)
        ridge = torch.zeros(len(H), dtype=H.dtype, device=H.device)
        ridge[: R * d] = self.settings.ridge
        beta = torch.cat([response.value.reshape(R * d, K), response.shared])
        slope = expected.gradient + ridge[:, None] * beta
        # A hair of ridge keeps copied features and covariates solvable.
        hair = 1e-10 * float(H.diagonal().mean()) + 1e-300
        change = -step * torch.linalg.solve(H + torch.diag(ridge + hair), slope)
        if bound is None:  # far from the optimum the curvature says little: move z by about 1
            parts = change[: R * d].reshape(R, d, K)
            moved = torch.einsum("rdk,rde,rek->", parts, expected.xx, parts) * R / self.weight
            change = change / max(1.0, float(moved) ** 0.5)
        beta = beta + change
        phi = response.phi
        if family.name == "gaussian":  # the loss is quadratic: known exactly after the step
            gain = (expected.gradient * change).sum() + 0.5 * (change * (H @ change)).sum()
            phi = 2 * (expected.loss + float(gain)) / self.weight
        elif family.name == "gamma":
            phi = expected.dispersion / self.weight
        phi = max(phi, self.least_phi)
        return ResponseModel(beta[: R * d].reshape(R, d, K), beta[R * d :], phi)

    def run(
        self,
        model: LatentRows,
        iterations: int,
        supervision: list[float] | None = None,
        diary: Diary | None = None,
    ) -> LikelihoodFit:
        """Iterate until the likelihood gains less than the tolerance a sample.

        Parameters
        ----------
        supervision : list of float, optional
            λ of the first iterations; 1 afterwards.
        diary : Diary, optional
            Where the state is kept; a run goes on from it.

        Returns
        -------
        LikelihoodFit
            The likelihood never falls at λ = 1: a Newton step that lowers it is halved.
        """
        now = EMState(model, list(supervision or []))
        if diary is not None:
            now = diary.read() or now
        problem = self.expectation.problem
        with problem.pass_bar("EM", self.settings.verbose) as advance:
            while len(now.history) < iterations and not now.is_done:
                self._iterate(now)
                advance(f"iteration {len(now.history)}, log-likelihood {now.last:.6g}")
                if diary is not None:
                    diary.write(now)
        if now.kept is None:
            return LikelihoodFit(now.model, self.expect(now.model).log_likelihood, now.history)
        return LikelihoodFit(now.kept, now.best, now.history)

    def _iterate(self, now: EMState) -> None:
        """One E-step at the present model, then the M-step that its likelihood allows."""
        enough = self.settings.gain_tolerance * self.weight
        strength = now.schedule.pop(0) if now.schedule else 1.0
        model, expected = now.model, self.expect(now.model, strength)
        value = expected.log_likelihood
        now.history.append({"iteration": len(now.history) + 1, "log_likelihood": value})
        if strength == 1.0:
            slack = 1e-9 * abs(value)
            if now.kept is not None and not value >= now.best - slack and now.step > 1e-3:
                model, expected = now.kept, now.expected or self.expect(now.kept)
                now.step /= 2
            else:
                gain = value - now.best
                now.best, now.kept, now.expected = value, model, expected
                now.is_done = gain < enough and now.step == 1.0
                now.step = min(1.0, 2 * now.step)
        elif value - now.last < enough:  # this λ has nothing more to say
            now.schedule = [s for s in now.schedule if s > strength]
        now.last = value
        if not now.is_done:
            now.model = self.maximize(expected, model.response, now.step)


def value_standard_errors(em: EM, model: LatentRows) -> Tensor | None:
    r"""Standard errors of (V, b, γ), (R·d + m,), from the observed information (Louis, 1982).

    .. math:: I = \tfrac1φ \, \mathrm E[ℓ''\, f f^⊤] - \tfrac1{φ²} \,\mathrm{Cov}(ℓ' f),

    what complete data would tell less what not knowing the rows takes away; the distributions of
    rows are taken as known. None for several outputs.
    """
    if model.response.value.shape[2] > 1:
        return None
    expected = em.expectation.run(model.rows, model.response, spread_of_scores=True)
    phi, size = model.response.phi, model.response.value.numel()
    information = expected.moments / phi - expected.score_square / phi**2
    information[range(size), range(size)] += em.settings.ridge / phi
    values, vectors = torch.linalg.eigh((information + information.T) / 2)
    if float(values[0]) <= 0:  # not at a maximum in every direction: no honest number
        return None
    return (vectors**2 / values).sum(dim=1).sqrt()


@torch.no_grad()
def to_module(model: LatentRows, problem: AnyProblem, settings: LikelihoodSettings):
    """The fitted model as ordinary parameters of diagonalized attention."""
    heads = model.rows.n_heads
    module = DiagonalAttention(
        problem.n_features,
        heads,
        problem.n_outputs,
        problem.n_covariates,
        score_form=settings.score_form,
        coupling=settings.coupling,
    ).to(problem.device, problem.dtype)
    query_key = model.rows.query_key(settings.score_form)
    module.query_key.set_matrix(query_key.to(module.value))
    module.value.copy_(model.response.value)
    module.intercept.copy_(model.response.shared[0])
    module.covariate.copy_(model.response.shared[1:])
    return module


def join_heads(heads: list[LatentRows], background: tuple[Tensor, Tensor]) -> LatentRows:
    """Heads that were built one after the other, as one model with a common background."""
    A = torch.stack([background[0], *(h.rows.A[1] for h in heads)])
    C = torch.stack([background[1], *(h.rows.C[1] for h in heads)])
    value = torch.cat([h.response.value for h in heads])
    return LatentRows(RowModel(A, C), replace(heads[-1].response, value=value))
