"""Verdicts by their definition."""

import numpy as np
import pytest

from diagatt.studies import RULES, STUDIES, compare, get_study, matching, published
from diagatt.studies.comparison import explanations
from diagatt.studies.methods import PAPER_METHODS
from tests.studies.toy import line


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
    assert found.difference == pytest.approx(value - 7.294)
    assert found.sds == pytest.approx((value - 7.294) / 0.259)
    assert found.is_within_sds == (verdict == "matches")


def test_a_tenth_matches_where_sds_are_small():
    lines = [line("table1-p100-d70", "grouplasso", crlr=9.97 * 1.09)]
    found = cell_of(lines, "grouplasso", "crlr")
    assert (found.verdict, found.is_within_sds) == ("matches", True)
    lines = [line("table1-p120-d90", "mdsp", rmse=7.544 - 4 * 0.105)]  # 5.6 % off
    found = cell_of(lines, "mdsp", "rmse", "table1-p120-d90")
    assert (found.verdict, found.is_within_sds) == ("matches", False)


def test_the_error_of_a_difference_has_both_sides_replications():
    one = cell_of([line("table1-p100-d70", "diagatt-1", rmse=8.0)], "diagatt-1", "rmse")
    assert one.error == pytest.approx(0.259 * np.sqrt(1 + 1 / 100))
    values = [7.0, 7.5, 8.0]
    lines = [line("table1-p100-d70", "diagatt-1", k, rmse=v) for k, v in enumerate(values)]
    error = cell_of(lines, "diagatt-1", "rmse").error
    assert error == pytest.approx(np.sqrt(np.var(values, ddof=1) / 3 + 0.259**2 / 100))


def test_both_rules_are_counted():
    lines = [
        line("table1-p100-d70", "diagatt-1", rmse=7.3),  # by both
        line("table1-p120-d90", "mdsp", rmse=7.544 - 4 * 0.105),  # by the wide rule alone
        line("table1-p100-d90", "diagatt-1", rmse=60.0),  # by none
        line("table1-p100-d70", "diagatt", rmse=3.0),  # ours is not the paper's method
    ]
    cells = compare(get_study("table1"), lines)
    assert [matching(cells, rule) for rule in RULES] == [(1, 3), (2, 3)]
    with pytest.raises(ValueError, match="unknown rule"):
        matching(cells, "within 10 SD")


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
    assert [matching(cells, rule) for rule in RULES] == [(0, 0), (0, 0)]


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


def test_reasons_are_of_methods_and_metrics_that_exist():
    metrics = {c.metric for c in published()}
    for method, metric, *verdict in explanations():
        assert method in PAPER_METHODS
        assert metric in metrics
        assert verdict in ([], ["better"], ["worse"])
