"""A method is a class with a name, fit and predict, in any file."""

import textwrap
from pathlib import Path

import numpy as np
import pytest

from diagatt.bench import METHODS, Method, add_own_methods, get_method, load_methods
from diagatt.datasets import load_bags
from diagatt.solvers import SOLVERS

RIVALS = Path(__file__).parents[2] / "benchmarks" / "rivals"


def test_a_class_of_a_file_is_a_method(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        textwrap.dedent('''
        class Mine:
            """Half of everything."""

            name = "mine"
            tasks = ("binary",)
            needs = ("module_that_is_nowhere",)

            def fit(self, X, y):
                pass

            def predict(self, X):
                return [0.5] * len(X)


        class Helper:
            pass
        ''')
    )
    assert load_methods(file) == ["mine"]
    method = get_method("mine")
    assert method.description == "Half of everything."
    assert method.reason_to_skip("regression") == "not for regression responses"
    assert method.reason_to_skip("binary") == "module_that_is_nowhere is not installed"
    assert method.make("binary", "auto", 0).predict([1, 2]) == [0.5, 0.5]
    with pytest.raises(FileNotFoundError, match="name a Python file"):
        load_methods(tmp_path / "absent.py")


def test_a_method_may_leave_out_large_sets():
    method = Method("slow", None, most_rows=100)
    assert method.reason_to_skip("binary", 100) is None
    assert method.reason_to_skip("binary", 101) == (
        "run on sets of at most 100 rows only, for its cost"
    )


def test_unknown_methods_name_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown method 'nothing': choose among"):
        get_method("nothing")


def test_our_methods_follow_the_registry_of_solvers():
    names = add_own_methods()
    assert {f"diagatt-{s}" for s in SOLVERS if s != "auto"} <= set(names)
    assert names[-1] == "diagatt"  # the default comes last
    assert not METHODS["diagatt"].standardizes
    assert METHODS["gated"].standardizes


def test_every_rival_has_an_adapter():
    names = load_methods(RIVALS)
    wanted = {"trees", "boosting", "linear", "mean-linear", "max-linear", "sawmil", "mixmil"}
    assert wanted | {"torchmil-abmil", "torchmil-dsmil", "milearn"} <= set(names)


def test_bag_statistics_are_those_of_numpy():
    load_methods(RIVALS / "bag_statistics.py")
    bags = load_bags("wine", n=20)
    module = __import__("sys").modules[METHODS["trees"].face.__module__]
    found = module.bag_statistics(bags.X)
    expected = [
        np.concatenate([x.mean(axis=0), x.min(axis=0), x.max(axis=0), x.std(axis=0)])
        for x in bags.X
    ]
    # The variance is a difference of squares: its rounding is that of the squared values.
    scale = np.abs(bags.X.values).max()
    assert np.allclose(found, expected, atol=scale * np.sqrt(64 * np.finfo(float).eps))


def test_the_stand_in_for_scatter_is_softmax_and_sum_within_bags(monkeypatch):
    import sys

    import torch

    load_methods(RIVALS / "mixmil_model.py")
    monkeypatch.delitem(sys.modules, "torch_scatter", raising=False)
    sys.modules[METHODS["mixmil"].face.__module__]._stand_in_for_scatter()
    scatter = sys.modules["torch_scatter"]
    values = torch.randn(6, 2, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    index, pointer = torch.tensor([0, 0, 0, 1, 2, 2]), torch.tensor([0, 3, 4, 6])
    parts = values.split([3, 1, 2])
    weights = scatter.scatter_softmax(values, index, dim=0)
    torch.testing.assert_close(weights, torch.cat([p.softmax(dim=0) for p in parts]))
    sums = scatter.segment_add_csr(values, pointer)
    torch.testing.assert_close(sums, torch.stack([p.sum(dim=0) for p in parts]))
    monkeypatch.delitem(sys.modules, "torch_scatter")
