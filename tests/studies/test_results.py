"""Nothing lost, nothing counted twice."""

import os
import threading

import pytest

from diagatt.studies import ResultStore, run_task
from tests.studies.toy import toy_tasks


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
