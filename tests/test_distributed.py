"""Several processes: the same model, shared predictions, a killed rank.

Run by itself, this file starts the jobs of 1, 2 and 3 processes: see `main`. The jobs of commands
below are started by torchrun.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from diagatt import DiagAttClassifier, DiagAttRegressor, DiagAttSurvival, simulate
from diagatt.commands.cli import app
from diagatt.solvers import Gradient, Likelihood, Mixture
from diagatt.stores import RowStore
from tests.closeness import assert_equal_up_to_rounding

ATTRIBUTES = ("query_key_", "value_", "intercept_")
LIKELIHOOD = {"solver": "likelihood", "random_state": 0}


def by_gradient(**options):
    return {"solver": Gradient(batch_size=50, max_epochs=3, **options), "random_state": 0}


FITS = {
    "likelihood": ("numbers", DiagAttRegressor, LIKELIHOOD),
    "two heads": ("numbers", DiagAttRegressor, {**LIKELIHOOD, "n_heads": 2}),
    "classes": ("classes", DiagAttClassifier, LIKELIHOOD),
    "auto": ("numbers", DiagAttRegressor, {"random_state": 0}),
    "gradient": (
        "numbers",
        DiagAttRegressor,
        by_gradient(row_dropout=0.1, value_dropout=0.5),
    ),
    "held out": ("numbers", DiagAttRegressor, by_gradient(validation_fraction=0.3)),
    "mixture": (
        "numbers",
        DiagAttRegressor,
        {"solver": Mixture(batch_size=50, max_epochs=3), "random_state": 0},
    ),
    "few shards": ("few", DiagAttRegressor, LIKELIHOOD),
    "few shards, gradient": ("few", DiagAttRegressor, by_gradient()),
    "row weights": ("weighted", DiagAttRegressor, LIKELIHOOD),
    "row weights, gradient": ("weighted", DiagAttRegressor, by_gradient()),
    "row weights, mixture": (
        "weighted",
        DiagAttRegressor,
        {"solver": Mixture(batch_size=50, max_epochs=3), "random_state": 0},
    ),
    "outcomes": ("outcomes", DiagAttRegressor, LIKELIHOOD),
    "times": (
        "times",
        DiagAttSurvival,
        {"solver": Likelihood(max_iterations=3), "random_state": 0},
    ),
}


def work(folder: Path) -> None:
    """The job of one process: fit everything, say what was found."""
    from diagatt.distributed import joined
    from diagatt.estimators import stored

    stored.READ_WHOLE = 0
    with joined() as group:
        found = {}
        for name, (store, face, settings) in FITS.items():
            model = face(**settings).fit(RowStore(folder / store))
            found[name] = {a: np.asarray(getattr(model, a)).tolist() for a in ATTRIBUTES}
            found[name] |= {"traffic": model.communication_, "history": model.history_}
    found["threads"] = [path.read_text() for path in Path("/proc/self/task").glob("*/comm")]
    path = folder / f"found-{group.size}-{group.rank}.json"
    path.write_text(json.dumps(found))


def main(folder: Path) -> None:
    """Start jobs as torchrun would, but by forking: what is imported is imported once."""
    import torch.distributed as dist

    for size in (1, 2, 3):
        store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        job = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": store.port, "WORLD_SIZE": size}
        if size > 1:
            job |= {"TORCHELASTIC_RUN_ID": "job", "TORCHELASTIC_RESTART_COUNT": 0}
        ranks = []
        for rank in range(size):
            ranks.append(os.fork())
            if ranks[-1] == 0:
                os.environ |= {name: str(value) for name, value in (job | {"RANK": rank}).items()}
                work(folder)
                os._exit(0)
        statuses = [os.waitpid(rank, 0)[1] for rank in ranks]  # of all, before any is judged
        if any(statuses):
            sys.exit(f"a process of the job of {size} failed: see above.")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Stores of 5 and of 2 shards."""
    folder = tmp_path_factory.mktemp("distributed")
    data = simulate.regression(600, p=6, d=4, seed=1)
    X = data.X.astype(np.float64)
    five, two = (X.nbytes / 2**20 / shards for shards in (4.5, 1.9))
    RowStore.from_rows(folder / "numbers", X, data.y, dtype="float64", shard_mib=five)
    labels = np.where(data.y > np.median(data.y), "high", "low")
    RowStore.from_rows(folder / "classes", X, labels, dtype="float64", shard_mib=five)
    weights = np.random.default_rng(0).integers(1, 9, X.n_rows)
    weighted = X.with_row_weight(weights)
    RowStore.from_rows(folder / "weighted", weighted, data.y, dtype="float64", shard_mib=five)
    both = np.column_stack([data.y, data.y**2])
    RowStore.from_rows(folder / "outcomes", X, both, dtype="float64", shard_mib=five)
    times = {"time": np.exp(data.y - data.y.mean()), "event": data.y < np.quantile(data.y, 0.8)}
    RowStore.from_rows(folder / "times", X, times, dtype="float64", shard_mib=five)
    few = RowStore.from_rows(folder / "few", X, data.y, dtype="float64", shard_mib=two)
    assert len(few.shards) == 2
    return folder


