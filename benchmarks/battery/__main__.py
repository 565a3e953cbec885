"""Run all cases, print those that went wrong, and print the table."""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.battery import (
    VERDICTS,
    Case,
    Finding,
    beside,
    commands,
    fits,
    inputs,
    judge,
    samples,
    settings,
)

WRONG = ("silent", "raw", "hang")
PARTS: dict[str, Any] = {
    "commands": commands,
    "settings": settings,
    "inputs": inputs,
    "fits": fits,
    "beside": beside,
    "samples": samples,
}


def all_cases() -> Iterator[Case]:
    """Yield every case of the battery."""
    for part in PARTS.values():
        yield from part.cases()


def table(findings: Iterable[Finding]) -> str:
    """Return the counts of verdicts by family as Markdown."""
    counts = Counter((finding.case.family, finding.verdict) for finding in findings)
    families = list(dict.fromkeys(family for family, _ in counts))
    lines = [["cases", "all", *VERDICTS], ["---", *["---:"] * (1 + len(VERDICTS))]]
    for family in [*families, "all"]:
        chosen = families if family == "all" else [family]
        own = [sum(counts[f, verdict] for f in chosen) for verdict in VERDICTS]
        lines.append([family, *(f"{n:,}" for n in (sum(own), *own))])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def remembered(log: Path | None) -> dict[str, Finding]:
    """Return what an earlier run found, by family and name of the case."""
    if log is None or not log.exists():
        return {}
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    cases = [Case(line["family"], line["name"], lambda: None, None) for line in lines]
    pairs = zip(cases, lines, strict=True)
    return {key(case): Finding(case, line["verdict"], line["said"]) for case, line in pairs}


def key(case: Case) -> str:
    """Return what a case is called in a log."""
    return f"{case.family} · {case.name}"


def found(case: Case, known: dict[str, Finding], log: Path | None) -> Finding:
    """Return what is known of a case that was right or refused before, or judge it."""
    before = known.get(key(case))
    if before is not None and before.verdict not in WRONG:
        return before
    finding = judge(case)
    if log is not None:
        line = {"family": case.family, "name": case.name}
        line |= {"verdict": finding.verdict, "said": finding.said}
        with log.open("a") as file:
            file.write(json.dumps(line) + "\n")
    return finding


def main() -> None:
    """Judge, print what is wrong, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--family", help="Only the cases of this family.")
    parser.add_argument("--model", help="Only cases whose name begins so.")
    parser.add_argument("--every", type=int, default=1, help="Only every so manyth case.")
    parser.add_argument("--log", type=Path, help="File of findings, which the next run takes up.")
    parser.add_argument("-o", "--output", type=Path, help="Markdown file to write.")
    asked = parser.parse_args()
    start, findings, known = time.process_time(), [], remembered(asked.log)
    for k, case in enumerate(all_cases()):
        if asked.family not in (None, case.family) or k % asked.every:
            continue
        if asked.model and not case.name.startswith(asked.model):
            continue
        finding = found(case, known, asked.log)
        findings.append(finding)
        if finding.verdict in WRONG:
            print(f"{finding.verdict:6} {case.family} · {case.name}: {finding.said}", flush=True)
    print(table(findings))
    print(f"{len(findings):,} cases in {time.process_time() - start:.0f} s of work")
    if asked.output:
        head = "# The battery\n\n`python -m benchmarks.battery -o FILE` wrote this table.\n\n"
        asked.output.write_text(f"{head}{table(findings)}\n")


if __name__ == "__main__":
    main()
