"""A task is known by what its result depends on, and runs once."""

import json
import os
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.study_kills import disturbed_runs, small_study
from diagatt.studies import STUDIES, ResultStore, get_study, run_task, run_tasks
from diagatt.studies.methods import METHODS
from tests.studies.toy import toy_tasks


def test_only_missing_tasks_run(tmp_path, monkeypatch):
    store = ResultStore(tmp_path)
    assert run_tasks(toy_tasks(reps=1), store) == 4
    assert run_tasks(toy_tasks(reps=2), store) == 4
    assert run_tasks(toy_tasks(reps=2), store) == 0
    assert run_tasks(toy_tasks(reps=2) * 2, store) == 0


def test_a_task_is_known_by_everything_its_result_depends_on(monkeypatch):
    study = get_study("table1")
    base = study.tasks(1, ["pooled"])[0]
    others = [
        study.tasks(1, ["gated"])[0],
        study.tasks(1, ["pooled"])[1],
        study.tasks(2, ["pooled"])[-4],
        study.tasks(1, ["pooled"], scale=0.5)[0],
    ]
    assert len({task.key for task in [base, *others]}) == 5


@pytest.mark.parametrize("name", list(STUDIES))
def test_revisions_and_settings_change_the_key(name, monkeypatch):
    task = get_study(name).tasks()[0]
    before = task.key
    with monkeypatch.context() as patched:
        patched.setattr(type(task.scenario), "revision", 2)
        assert task.key != before
    if task.method in METHODS:  # Table S1 has columns instead
        now = METHODS[task.method]
        for other in (
            replace(now, revision=2),
            replace(now, settings={**now.settings, "new": 1}),
        ):
            with monkeypatch.context() as patched:
                patched.setitem(METHODS, task.method, other)
                assert task.key != before
    assert task.key == before


def test_the_revision_of_another_method_does_not_change_the_key(monkeypatch):
    task = get_study("table1").tasks(1, ["pooled"])[0]
    before = task.key
    monkeypatch.setitem(METHODS, "gated", replace(METHODS["gated"], revision=2))
    assert task.key == before


def test_versions_and_estimators_do_not_change_the_key(monkeypatch):
    tasks = [study.tasks()[0] for study in STUDIES.values()]
    before = [task.key for task in tasks]
    monkeypatch.setattr("diagatt.__version__", "9.9.9")
    monkeypatch.setattr("diagatt.studies.tasks.version", lambda name: "9.9.9")
    monkeypatch.setattr("diagatt.studies.methods.diagatt", None)  # none is made for a key
    assert [task.key for task in tasks] == before


def test_stored_results_are_found_under_their_keys():
    """The results in the repository count: a changed key would orphan them silently."""
    stored = ResultStore(Path(__file__).parents[2] / "results").lines()
    reps = 1 + max(line["replication"] for line in stored)
    keys = {task.key for study in STUDIES.values() for task in study.tasks(reps)}
    assert {line["key"] for line in stored} <= keys


def test_several_processes_give_the_same_results(tmp_path):
    tasks = get_study("table1").tasks(1, ["oracle", "pooled"], 0.02)
    alone, together = ResultStore(tmp_path / "1"), ResultStore(tmp_path / "2")
    run_tasks(tasks, alone)
    run_tasks(tasks, together, jobs=2)

    def results(store):
        return [(x["key"], x["metrics"]) for x in store.lines()]

    assert results(alone) == results(together)


def test_killed_runs_end_with_the_same_tables():
    completed, wrong = disturbed_runs(small_study()[::4], kills=10, seed=0, longest=0.5)
    assert completed >= 1
    assert wrong == 0


def test_details_and_provenance_are_kept(tmp_path):
    line = run_task(toy_tasks()[0])
    assert json.loads(line["details"]) == {"m": "m"}
    assert {"cores", "torch", "diagatt"} <= set(json.loads(line["machine"]))


# ---------------------------------------------------------------------- cluster


def test_a_cluster_finishes_though_a_worker_is_killed(tmp_path):
    distributed = pytest.importorskip("distributed")
    tasks, store = toy_tasks(n=20, reps=1, seconds=0.2), ResultStore(tmp_path)
    done_at_kill = []
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        victim = next(iter(cluster.workers.values())).pid

        def kill_in_mid_run():
            while len(store.keys()) < 3:
                time.sleep(0.02)
            os.kill(victim, 9)
            done_at_kill.append(len(store.keys()))

        killer = threading.Thread(target=kill_in_mid_run)
        killer.start()
        assert run_tasks(tasks, store, cluster=cluster.scheduler_address) == len(tasks)
        killer.join()
    assert 3 <= done_at_kill[0] < len(tasks)
    expected = {t.key: t.scenario.number + t.replication / 10 for t in tasks}
    assert {line["key"]: line["metrics"]["rmse"] for line in store.lines()} == expected


def test_a_cluster_needs_its_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "dask.distributed", None)
    with pytest.raises(ImportError, match=r"diagatt\[cluster\]"):
        run_tasks(toy_tasks(), ResultStore(tmp_path), cluster="tcp://127.0.0.1:1")
