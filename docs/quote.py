"""Put what the studies printed where README and docs quote it: ``python docs/quote.py``.

A quotation stands between two comments and names a file and one of its sections::

    <!-- quoted from results/uci.md: Words located most often -->
    <!-- end of quotation -->

Nothing between them is typed; a test compares every quotation with its source.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
QUOTATION = re.compile(
    r"(<!-- quoted from (?P<file>\S+): (?P<section>.+?) -->\n)"
    r"(?P<quoted>.*?)(<!-- end of quotation -->)",
    re.DOTALL,
)


def section(file: Path, title: str) -> str:
    """Text under a heading, up to the next heading, with links that lead from the repository."""
    parts = re.split(r"^#+ (.+)$", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = dict(zip(parts[1::2], parts[2::2], strict=True))
    if title not in found:
        raise ValueError(f"{file} has no section {title!r}: its sections are {list(found)}.")
    folder = file.parent.relative_to(ROOT).as_posix()
    return re.sub(r"\]\((?!https?:)", f"]({folder}/", found[title].strip())


def quoted(text: str) -> str:
    """Return the text with every quotation as its source has it now."""

    def renew(found: re.Match) -> str:
        return f"{found[1]}\n{section(ROOT / found['file'], found['section'])}\n\n{found[5]}"

    return QUOTATION.sub(renew, text)


def main() -> None:
    """Renew the quotations of all pages."""
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = page.read_text(encoding="utf-8")
        page.write_text(quoted(text), encoding="utf-8")


if __name__ == "__main__":
    main()
