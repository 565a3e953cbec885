"""Texts as samples: sentences to rows of word vectors, and attention back onto the words."""

from diagatt.text.embedded import EmbeddedTexts, WordWeight
from diagatt.text.pipelines import TextClassifier, TextRegressor
from diagatt.text.rows import TextRows, TruncatedTextWarning
from diagatt.text.top_words import top_words

__all__ = [
    "EmbeddedTexts",
    "TextClassifier",
    "TextRegressor",
    "TextRows",
    "TruncatedTextWarning",
    "WordWeight",
    "top_words",
]
