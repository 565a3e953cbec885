"""What the README says is shown somewhere: every sentence has its evidence, which exists."""

import re

import pytest

from scripts.claims import CLAIMS, README, ROOT, claims, exists, sentences

SAID = sentences(README.read_text(encoding="utf-8"))
KNOWN = claims()


@pytest.mark.parametrize("sentence", SAID)
def test_every_sentence_of_the_readme_is_known(sentence):
    assert sentence in KNOWN, f"name its evidence in {CLAIMS.name}: {sentence}"


def test_no_evidence_is_kept_for_what_is_no_longer_said():
    assert [claim for claim in KNOWN if claim not in SAID] == []


@pytest.mark.parametrize("claim", [claim for claim, evidence in KNOWN.items() if evidence])
def test_evidence_exists(claim):
    assert [one for one in KNOWN[claim] if not exists(one)] == []


def test_claims_without_evidence_and_evidence_without_a_test_are_seen():
    text = "# Head\n\nIt *works*. It is fast:\n\n```\ncode. More.\n```\n\n- One (two).\n- `X` is.\n"
    assert sentences(text) == ["It works.", "It is fast:", "One (two).", "`X` is."]
    assert exists("tests/test_claims.py::test_evidence_exists")
    assert not exists("tests/test_claims.py::test_of_nothing")
    assert not exists("tests/test_nothing.py::test_evidence_exists")


def test_every_benchmark_is_listed():
    page = (ROOT / "benchmarks/README.md").read_text(encoding="utf-8")
    scripts = {p.stem for p in (ROOT / "benchmarks").glob("*.py") if "def main()" in p.read_text()}
    listed = set(re.findall(r"python -m benchmarks\.(\w+)", page)) | {"table1_cell"}
    assert sorted(scripts - listed) == []


def test_the_readme_counts_cells_as_the_results_do():
    """Both rules side by side: within 3 SDs, and within 3 SDs or 10 %."""
    said = " ".join(README.read_text(encoding="utf-8").split())
    results = " ".join((ROOT / "results/README.md").read_text(encoding="utf-8").split())
    pattern = r"SDs lie (\d+ of \d+ \(\d+ %\)); .* of the paper's mean lie (\d+ of \d+ \(\d+ %\))"
    strict, generous = re.search(pattern, results).groups()
    assert f"{strict} lie within 3 of the paper's SDs, and {generous} within 3 SDs or 10 %" in said
