"""Data sets for trying the library: real ones (by path, download or package) and made-up ones."""

from diagatt.arguments import check_arguments
from diagatt.datasets import (  # noqa: F401  they register their bags
    assumptions,
    drawn,
    python_packages,
    r_packages,
    simulated,
    uci,
)
from diagatt.datasets.bags import Bags, bags_names, load_bags
from diagatt.datasets.canvas import DigitCanvas, digit_canvas
from diagatt.datasets.keywords import keyword_sentiment
from diagatt.datasets.splits import fold_texts, split_texts, text_groups
from diagatt.datasets.uci import load_uci_sentiment

__all__ = [
    "Bags",
    "DigitCanvas",
    "bags_names",
    "digit_canvas",
    "fold_texts",
    "keyword_sentiment",
    "load_bags",
    "load_uci_sentiment",
    "split_texts",
    "text_groups",
]

check_arguments(globals())
