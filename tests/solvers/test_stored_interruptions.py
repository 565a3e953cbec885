"""Fits of stores go on where they were interrupted."""

import os
import signal
import subprocess
import sys
import time

import pytest

from diagatt import DiagAttRegressor, RowStore, simulate
from diagatt.modelfile import ModelFileError
from diagatt.solvers import Checkpoint
from diagatt.solvers.likelihood.em import EM
from diagatt.solvers.stored import StoredProblem
from tests.models import regressor
from tests.solvers.stores import assert_same, stored

pytestmark = [
    pytest.mark.usefixtures("nothing_is_read_whole"),
    pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning"),
]


class Interrupted(Exception):
    pass


@pytest.mark.parametrize("every", [1, 2])
@pytest.mark.parametrize("stop", [1, 2, 4])
def test_a_likelihood_fit_goes_on_where_it_was(store, tmp_path, monkeypatch, stop, every):
    settings = {"solver": "likelihood", "random_state": 0}
    quiet = regressor(**settings).fit(store)
    iterate, passes = EM._iterate, []

    def interrupted(self, now):
        if isinstance(self.expectation.problem, StoredProblem):
            passes.append(len(now.history))
            if len(passes) > stop:
                raise Interrupted
        iterate(self, now)

    resumed = regressor(**settings, checkpoint=Checkpoint(tmp_path / "state", every))
    monkeypatch.setattr(EM, "_iterate", interrupted)
    with pytest.raises(Interrupted):
        resumed.fit(store)
    monkeypatch.setattr(EM, "_iterate", iterate)
    resumed.fit(store)
    assert_same(quiet, resumed, 0)
    assert resumed.history_ == quiet.history_
    assert resumed.log_likelihood_ == quiet.log_likelihood_


def test_a_gradient_fit_goes_on_where_it_was(store, tmp_path):
    settings = {"solver": "gradient", "optimizer": "adam", "row_dropout": 0.2, "random_state": 0}
    quiet = regressor(**settings, max_epochs=5).fit(store)
    path = tmp_path / "state"
    regressor(**settings, max_epochs=2, checkpoint=path).fit(store)
    resumed = regressor(**settings, max_epochs=5, checkpoint=path).fit(store)
    assert_same(quiet, resumed, 0)


def test_the_checkpoint_of_another_store_is_refused(data, store, tmp_path):
    settings = {"solver": "likelihood", "random_state": 0, "checkpoint": tmp_path / "state"}
    regressor(**settings).fit(store)
    other = stored(tmp_path, data[0], -data[1])
    with pytest.raises(ModelFileError, match="checkpoint of other data or other settings"):
        regressor(**settings).fit(other)


@pytest.mark.slow
def test_a_killed_command_goes_on(tmp_path):
    drawn = simulate.regression(2000, p=50, d=12, seed=0)
    RowStore.from_rows(tmp_path / "store", drawn.X, drawn.y, shard_mib=0.25)
    command = [sys.executable, "-m", "diagatt", "fit", "store", "--solver", "likelihood", "-o"]
    options = {"cwd": tmp_path, "env": {**os.environ, "OMP_NUM_THREADS": "1"}}
    subprocess.run([*command, "quiet"], check=True, capture_output=True, **options)
    job = subprocess.Popen([*command, "killed"], stdout=subprocess.DEVNULL, **options)
    while not (tmp_path / "killed.checkpoint").exists() and job.poll() is None:
        time.sleep(0.001)
    job.send_signal(signal.SIGKILL)
    job.wait()
    subprocess.run([*command, "killed"], check=True, capture_output=True, **options)
    models = [DiagAttRegressor.load(tmp_path / name) for name in ("quiet", "killed")]
    assert_same(*models, 0)
    assert not list(tmp_path.glob("*checkpoint*"))
