r"""Whether attention weights can be read as posteriors of rows: the temperature out of fold.

If κ_j is the probability that row j is active, no other temperature explains held-out responses
better. T̂ and φ̂ maximize the evidence

.. math:: \sum_i w_i \log \sum_j κ_{ij}(T)\, p(y_i | ⟨v, x_{ij}⟩ + b, φ), \qquad
          κ(T) = \mathrm{softmax}(ψ / T)

of samples that the fits have not seen. T̂ > 1 says that weights are too sure of themselves.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from diagatt.attention.row_terms import RowTerms, row_terms
from diagatt.families import Family
from diagatt.segments import segment_logsumexp, spread
from diagatt.solvers.folds import OutOfFold
from diagatt.solvers.problem import Samples

# T̂ above which weights are not called posteriors, and are recalibrated.
WORST_TEMPERATURE = 1.5
# Held-out samples that decide about T̂, at most; fewer if several heads have many assignments.
MOST_SAMPLES, MOST_OF_SEVERAL_HEADS = 600, 200
# Their rows at most: what costs is the evidence of rows.
MOST_ROWS = 30_000
# T̂ is searched between 1/20 and 20.
MOST_LOG = float(np.log(20.0))


def row_temperature(unseen: OutOfFold) -> float:
    """Return T̂ of held-out samples."""
    family, parts = unseen.samples.family, held_out_terms(unseen)
    y = torch.cat([part.y for part, _ in parts]).double()
    phi = initial_log_dispersion(family, y)
    start = np.array([[0.0, phi], [0.7, phi], [0.0, phi - 0.7]])

    def cost(place: np.ndarray) -> float:
        if abs(place[0]) > MOST_LOG:
            return float("inf")
        phi = float(np.exp(place[1])) if family.has_dispersion else 1.0
        found = sum(_evidence(part, terms, float(np.exp(place[0])), phi) for part, terms in parts)
        return -found if np.isfinite(found) else float("inf")

    if family.has_dispersion:
        how = {"initial_simplex": start, "xatol": 0.01, "fatol": 0.01}
        best = minimize(cost, start[0], method="Nelder-Mead", options=how)
        return float(np.exp(best.x[0]))
    grid = np.linspace(-MOST_LOG, MOST_LOG, 25)
    near = grid[int(np.argmin([cost(np.array([t, 0.0])) for t in grid]))]
    fine = near + np.linspace(-0.25, 0.25, 11)
    return float(np.exp(fine[int(np.argmin([cost(np.array([t, 0.0])) for t in fine]))]))


def initial_log_dispersion(family: Family, y: Tensor) -> float:
    """Return log φ from which the search begins."""
    return float(np.log(family.initial_dispersion(family.scale(y, torch.ones(len(y)).to(y)))))


def held_out_terms(unseen: OutOfFold) -> list[tuple[Samples, RowTerms]]:
    """Return some held-out samples of each fold, with what the fit to the others says of rows."""
    heads = unseen.predictors[0].n_heads
    most = MOST_SAMPLES if heads == 1 else MOST_OF_SEVERAL_HEADS
    samples = unseen.samples
    step = max(1, -(-samples.n_samples // most), -(-samples.n_rows // MOST_ROWS))
    found = []
    for _, held_out, predictor in unseen.parts():
        part = held_out.take(torch.arange(0, held_out.n_samples, step, device=held_out.device))
        given = (part.values, part.offsets, part.covariates, part.offset, part.log_prior)
        found.append((part, row_terms(predictor, *given)))
    return found


def _evidence(part: Samples, terms: RowTerms, temperature: float, phi: float) -> float:
    log_p, z, places = terms.assignments(temperature)
    density: Tensor = part.family.log_density(spread(part.y.double(), places), z, phi)
    return float((part.weights.double() * segment_logsumexp(log_p + density, places)).sum())
