"""E-step of the latent-row model: one pass over all samples that adds up small statistics."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from torch import Tensor

from diagatt.scores import ScoreForm
from diagatt.solvers.likelihood.expected import Expected, ResponseModel
from diagatt.solvers.likelihood.incomplete import IncompleteExpectation
from diagatt.solvers.likelihood.part import PartExpectation
from diagatt.solvers.likelihood.row_model import RowModel, RowMoments
from diagatt.solvers.problem import Problem, RememberedPart, Samples


class Expectation:
    """The E-step for one problem, in memory or on disk.

    Parameters
    ----------
    problem : Problem
    score_form : ScoreForm
        Says which context rows are conditioned on.
    distinct : bool
        Whether the rows of different heads must differ.
    """

    def __init__(self, problem: Problem, score_form: ScoreForm, distinct: bool = True) -> None:
        self.problem, self.distinct = problem, distinct

        def part_expectation(part: Samples) -> Any:
            context = score_form.context(part.values, part.offsets)
            if part.missing is not None:
                return IncompleteExpectation(part, context)
            return PartExpectation(part, context, distinct)

        self.of_part = RememberedPart(problem, part_expectation)

    @cached_property
    def _moments(self) -> tuple[RowMoments, Tensor]:
        """Moments of all rows and of the context, from one pass."""

        def terms(part: Samples) -> list[Tensor]:
            here = self.of_part(part)
            return [*here.totals().tensors(), here.context_moments()]

        *rows, context = self.problem.total(terms)
        return RowMoments.of_tensors(rows), context

    @property
    def totals(self) -> RowMoments:
        """Moments of all rows, weighted by sample weight and by how free each row is."""
        return self._moments[0]

    @property
    def context_moments(self) -> Tensor:
        """Σ w c̃ c̃ᵀ, (q, q)."""
        return self._moments[1]

    def run(
        self,
        rows: RowModel,
        response: ResponseModel,
        supervision: float = 1.0,
        score_variance: bool = False,
    ) -> Expected:
        """Make one pass over all samples; see `PartExpectation.run`."""

        def terms(part: Samples) -> list[Tensor]:
            here = self.of_part(part)
            return here.run(rows, response, supervision, score_variance=score_variance).sums()

        return Expected.of_sums(self.problem.total(terms))
