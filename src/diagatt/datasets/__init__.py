"""Data sets for trying the library: real ones (by path or verified download) and made-up ones."""

from diagatt.datasets.canvas import DigitCanvas, digit_canvas
from diagatt.datasets.keywords import keyword_sentiment
from diagatt.datasets.splits import fold_texts, split_texts, text_groups
from diagatt.datasets.uci import load_uci_sentiment

__all__ = [
    "DigitCanvas",
    "digit_canvas",
    "fold_texts",
    "keyword_sentiment",
    "load_uci_sentiment",
    "split_texts",
    "text_groups",
]
