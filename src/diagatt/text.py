"""Texts as samples: sentences to rows of word vectors, and attention back onto the words."""

from diagatt.kinds.text.embedded import EmbeddedTexts, WordWeight, top_words
from diagatt.kinds.text.estimator import TextClassifier, TextRegressor
from diagatt.kinds.text.presets import text_estimator
from diagatt.kinds.text.rows import TextRows, TruncatedTextWarning

__all__ = [
    "EmbeddedTexts",
    "TextClassifier",
    "TextRegressor",
    "TextRows",
    "TruncatedTextWarning",
    "WordWeight",
    "text_estimator",
    "top_words",
]