def torchrun(processes, *command, **options):
    """The command line of a job."""
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    # On a busy machine torchrun may not run for 15 s, after which it would take itself for dead.
    run += ["--rdzv-conf=keep_alive_max_attempt=100"]
    settings = [f"--{k.replace('_', '-')}={v}" for k, v in options.items()]
    return [*run, f"--nproc-per-node={processes}", *settings, *map(str, command)]


# pytest has put the root of the repository on the path; a new process has to be told of it.
ROOT = str(Path(__file__).parents[1])
PYTHONPATH = os.pathsep.join(filter(None, [ROOT, os.environ.get("PYTHONPATH")]))
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": PYTHONPATH}


def succeed(command, folder):
    """Run a command to its end; if it fails, show what it said."""
    job = subprocess.run(
        command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=1800
    )
    assert job.returncode == 0, job.stderr


@pytest.fixture(scope="module")
def found(folder):
    """What 1, 2 and 3 processes found, rank by rank."""
    # In processes of their own: what the jobs set there must not reach other tests.
    succeed([sys.executable, __file__, str(folder)], folder)
    return {
        (size, rank): json.loads((folder / f"found-{size}-{rank}.json").read_text())
        for size in (1, 2, 3)
        for rank in range(size)
    }


@pytest.mark.parametrize("name", FITS)
def test_every_process_of_every_job_has_the_same_model(found, name):
    alone = found[1, 0][name]
    for place, others in found.items():
        for attribute in ATTRIBUTES:
            expected = np.asarray(alone[attribute])
            np.testing.assert_allclose(
                others[name][attribute],
                expected,
                rtol=0,
                atol=1e-6 * np.abs(expected).max(),
                err_msg=f"{place} {attribute}",
            )
        assert others[name]["traffic"]["processes"] == place[0]


def test_traffic_does_not_depend_on_processes(found):
    counted = [others["likelihood"]["traffic"] for others in found.values()]
    assert len({c["bytes"] for c in counted}) == 1
    assert len({c["reductions"] for c in counted}) == 1


def test_no_thread_of_the_group_outlives_it(found):
    """One that does may ask for the interpreter while that ends, and abort a job that is done."""
    for place, others in found.items():
        assert not [name for name in others["threads"] if "gloo" in name], place


