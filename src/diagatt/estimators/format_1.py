"""Model files of format 1, in which the parameters of solvers were those of the estimator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from diagatt.persistence import Document, Tensors, to_json
from diagatt.solvers import Auto, Checkpoint, Gradient, Likelihood, Refined, Solver, Uniform


def in_present_format(
    names_kept: Sequence[str],
    former: Sequence[str],
    tensors: Tensors,
    document: Document,
) -> tuple[Tensors, Document]:
    """Return what a file of format 1 holds, whose parameters were flat, in the present format.

    Before W had factors, it was a tensor of its own name.

    Parameters
    ----------
    names_kept : list of str
        Parameters that the estimator still has.
    former : list of str
        Parameters that it had, and that no solver has.
    tensors, document
        The content of the file.
    """
    flat = dict(document["parameters"])
    form, every = flat["score_form"], flat.pop("checkpoint_every")
    if flat["checkpoint"] is not None and every != 1:
        flat["checkpoint"] = Checkpoint(flat["checkpoint"], every)
    gone = {*names_kept, *former}
    own = {name: value for name, value in flat.items() if name not in gone}
    rank = own["rank"] or 2  # None meant two directions to the likelihood solver
    names = ("covariance", "shrinkage")
    likelihood = Likelihood(rank=rank, **{name: own.pop(name) for name in names})
    solvers: dict[str, Solver] = {"likelihood": likelihood, "gradient": Gradient(**own)}
    if flat["solver"] in solvers:
        solver: Any = solvers[flat["solver"]]
    elif repr(likelihood) + repr(solvers["gradient"]) == "Likelihood()Gradient()":
        solver = "auto"
    else:
        solver = Auto([Uniform(), likelihood, Refined(likelihood), solvers["gradient"]])
    kept = {name: value for name, value in flat.items() if name in names_kept}
    parameters = {**kept, "solver": to_json("solver", solver)}
    fitted = {**document["fitted"], "score_form_": form}
    if fitted["solver_"] == "polish":
        fitted["solver_"] = Refined.name
    if "query_key_" in tensors and "query_" not in tensors:
        fitted["key_"] = None
        tensors = {{"query_key_": "query_"}.get(name, name): t for name, t in tensors.items()}
    return tensors, {**document, "parameters": parameters, "fitted": fitted}
