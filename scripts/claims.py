"""List every claim of the README with the test or benchmark that shows it.

A claim is a sentence. `claims.toml` beside this file names the evidence of each, or says what
a sentence is that claims nothing; a test fails if a sentence is in neither, if one is no longer in
the README, or if its evidence does not exist.
"""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README, CLAIMS = ROOT / "README.md", Path(__file__).with_suffix(".toml")
# What is not prose: code, comments with what they quote, pages' own markup, pictures, headings.
NOT_PROSE = (
    r"<!-- quoted from .*?<!-- end of quotation -->",
    r"^```.*?^```$",
    r"^<.*?>$",
    r"^!\[.*?\]\(.*?\)$",
    r"^#+ .*?$",
)


def sentences(text: str) -> list[str]:
    """Return the sentences of a Markdown page, each on one line and without its emphasis."""
    for pattern in NOT_PROSE:
        text = re.sub(pattern, "", text, flags=re.MULTILINE | re.DOTALL)
    blocks = re.split(r"\n\s*\n|^- ", text, flags=re.MULTILINE)
    found = []
    for block in blocks:
        plain = " ".join(re.sub(r"\*", "", block).split())
        found += re.split(r"(?<=[.?!)])\s+(?=[A-Z`\"])", plain) if plain else []
    return found


def claims() -> dict[str, list[str]]:
    """Return the evidence of every claim; it is empty for sentences that claim nothing."""
    stored = tomllib.loads(CLAIMS.read_text(encoding="utf-8"))
    found = {sentence: [] for sentence in stored["no_claim"]["sentences"]}
    for claim in stored["claim"]:
        found[" ".join(claim["text"].split())] = claim["evidence"]
    return found


def exists(evidence: str) -> bool:
    """Return whether a test ``tests/x.py::test_y``, a benchmark or a page of results is there."""
    file, _, name = evidence.partition("::")
    path = ROOT / file
    if not name:
        return path.exists()
    if not path.is_file():
        return False
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return any(isinstance(node, ast.FunctionDef) and node.name == name for node in ast.walk(tree))


def main() -> None:
    """Print claim → evidence."""
    for claim, evidence in claims().items():
        if evidence:
            print(claim)  # noqa: T201
            for one in evidence:
                print(f"    {'→' if exists(one) else 'MISSING'} {one}")  # noqa: T201


if __name__ == "__main__":
    main()
