"""Response distributions, one class per file; a class that is imported is known by its name."""

from diagatt.families.base import FAMILIES, Family, check_response, get_family
from diagatt.families.bernoulli import Bernoulli
from diagatt.families.gamma import Gamma
from diagatt.families.gaussian import Gaussian
from diagatt.families.multinomial import Multinomial
from diagatt.families.poisson import Poisson

__all__ = [
    "FAMILIES",
    "Bernoulli",
    "Family",
    "Gamma",
    "Gaussian",
    "Multinomial",
    "Poisson",
    "check_response",
    "get_family",
]
