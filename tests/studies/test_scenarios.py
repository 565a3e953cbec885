"""What a simulated column draws for a method."""

from dataclasses import dataclass, field

import pytest

from diagatt.simulate import PaperSetting, paper_settings
from diagatt.studies.methods import make_estimator
from diagatt.studies.scenarios import Simulated

LARGER = ("grouplasso", "mdsp", "two-step")
METHODS = (*LARGER, "stdatt-1", "diagatt-r", "pooled", "oracle")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("setting", paper_settings(), ids=lambda s: s.name)
def test_only_three_rows_of_table_s4_are_of_another_size(setting, method):
    drawn = Simulated(setting).parameters(method, 1.0)["setting"]["n"]
    assert drawn == (18000 if setting.table == "tableS4" and method in LARGER else setting.n)


def batch_size(model):
    """The batch size of an estimator, or of its solver."""
    parameters = model.get_params()
    return parameters.get("solver__batch_size", parameters.get("batch_size"))


@pytest.mark.parametrize("method", ["diagatt-1", "diagatt-r", "stdatt-1", "diagatt"])
@pytest.mark.parametrize("setting", paper_settings(), ids=lambda s: s.name)
def test_the_papers_diagatt_takes_as_many_steps_at_every_n(setting, method):
    size = batch_size(Simulated(setting).estimator(method, 0))
    grows = method in ("diagatt-1", "diagatt-r") and setting.task == "regression"
    alone = batch_size(make_estimator(method, classifies=setting.task == "classification"))
    assert size == (alone * setting.n / 9000 if grows else alone)


@dataclass(frozen=True)
class Watched(PaperSetting):
    """Notes what is drawn."""

    drawn: list = field(default_factory=list)

    def draw(self, n=None, seed=0, **options):
        self.drawn.append((n, seed))
        return super().draw(n, seed, **options)


@pytest.mark.parametrize(("method", "n"), [("mdsp", 360), ("pooled", 180)])
def test_what_is_drawn_is_what_the_key_says(method, n):
    setting = Watched(**vars(paper_settings("tableS4")[0]))
    scenario = Simulated(setting)
    assert {"rmse", "crlr"} <= set(scenario.run(method, 2, 0.02))
    assert setting.drawn == [(n // 4, (2, 1)), (n, (2, 0))]
    assert scenario.parameters(method, 0.02)["setting"]["n"] == n


@pytest.mark.parametrize("method", ["diagatt-1", "diagatt-r"])
@pytest.mark.parametrize("table", ["table1", "table2", "tableS2"])
def test_the_key_says_heads_and_batches(table, method):
    setting = paper_settings(table)[0]
    settings = Simulated(setting).parameters(method, 1.0)["method"]["settings"]
    several = [1, 2, 3, 4, 5] if table == "table2" else [1, 2, 3]
    assert settings["n_heads"] == (1 if method == "diagatt-1" else several)
    assert settings["batch_size"] == 32 * setting.n // 9000
