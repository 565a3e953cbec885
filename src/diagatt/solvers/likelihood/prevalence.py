r"""The share π of samples that have a row of interest: whether it is 1, and an interval for it.

An estimate π̂ ≤ 1 is below 1 on average where π = 1, by about half of its standard error. Therefore
EM is repeated without "none" from where it ended. If the log-likelihood falls by less than 1, which
is what one parameter gains by chance (Akaike, 1974), π̂ is 1.

The 95 % interval consists of the shares at which the largest log-likelihood of all other parameters
is at most 1.92 below its maximum. It need not be symmetric, and it reaches 0 or 1 where the
likelihood is flat, as it is for two classes whose rows with and without interest look alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from scipy.special import expit, logit

from diagatt.solvers.likelihood.em import EM, LEAST_SHARE, LikelihoodFit
from diagatt.solvers.likelihood.latent_rows import LatentRows

# Share of the tolerance at which EM with "none" stops: where the log-likelihood of 400 samples
# gains .04 per iteration, π may still move by .05.
NONE_TOLERANCE = 0.01
# Least gain of log-likelihood by π < 1.
LEAST_GAIN = 1.0
# Largest π at which EM starts.
MOST_AT_START = 0.95
# Iterations of EM at each share that is tried for the interval.
MOST_ITERATIONS = 100
# Half of the 95 % quantile of χ² with one degree of freedom.
MOST_LOSS = 1.92
# Log odds of "none": the farthest ones that are tried, the first step, and halvings of the last.
FARTHEST, FIRST_STEP, BISECTIONS = 6.0, 0.25, 4
# Samples up to which there is an interval: it takes about ten further fits.
MOST_SAMPLES = 5000


def with_prevalence_below_one(latent: LatentRows) -> LatentRows:
    """Return the model with π ≤ 0.95, because EM never leaves π = 1."""
    none = latent.response.none
    if none is None or none.prevalence <= MOST_AT_START:
        return latent
    none = replace(none, prevalence=MOST_AT_START)
    return replace(latent, response=replace(latent.response, none=none))


def prefer_all_active(em: EM, fit: LikelihoodFit, iterations: int) -> LikelihoodFit:
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
    """Return a 95 % interval for π; None if all samples have a row of interest."""
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


def share_interval(
    at: Callable[[float], tuple[float, float]], log_odds: float
) -> tuple[float, float]:
    """Return the ends of the interval.

    Parameters
    ----------
    at : callable
        Maps log odds of "none" to the loss of log-likelihood and the share.
    log_odds : float
        Log odds of "none" at the maximum.

    Examples
    --------
    >>> import math
    >>> share = lambda t: 1 / (1 + math.exp(t))
    >>> low, high = share_interval(lambda t: (t * t / 2, share(t)), 0.0)  # a standard error of 1
    >>> abs(low - share(1.96)) < 0.01, abs(high - share(-1.96)) < 0.01
    (True, True)
    """
    start = min(max(log_odds, -FARTHEST), FARTHEST)
    return _end(at, start, 1.0, 0.0), _end(at, start, -1.0, 1.0)


def _end(
    at: Callable[[float], tuple[float, float]], inside: float, sign: float, last: float
) -> float:
    """Return the share at one end, or `last` if the likelihood is flat up to `FARTHEST`."""
    step = FIRST_STEP
    while sign * inside < FARTHEST:
        outside = sign * min(sign * inside + step, FARTHEST)
        loss, tried = at(outside)
        if loss > MOST_LOSS:
            break
        inside, step = outside, 2 * step
    else:
        return last
    share = tried
    for _ in range(BISECTIONS):
        middle = 0.5 * (inside + outside)
        loss, tried = at(middle)
        if loss > MOST_LOSS:
            outside, share = middle, tried
        else:
            inside = middle
    return share
