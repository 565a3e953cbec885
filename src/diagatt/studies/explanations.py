"""Why a cell of the paper's own methods does not match: a sentence for each."""

from __future__ import annotations

__all__ = ["EXPLANATIONS"]

#: By (scenario, method, metric).
EXPLANATIONS: dict[tuple[str, str, str], str] = {}
