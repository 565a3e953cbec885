"""Nothing lost, nothing counted twice."""

import json
import os
import threading
import time

import pytest

from benchmarks.study_kills import disturbed_runs, small_study
from diagatt.studies import ResultStore, Task, get_study, run_task, run_tasks
from tests.studies.toy import Toy


def toy_tasks(n=4, reps=2, seconds=0.0):
    return [Task(Toy(i, seconds), "m", k) for k in range(reps) for i in range(n)]


def test_results_come_back_as_they_went_in(tmp_path):
    store = ResultStore(tmp_path)
    lines = [run_task(task) for task in toy_tasks()]
    for line in lines:
        store.add(line)
    expected = sorted(lines, key=lambda line: (line["scenario"], line["replication"]))
    assert store.lines() == expected
    store.pack()
    assert not list((tmp_path / "parts").glob("*"))
    assert ResultStore(tmp_path).lines() == expected


def test_a_task_that_ran_twice_counts_once(tmp_path):
    store, line = ResultStore(tmp_path), run_task(toy_tasks()[0])
    store.add(line)
    store.pack()
    store.add(line)
    assert len(store.lines()) == 1
    store.pack()
    assert len(store.lines()) == 1


def test_an_interrupted_write_leaves_nothing(tmp_path, monkeypatch):
    store = ResultStore(tmp_path)
    store.add(run_task(toy_tasks()[0]))

    def dies(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", dies)
    with pytest.raises(KeyboardInterrupt):
        store.add(run_task(toy_tasks()[1]))
    monkeypatch.undo()
    assert len(store.lines()) == 1
    assert len(list((tmp_path / "parts").iterdir())) == 1


def test_packing_while_others_write_loses_nothing(tmp_path):
    store, tasks = ResultStore(tmp_path), toy_tasks(n=30)

    def write():
        for task in tasks:
            ResultStore(tmp_path).add(run_task(task))

    writer = threading.Thread(target=write)
    writer.start()
    packers = [threading.Thread(target=ResultStore(tmp_path).pack) for _ in range(20)]
    for packer in packers:
        packer.start()
    for thread in [writer, *packers]:
        thread.join()
    store.pack()
    assert store.keys() == {task.key for task in tasks}


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
    before = base.key
    monkeypatch.setattr("diagatt.__version__", "9.9.9")
    assert base.key != before


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
