r"""A 95 % interval for the share of samples that have a row of interest, by the likelihood ratio.

The interval consists of the shares at which the largest log-likelihood of all other parameters is
at most 1.92 below its maximum. It need not be symmetric, and it reaches 0 or 1 where the likelihood
is flat, as it is for two classes whose rows with and without interest look alike.
"""

from __future__ import annotations

from collections.abc import Callable

# Half of the 95 % quantile of χ² with one degree of freedom.
MOST_LOSS = 1.92
# Log odds of none: how far they are followed, the first step, and the halvings of the last one.
FARTHEST, FIRST_STEP, BISECTIONS = 6.0, 0.25, 4
# Samples up to which there is an interval: it takes about ten further fits.
MOST_SAMPLES = 5000


def share_interval(
    at: Callable[[float], tuple[float, float]], log_odds: float
) -> tuple[float, float]:
    """Return the ends of the interval.

    Parameters
    ----------
    at : callable
        Gives the loss of log-likelihood and the share for log odds of having none.
    log_odds : float
        Those of the maximum.

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
    """Return the share at one end; `last` if the likelihood is flat up to there."""
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
