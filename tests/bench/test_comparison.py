"""Ranks, intervals and critical differences against closed forms."""

import numpy as np
import pytest

from diagatt.bench import ASSUMPTIONS, Plan, get_set, run_bench, write_report
from diagatt.bench.comparison import (
    Comparison,
    critical_difference,
    leaks,
    mean_ranks,
    tried_on_most,
)
from diagatt.bench.drawing import groups_not_separated
from diagatt.studies.results import ResultStore
from tests.bench.toys import Broken, Constant, FirstRow, register


@pytest.mark.parametrize(("k", "q"), [(2, 1.960), (5, 2.728), (10, 3.164)])
def test_critical_differences_are_those_of_demsars_table(k, q):
    assert critical_difference(k, 30) == pytest.approx(q * np.sqrt(k * (k + 1) / 180), rel=1e-3)


def test_groups_are_maximal():
    ranks = {"a": 1.0, "b": 1.5, "c": 2.0, "d": 4.0}
    assert groups_not_separated(ranks, 1.0) == [(1.0, 2.0)]
    assert groups_not_separated(ranks, 0.1) == []


def line(task, metrics, **details):
    import json

    return {
        "key": task.key,
        "scenario": task.scenario.name,
        "method": task.method,
        "replication": task.replication,
        "scale": 1.0,
        "metrics": metrics,
        "seconds": 1.0,
        "details": json.dumps({"prediction": [0.0]} | details),
        "date": "2026-01-01",
        "machine": "{}",
    }


def test_failures_have_the_last_rank_and_missing_sets_do_not_count(tmp_path):
    names = register(Constant, FirstRow, Broken)
    plan = Plan([get_set(s) for s in ("simulated-n50", "simulated-n100")], names, splits=1)
    values = {"constant": 0.1, "first": 0.9}
    store = ResultStore(tmp_path)
    for task in plan.tasks():
        if task.scenario.name == "simulated-n50":
            if task.method == "broken":
                store.add(line(task, {}, failed="no luck"))
            else:
                store.add(line(task, {"r2": values[task.method], "fit_seconds": 1.0}))
        elif task.method == "first":  # the others have not been run there
            store.add(line(task, {"r2": 0.5}))
    held = Comparison.of(plan, store)
    ranks, n = mean_ranks(held, held.sets, names, "main")
    assert (ranks, n) == ({"constant": 2.0, "first": 1.0, "broken": 3.0}, 1)
    assert tried_on_most(held, held.sets, names) == names  # a failure is a trial
    assert tried_on_most(held, ["simulated-n100"], names) == ["first"]
    plan.skipped["simulated-n50", "first"] = "too large"
    assert tried_on_most(held, held.sets, names) == ["constant", "broken"]
    hours, pairs = held.hours()  # two methods with 1 s per fit on a set of 15 splits, one without
    assert (hours, pairs) == (pytest.approx(30 / 3600), 3)


def test_a_failure_on_one_split_is_no_result_of_the_set(tmp_path):
    names = register(Constant)
    plan = Plan([get_set("simulated-n50")], names, splits=2)
    store = ResultStore(tmp_path)
    first, second = plan.tasks()
    store.add(line(first, {"r2": 0.5}))
    store.add(line(second, {}, failed="took more than 60 s of CPU time"))
    held = Comparison.of(plan, store)
    assert held.found == {}
    assert "CPU time" in held.reasons["simulated-n50", "constant"]


def test_the_page_says_what_was_run(tmp_path):
    names = register(Constant, FirstRow, Broken)
    plan = Plan([get_set(s) for s in ("wine-n100", "simulated-n50")], names, splits=2)
    store = ResultStore(tmp_path / "store")
    run_bench(plan, store)
    paths = write_report(plan, store, tmp_path / "bags.md")
    text = paths[0].read_text()
    assert "| broken | RuntimeError: no luck today | simulated-n50, wine-n100 |" in text
    assert "has no results of its present revision yet" in text
    held = Comparison.of(plan, store)
    mean = held.mean("wine-n100", "first", "located")
    assert f"| wine-n100 |  | **{mean:.2f}** |" in text
    assert all(path.exists() for path in paths)
    for title in ("In one minute", "Ranks", "AUC", "R²", "Log score", "Rules", "The sets"):
        assert f"## {title}" in text
    # A constant forecast has an AUC of one half, and the calibration error is that of its folds.
    assert held.mean("wine-n100", "constant", "auc") == 0.5


def test_leaks_and_assumptions_have_their_tables(tmp_path):
    names = register(Constant)
    store = ResultStore(tmp_path / "store")
    plan = Plan([get_set("simulated_classes-n200")], names, splits=1)
    run_bench(plan, store)
    run_bench(Plan(ASSUMPTIONS.values(), names), store)
    run_bench(Plan([get_set("simulated_classes-n200")], names, shuffled=True, splits=2), store)
    text = write_report(plan, store, tmp_path / "bags.md")[0].read_text()
    assert "| constant | 0.50 | 0.50 | 0.50 |" in text
    assert "| simulated_classes-n200~permuted | 0.50 ± 0.00 (2) |" in text
    assert "1 of 1 cells are within 0.05" in text


def test_one_fit_says_nothing_about_its_error(tmp_path):
    names, store = register(Constant), ResultStore(tmp_path / "store")
    chosen = [get_set("simulated_classes-n200")]
    run_bench(Plan(chosen, names, shuffled=True, splits=1), store)
    text = leaks(Plan(chosen, names), store)
    assert "| 0.50 (1) |" in text
    assert "nan" not in text
