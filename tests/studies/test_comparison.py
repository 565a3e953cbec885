"""Verdicts by their definition, and what is written."""

import csv
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from diagatt.commands.cli import app
from diagatt.studies import (
    STUDIES,
    ResultStore,
    compare,
    get_study,
    matching_share,
    published,
    write_index,
    write_report,
)
from diagatt.studies.figures import draw_bars
from diagatt.studies.tables import csv_table, html_table, markdown_table


def line(scenario, method, replication=0, scale=1.0, **metrics):
    return {
        "key": f"{scenario}{method}{replication}{scale}",
        "scenario": scenario,
        "method": method,
        "replication": replication,
        "scale": scale,
        "metrics": metrics,
        "seconds": 1.0,
        "details": "{}",
        "date": "2026-01-01",
        "machine": '{"cores": 2}',
    }


def cell_of(lines, method, metric, scenario="table1-p100-d70", **options):
    cells = compare(get_study("table1"), lines, **options)
    (found,) = [c for c in cells if (c.scenario, c.method, c.metric) == (scenario, method, metric)]
    return found


@pytest.mark.parametrize(
    ("value", "verdict"),
    [
        (7.294, "matches"),
        (7.294 + 2.9 * 0.259, "matches"),  # three SDs are more than a tenth here
        (7.294 + 3.1 * 0.259, "worse"),
        (7.294 - 3.1 * 0.259, "better"),
    ],
)
def test_the_papers_own_method(value, verdict):
    found = cell_of([line("table1-p100-d70", "diagatt-1", rmse=value)], "diagatt-1", "rmse")
    assert found.verdict == verdict
    assert found.difference == pytest.approx((value - 7.294) / 0.259)


def test_a_tenth_matches_where_sds_are_small():
    lines = [line("table1-p100-d70", "grouplasso", crlr=9.97 * 1.09)]
    assert cell_of(lines, "grouplasso", "crlr").verdict == "matches"


def test_larger_crlr_is_better():
    lines = [line("table1-p100-d70", "diagatt-1", crlr=99.0)]
    assert cell_of(lines, "diagatt-1", "crlr").verdict == "better"


def test_our_default_is_held_against_the_better_of_the_papers_two():
    rmses = {c.method: c.mean for c in published("table1") if c.setting == "table1-p100-d70"}
    lines = [line("table1-p100-d70", "diagatt", k, rmse=7.0 + 0.1 * k) for k in range(3)]
    found = cell_of(lines, "diagatt", "rmse")
    assert found.paper == 7.294
    assert "diagatt-r" in rmses
    assert found.verdict == "better"  # 7.1 ± 0.058
    noisy = [line("table1-p100-d70", "diagatt", k, rmse=7.0 + k) for k in (-1, 0, 1)]
    assert cell_of(noisy, "diagatt", "rmse").verdict == "matches"


def test_means_sds_and_the_oracle_are_over_the_same_replications():
    values = [7.0, 7.5, 8.0]
    lines = [line("table1-p100-d70", "pooled", k, rmse=v) for k, v in enumerate(values)]
    lines += [line("table1-p100-d70", "oracle", k, rmse=float(k)) for k in range(5)]
    lines += [line("table1-p100-d70", "pooled", 0, scale=0.1, rmse=100.0)]
    found = cell_of(lines, "pooled", "rmse")
    assert (found.mean, found.reps) == (7.5, 3)
    assert found.sd == pytest.approx(np.std(values, ddof=1))
    assert found.oracle == 1.0
    assert found.verdict == ""


def test_a_quick_look_is_not_judged():
    lines = [line("table1-p100-d70", "diagatt-1", scale=0.1, rmse=7.3)]
    assert cell_of(lines, "diagatt-1", "rmse", scale=0.1).verdict == ""


def test_what_was_not_run_says_so():
    cells = compare(get_study("table1"), [])
    judged = [c for c in cells if c.paper is not None]
    assert len([c for c in judged if c.method != "diagatt"]) == 56
    assert {c.verdict for c in judged} == {"not run"}
    assert np.isnan(matching_share(cells))


