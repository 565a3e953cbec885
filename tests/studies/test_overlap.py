"""Table S1 at the paper's own size."""

from __future__ import annotations

import numpy as np
import pytest

from diagatt.studies import ResultStore, get_study, run_tasks, write_report
from diagatt.studies.overlap import run_study
from diagatt.theory import class_specific_cutoff


@pytest.fixture(scope="module")
def study():
    return run_study()  # the paper's own size: 30 means, d = 600


def point(study, s, fraction):
    return next(p for p in study.paths[s] if p.fraction == pytest.approx(fraction))


@pytest.mark.parametrize(
    ("s", "cutoff", "bracket", "specific", "pre"),
    [
        (3, 0.505, (0.5, 0.6), 0.0305, 0.0198),
        (5, 0.758, (0.75, 0.8), 0.0536, 0.0396),
        (10, 0.898, (0.85, 0.9), 0.1137, 0.0891),
    ],
)
def test_table_s1(study, s, cutoff, bracket, specific, pre):
    assert abs(class_specific_cutoff(s) - cutoff) <= 0.0005 + 1e-12
    assert study.bracket(s) == pytest.approx(bracket)
    shared, last = study.paths[s][0], study.paths[s][-1]
    np.testing.assert_array_equal(shared.gammas, s - 1)
    assert shared.satisfied == 0
    assert abs(last.median - specific) <= 0.001
    assert last.satisfied == 30
    assert round(last.pre, 4) == pre
    assert all(np.all(p.gammas >= p.pre - 1e-9) for p in study.paths[s])


@pytest.mark.parametrize(
    ("s", "fraction", "median"),
    [(5, 0.75, 1.0312), (5, 0.8, 0.8336), (10, 0.9, 0.9913), (10, 0.85, 1.4339)],
)
def test_medians_of_the_text(study, s, fraction, median):
    assert abs(point(study, s, fraction).median - median) <= 0.01


def test_the_report_has_figure_and_tables(tmp_path):
    overlap, store = get_study("overlap"), ResultStore(tmp_path)
    chosen = [t for t in overlap.tasks(1, ["analytic", "numerical"]) if t.scenario.s == 3]
    assert run_tasks(chosen, store) == 2
    files = {path.suffix: path for path in write_report(overlap, store, tmp_path)}
    assert set(files) == {".md", ".csv", ".html", ".png", ".svg"}
    assert all(path.stat().st_size > 100 for path in files.values())
    page = files[".md"].read_text(encoding="utf-8")
    assert "| bracket_low | tableS1-s3 | numerical | 0.5000 | 1 | 0.5000 |" in page
    assert "| bracket_high | tableS1-s3 | numerical | 0.6000 | 1 | 0.6000 |" in page
