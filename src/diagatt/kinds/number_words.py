"""Words where numbers belong: signs for missing entries, and numbers in another notation."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from diagatt.spelling import MISSING

# Responses of more different numbers than this are not classes.
MOST_GRADES = 20
_OTHERWISE = {
    "a point instead of a comma, 0.5": re.compile(r"[-+]?\d+,\d+([eE][-+]?\d+)?"),
    "no comma between thousands, 1234.5": re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d*)?"),
    "no percent sign": re.compile(r"[-+]?\d+([.,]\d+)? ?%"),
    "a hyphen as minus sign": re.compile(r"[\u2212\u2012\u2013]\d+(\.\d*)?"),
}


def is_number(word: str) -> bool:
    """Return whether a word is a number as tables write them.

    Examples
    --------
    >>> is_number("-1.5e3"), is_number("1_0"), is_number("NA")
    (True, False, False)
    """
    try:
        float(word)
    except ValueError:
        return False
    return word.isascii() and "_" not in word  # Python reads 1_0 as 10, and tables do not


def advice(words: Collection[str]) -> str:
    """Return how to write numbers for which these words stand; nothing if they stand for none.

    Examples
    --------
    >>> advice(["NA", "?"])
    'leave cells empty where a number is missing'
    >>> advice(["0,5", "12,25"])
    'write numbers with a point instead of a comma, 0.5'
    >>> advice(["high"])
    ''
    """
    if words and all(word.strip().lower() in MISSING for word in words):
        return "leave cells empty where a number is missing"
    for way, pattern in _OTHERWISE.items():
        if words and all(pattern.fullmatch(word.strip()) for word in words):
            return f"write numbers with {way}"
    return ""


def refuse_broken_numbers(values: list[Any], column: str, table: str) -> None:
    """Refuse responses that are numbers except for a few words: they would all become classes.

    Examples
    --------
    >>> refuse_broken_numbers(["1.5", "NA", "2.5"], "y", "d.csv")
    Traceback (most recent call last):
    ValueError: d.csv, line 3: 'y' is 'NA', and other responses are numbers: leave out the lines ...
    """
    if not values or not all(isinstance(value, str) for value in values):
        return
    words = [i for i, value in enumerate(values) if not is_number(value)]
    others = {float(value) for value in values if is_number(value)}
    if not words:
        if len(others) > MOST_GRADES:
            raise ValueError(
                f"{table}: the responses {column!r} are numbers that are stored as text: convert "
                "them to numbers."
            )
        return
    way = advice([values[i] for i in words])
    are_measured = len(others) > MOST_GRADES or any(not other.is_integer() for other in others)
    mostly_numbers = len(words) < len(values) / 2
    place = f"{table}, line {words[0] + 2}: {column!r} is {values[words[0]]!r}"
    if mostly_numbers and (are_measured or way.startswith("leave")):
        raise ValueError(
            f"{place}, and other responses are numbers: leave out the lines whose response is "
            "missing, and correct the others."
        )
    if way.startswith("write") and len(set(values)) > MOST_GRADES:
        raise ValueError(f"{place}, which is read as a word: {way}.")
