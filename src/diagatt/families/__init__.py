"""Response distributions, one class per file; each registers itself by its name."""

from diagatt.families.accelerated import Accelerated, LogLogistic, LogNormal, Weibull
from diagatt.families.base import FAMILIES, Family, check_response, counts_trials, get_family
from diagatt.families.bernoulli import Bernoulli
from diagatt.families.binomial import Binomial
from diagatt.families.cox import Cox
from diagatt.families.gamma import Gamma
from diagatt.families.gaussian import Gaussian
from diagatt.families.huber import Huber
from diagatt.families.multinomial import Multinomial
from diagatt.families.negative_binomial import NegativeBinomial
from diagatt.families.ordinal import Ordinal
from diagatt.families.outcomes import Outcomes
from diagatt.families.poisson import Poisson
from diagatt.families.quantile import Quantile
from diagatt.families.times import Times
from diagatt.families.tweedie import Tweedie

__all__ = [
    "FAMILIES",
    "Accelerated",
    "Bernoulli",
    "Binomial",
    "Cox",
    "Family",
    "Gamma",
    "Gaussian",
    "Huber",
    "LogLogistic",
    "LogNormal",
    "Multinomial",
    "NegativeBinomial",
    "Ordinal",
    "Outcomes",
    "Poisson",
    "Quantile",
    "Times",
    "Tweedie",
    "Weibull",
    "check_response",
    "counts_trials",
    "get_family",
]
