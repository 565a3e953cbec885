r"""Whether all samples have a row of interest after all.

An estimate π̂ ≤ 1 is below 1 on average where π = 1, by about half of its standard error. Therefore
EM is repeated without "none" from where it ended. If the log-likelihood loses less than 1 thereby,
which is what one parameter gains by chance (Akaike, 1974), all samples are said to have a row.
"""

from __future__ import annotations

from dataclasses import replace

from scipy.special import expit, logit

from diagatt.solvers.likelihood.em import EM, LEAST_SHARE, LatentRows, LikelihoodFit
from diagatt.solvers.share_interval import share_interval

# Share of the tolerance at which EM with "none" stops: where the log-likelihood of 400 samples
# gains .04 per iteration, π may still move by .05.
NONE_TOLERANCE = 0.01
# What π must add to the log-likelihood.
LEAST_GAIN = 1.0
# EM would not leave a start whose π is larger.
MOST_AT_START = 0.95
# Iterations of EM at each share that is tried for the interval.
MOST_ITERATIONS = 100


def inside(latent: LatentRows) -> LatentRows:
    """Return a start from which EM can go on: π = 1 has no slope."""
    none = latent.response.none
    if none is None or none.prevalence <= MOST_AT_START:
        return latent
    none = replace(none, prevalence=MOST_AT_START)
    return replace(latent, response=replace(latent.response, none=none))


def unless_all_have_one(em: EM, fit: LikelihoodFit, iterations: int) -> LikelihoodFit:
    """Return the fit, or the one with π = 1 if it explains the data as well."""
    none = fit.model.response.none
    assert none is not None
    without = EM(em.expectation, replace(em.settings, none=False, verbose=False))
    all_have = replace(fit.model, response=replace(fit.model.response, none=None))
    found = without.run(all_have, iterations)
    if fit.log_likelihood - found.log_likelihood > LEAST_GAIN:
        return fit
    sure = replace(none, prevalence=1 - LEAST_SHARE, value=0 * none.value)
    model = replace(found.model, response=replace(found.model.response, none=sure))
    return LikelihoodFit(model, found.log_likelihood, fit.history)


def prevalence_interval(em: EM, fit: LikelihoodFit) -> tuple[float, float] | None:
    """Return a 95 % interval for π."""
    none = fit.model.response.none
    if none is None:
        return None

    def at(log_odds: float) -> tuple[float, float]:
        share = float(expit(-log_odds))
        fixed = EM(em.expectation, replace(em.settings, prevalence=share, verbose=False))
        response = replace(fit.model.response, none=replace(none, prevalence=share))
        found = fixed.run(replace(fit.model, response=response), MOST_ITERATIONS)
        return fit.log_likelihood - found.log_likelihood, share

    return share_interval(at, float(-logit(none.prevalence)))
