"""What is written: tables, figures, paired differences, the index."""

import csv
import re

import numpy as np
import pytest
from scipy.stats import ttest_rel
from typer.testing import CliRunner

from diagatt.commands.cli import app
from diagatt.studies import ResultStore, compare, get_study, write_index, write_report
from diagatt.studies.report import cells_csv, cells_html, draw_bars, markdown_page, paired_table
from tests.studies.toy import line


def test_tables_hold_every_cell_and_escape():
    study = get_study("table1")
    lines = [line("table1-p100-d70", "diagatt-1", k, rmse=9.0, crlr=70.0) for k in range(2)]
    cells = compare(study, lines)
    rows = list(csv.DictReader(cells_csv(cells).splitlines()))
    assert len(rows) == len(cells)
    why = {("diagatt-1", "rmse"): "because <it> is"}
    text = markdown_page(study, cells, lines, why)
    row = "9.000 (0.000) | 2 | 7.294 (0.259) | +1.706 (0.026) | +6.6 | – | no | worse |"
    assert row in text
    place = "(table1-p100-d70 +6.6 SD, worse)"
    assert f"- **diagatt-1, rmse**: because <it> is {place}." in text
    assert "- **diagatt-1, crlr**: not explained (table1-p100-d70 -9.5 SD, worse)." in text
    assert "that match: 0 of 2 (0 %) within 3 SD, 0 of 2 (0 %) within 3 SD or 10 %." in text
    assert "cores 2" in text
    html = cells_html(study, cells)
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
    assert "238 cells are published, 224 of them with an SD; 0 are run." in index


def lines(**accuracies):
    return [
        {"method": m, "replication": k, "metrics": {"accuracy": a}, "details": "{}"}
        for m, values in accuracies.items()
        for k, a in enumerate(values)
    ]


def test_differences_are_paired_with_the_interval_of_a_t_test():
    ours, theirs = [91.0, 93.0, 92.0, 90.5], [90.0, 91.0, 91.5, 90.0]
    page = paired_table(get_study("uci"), lines(diagatt=ours, pooled=theirs, gated=[90.0]))
    expected = ttest_rel(ours, theirs).confidence_interval(0.95)
    interval = f"+1.00 ({expected.low:+.2f} to {expected.high:+.2f})"
    assert f"| pooled | 4 | 90.62 | {interval} | 4 |" in page
    assert "| gated | 1 | 90.00 | +1.00 | 1 |" in page
    assert paired_table(get_study("uci"), lines(pooled=theirs)) == ""
