"""E-step of a problem on disk: that of its shards, added up."""

from __future__ import annotations

from functools import cached_property

from torch import Tensor

from diagatt.solvers.expectation import Expectation, Expected, ResponseModel
from diagatt.solvers.problem import Problem
from diagatt.solvers.row_model import RowModel, RowMoments, context_of
from diagatt.solvers.stored import StoredProblem


class StoredExpectation:
    """The face of `Expectation` for a store: one pass over all shards of all processes.

    Parameters
    ----------
    problem : StoredProblem
    score_form : str
        See `context_of`; the context of a shard is computed when it is read.
    distinct : bool
    """

    def __init__(self, problem: StoredProblem, score_form: str, distinct: bool = True) -> None:
        self.problem, self.score_form, self.distinct = problem, score_form, distinct

    def _of(self, part: Problem) -> Expectation:
        return Expectation(part, context_of(part, self.score_form), self.distinct)

    @cached_property
    def _moments(self) -> tuple[RowMoments, Tensor]:
        """Those of all rows, and of the context: one pass for both."""

        def terms(part: Problem) -> list[Tensor]:
            here = self._of(part)
            total = here.totals()
            count = total.xx.new_tensor(total.count)
            return [total.xx, total.xc, total.cc, count, here.context_moments()]

        xx, xc, cc, count, context = self.problem.total(terms)
        return RowMoments(xx, xc, cc, float(count)), context

    def totals(self, log_prior: Tensor | None = None) -> RowMoments:
        """Moments of all rows, weighted by their sample's weight."""
        return self._moments[0]

    def context_moments(self) -> Tensor:
        """Σ w c̃ c̃ᵀ, (q, q)."""
        return self._moments[1]

    def run(
        self,
        rows: RowModel,
        response: ResponseModel,
        supervision: float = 1.0,
        log_prior: Tensor | None = None,
        offset: Tensor | None = None,
        keep: bool = False,
        spread_of_scores: bool = False,
    ) -> Expected:
        """One pass over all rows; see `Expectation.run`."""
        if keep or log_prior is not None or offset is not None:
            raise NotImplementedError("heads are built one by one on samples in memory.")

        def terms(part: Problem) -> list[Tensor]:
            expected = self._of(part).run(
                rows, response, supervision, spread_of_scores=spread_of_scores
            )
            return expected.sums()

        return Expected.of_sums(self.problem.total(terms))