def test_the_238_cells_have_their_place():
    tables = ("table1", "table2", "tableS2", "tableS3", "tableS4")
    placed = {
        (c.scenario, c.method, c.metric)
        for study in STUDIES.values()
        for c in compare(study, [])
        if c.paper is not None
    }
    numbers = [c for table in tables for c in published(table)]
    assert {(c.setting, c.method, c.metric) for c in numbers} <= placed
    assert len(numbers) == 224  # and 14 of the keyword table


def test_tables_hold_every_cell_and_escape():
    study = get_study("table1")
    lines = [line("table1-p100-d70", "diagatt-1", k, rmse=9.0, crlr=70.0) for k in range(2)]
    cells = compare(study, lines)
    rows = list(csv.DictReader(csv_table(cells).splitlines()))
    assert len(rows) == len(cells)
    why = {("diagatt-1", "rmse"): "because <it> is"}
    text = markdown_table(study, cells, lines, why)
    assert "9.000 (0.000) | 2 | 7.294 (0.259) | +6.6 SD" in text
    assert "- table1-p100-d70, diagatt-1, rmse, worse: because <it> is." in text
    assert "- table1-p100-d70, diagatt-1, crlr, worse: not explained." in text
    assert "cores 2" in text
    html = html_table(study, cells)
    assert html.count("<tr") == len(cells) + 1
    assert not re.search(r"<(?!/?(table|caption|thead|tbody|tr|th|td)\b)", html)


def test_the_command_runs_resumes_and_writes(tmp_path):
    arguments = ["study", "run", "table1", "--scale", "0.02", "--methods", "oracle,pooled"]
    first = CliRunner().invoke(app, [*arguments, "--store", str(tmp_path)])
    assert first.exit_code == 0, first.output
    assert "8 tasks run, 0 were stored." in first.output
    again = CliRunner().invoke(app, [*arguments, "--reps", "2", "--store", str(tmp_path)])
    assert "8 tasks run, 8 were stored." in again.output
    assert len(ResultStore(tmp_path).lines()) == 16
    assert {p.name for p in tmp_path.glob("table1.*")} == {"table1.md", "table1.csv", "table1.html"}
    assert (tmp_path / "README.md").exists()


def test_figures_are_drawn_from_results(tmp_path):
    arguments = ["study", "run", "figure1", "--scale", "0.01", "--methods", "oracle,pooled"]
    done = CliRunner().invoke(app, [*arguments, "--store", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "figure1.png").read_bytes().startswith(b"\x89PNG")
    drawn = (tmp_path / "figure1.svg").read_bytes()
    assert b"<svg" in drawn
    CliRunner().invoke(app, [*arguments, "--store", str(tmp_path)])
    assert (tmp_path / "figure1.svg").read_bytes() == drawn


def test_one_replication_has_no_error_bar():
    study = get_study("figure1")
    place = study.scenarios[0].name
    lines = [line(place, "oracle", 0, accuracy=90.0, crlr=90.0)]
    lines += [line(place, "pooled", k, accuracy=60.0 + k, crlr=50.0 + k) for k in range(3)]
    (bars,) = draw_bars(study, compare(study, lines)).axes[0].collections
    heights = [np.ptp(segment[:, 1]) for segment in bars.get_segments() if len(segment)]
    assert heights == [pytest.approx(2.0)]  # pooled, ± its SD of 1


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="unknown study 'tableX': choose among table1"):
        get_study("tableX")
    with pytest.raises(ValueError, match="has no method 'lasso': choose among grouplasso"):
        get_study("table1").tasks(methods=["lasso"])


def test_results_of_other_parameters_are_not_counted(tmp_path):
    study = get_study("table1")
    task = study.tasks(methods=["oracle"])[0]
    store = ResultStore(tmp_path)
    now = {**line(task.scenario.name, "oracle", 0, rmse=3.0, crlr=90.0), "key": task.key}
    store.add(now)
    store.add({**now, "key": "0" * 64, "metrics": {"rmse": 9.0, "crlr": 10.0}})
    write_report(study, store, tmp_path)
    assert "| rmse | table1-p100-d70 | oracle | 3.000 | 1 |" in (tmp_path / "table1.md").read_text()
    index = write_index(store, tmp_path).read_text()
    assert "1 tasks" in index
    assert "238 cells are published; 0 are run, and 0 match (0.0 %)" in index