# ---------------------------------------------------------------------- commands


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A store that is not read whole, and the model of a quiet fit by one process."""
    folder = tmp_path_factory.mktemp("large")
    data = simulate.regression(2000, p=50, d=12, seed=0)
    RowStore.from_rows(folder / "store", data.X, data.y, shard_mib=0.5, text=[*map(str, data.y)])
    line = ["fit", str(folder / "store"), "--solver", "likelihood", "-o", str(folder / "quiet")]
    assert CliRunner().invoke(app, line).exit_code == 0
    return folder


def test_a_job_whose_rank_dies_ends_with_the_same_model(large):
    worker = ["-m", "diagatt", "fit", "store", "--solver", "likelihood", "-o", "killed"]
    command = torchrun(2, *worker, max_restarts=2, monitor_interval=0.1)
    job = subprocess.Popen(command, cwd=large, env=ENVIRONMENT, stderr=subprocess.DEVNULL)
    while not (large / "killed.checkpoint").exists() and job.poll() is None:
        time.sleep(0.001)
    ranks = subprocess.run(
        ["pgrep", "-P", str(job.pid)], capture_output=True, text=True, check=True
    )
    os.kill(int(ranks.stdout.split()[-1]), 9)
    assert job.wait(timeout=1800) == 0
    quiet, killed = (DiagAttRegressor.load(large / name) for name in ("quiet", "killed"))
    theirs, ours = (
        np.concatenate([np.ravel(getattr(model, name)) for name in ATTRIBUTES])
        for model in (quiet, killed)
    )
    # Threads add up float32 in an order of their own, and what cancels has no digits left.
    assert_equal_up_to_rounding(ours.astype(np.float32), theirs.astype(np.float32))
    assert not list(large.glob("*checkpoint*"))


DIES_AT_THE_END = """
import os
from diagatt.commands import cli, predict
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    predict.scores = lambda *_: os._exit(9)
cli.main()
"""


@pytest.mark.parametrize("old", [False, True], ids=["new", "older model"])
def test_a_restarted_job_replaces_its_own_model_but_no_older_one(large, tmp_path, old):
    (tmp_path / "job.py").write_text(DIES_AT_THE_END)
    model = tmp_path / "m"
    if old:
        model.write_bytes(b"years of work")
    fit = ("fit", "store", "--solver", "likelihood", "--split", "0.3", "-o", str(model))
    command = torchrun(2, str(tmp_path / "job.py"), *fit, max_restarts=1, monitor_interval=0.1)
    done = subprocess.run(
        command, cwd=large, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert (done.returncode != 0) == old, done.stderr
    if old:
        assert f"error in process 0: --output {model} exists: pass --overwrite" in done.stderr
        assert model.read_bytes() == b"years of work"
    else:
        assert DiagAttRegressor.load(model).n_samples_ < 2000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["job.py", "m"]


DIES_BEFORE_IT_SAVES = """
import os
from diagatt.commands import cli
from diagatt.kinds import files
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    files.save_model = lambda *_: os._exit(9)
cli.main()
"""


def test_a_restarted_job_removes_the_checkpoint_of_its_first_attempt(large, tmp_path):
    (tmp_path / "job.py").write_text(DIES_BEFORE_IT_SAVES)
    fit = ("fit", "store", "--solver", "likelihood", "-o", str(tmp_path / "m"))
    command = torchrun(2, str(tmp_path / "job.py"), *fit, max_restarts=1, monitor_interval=0.1)
    succeed(command, large)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["job.py", "m"]


def test_processes_share_the_shards_of_a_prediction(large):
    succeed(torchrun(2, "-m", "diagatt", "predict", "quiet", "store", "-o", "out"), large)
    store, model = RowStore(large / "store"), DiagAttRegressor.load(large / "quiet")
    parts = sorted((large / "out").glob("*.parquet"))
    assert len(parts) == len(store.shards)
    table = pq.read_table(large / "out").to_pandas().sort_values("sample")
    np.testing.assert_array_equal(table["sample"], np.arange(len(store)))
    np.testing.assert_allclose(table["prediction"], model.predict(store), rtol=1e-6)
    np.testing.assert_array_equal(table[["head0_row"]], model.locate(store))
    assert table["text"].tolist() == [
        text for part in store.parts() for text in part.payload("text")
    ]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
