"""How people and programs write names and missing entries; this imports nothing large."""

from __future__ import annotations

from collections.abc import Sequence
from unicodedata import normalize

# Signs that other programs write where an entry is missing.
MISSING = frozenset(("na", "n/a", "#n/a", "nan", "null", "none", "missing", "?", "-", "--", "."))


def nearly(missing: Sequence[str], found: Sequence[str]) -> str:
    """Say which name that was found is nearly a missing one; nothing if none is.

    Examples
    --------
    >>> nearly(["age", "sex"], ["Sex ", "size"])
    " Rename 'Sex ': it differs from 'sex' in capitals, white space or how accents are written."
    """
    alike = {normalize("NFC", name).strip().casefold(): name for name in found}
    for name in missing:
        other = alike.get(normalize("NFC", name).strip().casefold())
        if other is not None:
            return (
                f" Rename {other!r}: it differs from {name!r} in capitals, white space or how "
                "accents are written."
            )
    return ""
