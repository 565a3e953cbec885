"""Whether texts look English, for language models that have read little else."""

from __future__ import annotations

import re
from collections.abc import Sequence

# Common words of English prose that its neighbours do not have ("in", "is" and "was" they do).
COMMON_WORDS = (
    "the of and to it that with this from are be but not you they my there what would can very has "
    "just your out which their were been when who more about its than them our have she his her "
    "these those could should because into don"
)
ENGLISH_MODELS = ("minilm",)
LEAST_WORDS = 100  # fewer words allow no judgement
LEAST_SHARE = 0.04  # share of common words below which texts do not look English; prose has 0.25
READ = 2000  # texts that are looked at


def english_share(texts: Sequence[str]) -> float | None:
    """Return the share of common English words; None if there are too few words to judge.

    Examples
    --------
    >>> round(english_share(["It was the best film that I have seen in a year."] * 10), 2)
    0.33
    >>> english_share(["Das war der beste Film, den ich je gesehen habe."] * 20)
    0.0
    >>> english_share(["yes"]) is None
    True
    """
    words = [w for text in texts[:READ] for w in re.findall(r"[^\W\d_]+", text.lower())]
    if len(words) < LEAST_WORDS:
        return None
    common = set(COMMON_WORDS.split())
    return sum(word in common for word in words) / len(words)
