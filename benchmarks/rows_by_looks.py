"""Try a test of any row of interest whose rows are found without the response.

Active rows are found by EM on rows alone (λ = 0), so that the pooled row q of a sample does not
depend on responses. With q freed of mean rows and g the score residual of the GLM on mean rows,

    s = Σ q g,   s' (Σ q q' g²)⁻¹ s  ~  χ² with d degrees of freedom

if mean rows say all. Nothing is cross-fitted, so no factor pays for it. The library's own test does
not use this yet. ``python -m benchmarks.rows_by_looks`` prints sizes and powers at 5 %, on the
designs of ``benchmarks.inference``, in two minutes.
"""

from __future__ import annotations

import warnings

import numpy as np
import torch
from scipy.stats import chi2

from benchmarks.inference import FAMILIES, NULLS, model_of
from benchmarks.inference_designs import Draw, active, nothing
from benchmarks.store import FOLDER
from diagatt.scores import get_score_form
from diagatt.segments import segment_sum
from diagatt.solvers.auto.units import ResponseUnits
from diagatt.solvers.existence import _directions, _known, _score_residual
from diagatt.solvers.likelihood.em import EM, EMSettings, LatentRows
from diagatt.solvers.likelihood.expectation import Expectation
from diagatt.solvers.likelihood.starts import _starts
from diagatt.tables import markdown_table

FORM = get_score_form("affine")
ITERATIONS, TOLERANCE = 40, 1e-3
N_NULL, N_POWER, EFFECTS = 100, 40, (0.15, 0.2, 0.3, 0.4)


def p_value(family: str, draw: Draw, seed: int) -> float:
    """Return the p-value of the hypothesis that mean rows say all."""
    problem = model_of(family, "auto", seed)._problem(draw.X, draw.y, None, None)
    part = ResponseUnits.of(problem).scaled(problem)
    em = EM(Expectation(part, FORM, True), EMSettings(tolerance=TOLERANCE))
    starts = _starts(em, part, np.random.default_rng(seed))
    fits = [_of_rows_alone(em, starts[name][0]) for name in ("outlier", "random")]
    model = max(fits, key=lambda fit: fit[0])[1]
    given = (model.rows, model.response, 0.0)
    kappa = torch.cat(em.expectation.of_part(part).run(*given, keep=True).responsibilities)
    pooled = segment_sum(kappa * part.values, part.offsets).double()  # (n, d)
    known, weights = _known(part), part.weights.double()
    g = _score_residual(part, known)  # (n, 1)
    F = _directions(known, weights, part.n_samples // 4)
    rest = pooled - F @ torch.linalg.lstsq(F, pooled, driver="gelsd").solution
    products = rest * g
    total = products.sum(dim=0)
    statistic = float(total @ torch.linalg.solve(products.T @ products, total))
    return float(chi2.sf(statistic, pooled.shape[1]))


def _of_rows_alone(em: EM, model: LatentRows) -> tuple[float, LatentRows]:
    """Run EM without the response; return the log-likelihood of rows and the model."""
    last = -np.inf
    for _ in range(ITERATIONS):
        expected = em.expect(model, 0.0)
        if expected.log_likelihood - last < TOLERANCE * em.weight:
            break
        last = expected.log_likelihood
        model = em.maximize(expected, model.response)
    return last, model


def main() -> None:
    """Print and store both tables."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)

    def found(family: str, draws: list[Draw]) -> str:
        rejected = [p_value(family, draw, k) < 0.05 for k, draw in enumerate(draws)]
        return f"{np.mean(rejected):.3f}"

    sizes = [
        [f, *(found(f, [nothing(k, f, 150, 6, 1000 + s) for s in range(N_NULL)]) for k in NULLS)]
        for f in FAMILIES
    ]
    powers = [
        [f, *(found(f, [active("well", f, 300, s, e) for s in range(N_POWER)]) for e in EFFECTS)]
        for f in FAMILIES
    ]
    text = f"## size, {N_NULL} data sets each\n\n" + markdown_table(["family", *NULLS], sizes)
    head = ["family", *(f"effect {effect}" for effect in EFFECTS)]
    text += f"\n\n## power, {N_POWER} data sets each\n\n" + markdown_table(head, powers) + "\n"
    (FOLDER / "rows_by_looks.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
