"""Several processes: the same model, shared predictions, a killed rank.

Run by itself, this file forks the processes of all jobs but one: see `main`. The job whose rank is
killed is started by torchrun.
"""

import json
import os
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import NoReturn

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from diagatt import DiagAttClassifier, DiagAttRegressor, DiagAttSurvival, simulate
from diagatt.commands import cli
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


def fit_all(folder: Path) -> None:
    """The job of one process: fit everything, say what was found."""
    from diagatt.distributed import joined
    from diagatt.estimators import containers
    from diagatt.solvers.auto import many

    containers.READ_WHOLE = 0
    many.MOST_STEPS = many.GLM_STEPS = 10  # enough to show a difference between processes
    with joined() as group:
        found = {}
        for name, (store, face, settings) in FITS.items():
            model = face(**settings).fit(RowStore(folder / store))
            found[name] = {a: np.asarray(getattr(model, a)).tolist() for a in ATTRIBUTES}
            found[name] |= {"traffic": model.communication_, "history": model.history_}
    found["threads"] = [path.read_text() for path in Path("/proc/self/task").glob("*/comm")]
    path = folder / f"found-{group.size}-{group.rank}.json"
    path.write_text(json.dumps(found))


def command(folder: Path, *words: str) -> None:
    """The job of one process: a command, as ``python -m diagatt`` runs it."""
    os.chdir(folder / "large")
    sys.argv = ["diagatt", *words]
    cli.main()


def fit_beside_an_older_model(folder: Path) -> None:
    """No attempt may replace what stood there before the job began."""
    command(folder, *FIT, "--split", "0.3", "-o", "older/m")


def fit_and_die_before_it_is_saved(folder: Path) -> None:
    """The first attempt dies when its fit is done, with a checkpoint on the disk."""
    from diagatt.kinds import files

    if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        files.save_model = lambda *_: os._exit(9)
    command(folder, *FIT, "-o", "before-it-is-saved/m")


def share_a_prediction(folder: Path) -> None:
    """Both processes predict."""
    command(folder, "predict", "quiet", "store", "-o", "out")


FIT = ("fit", "store", "--solver", "likelihood")
# Every job with its sizes, and how often it is started again.
JOBS = {
    fit_all: ((1, 2, 3), 0),
    fit_beside_an_older_model: ((2,), 1),
    fit_and_die_before_it_is_saved: ((2,), 1),
    share_a_prediction: ((2,), 0),
}


def attempt(job, folder: Path, size: int, restarts: int, port: int) -> bool:
    """Start the processes of a job as torchrun would, but by forking; say whether all succeed.

    If one of them fails, the others are ended.
    """
    given = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": size}
    if size > 1:
        given |= {"TORCHELASTIC_RUN_ID": job.__name__, "TORCHELASTIC_RESTART_COUNT": restarts}
    ranks = set()
    for rank in range(size):
        child = os.fork()
        if child == 0:
            run_rank(job, folder, {**given, "RANK": rank})
        ranks.add(child)
    succeeded = True
    while ranks:
        child, status = os.wait()
        ranks.discard(child)
        if status and succeeded:
            succeeded = False
            for other in ranks:
                os.kill(other, signal.SIGTERM)
    return succeeded


def run_rank(job, folder: Path, given: dict) -> NoReturn:
    """Be one process of a job; what it says as an error stands in a file of the job's name."""
    said = os.open(folder / f"{job.__name__}.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(said, 2)
    os.environ |= {name: str(value) for name, value in given.items()}
    status = 1
    try:
        job(folder)
        status = 0
    except SystemExit as end:
        status = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
    os._exit(status)


def main(folder: Path) -> None:
    """Run all jobs one after the other; what is imported is imported once."""
    import torch._dynamo  # noqa: F401, or the first step of Adam would import it in every process
    import torch.distributed as dist

    restarted: dict[str, int | None] = {}  # how often, until the job succeeded; None if it did not
    for job, (sizes, most_restarts) in JOBS.items():
        for size in sizes:
            # As torchrun's, the store outlives the processes.
            store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
            attempts = range(most_restarts + 1)
            successes = (k for k in attempts if attempt(job, folder, size, k, store.port))
            restarted[f"{job.__name__}-{size}"] = next(successes, None)
    (folder / "restarted.json").write_text(json.dumps(restarted))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Stores of 5 and of 2 shards."""
    folder = tmp_path_factory.mktemp("distributed")
    data = simulate.regression(300, p=6, d=4, seed=1)
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


# pytest has put the root of the repository on the path; a new process needs it in its environment.
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
def jobs(folder, large):
    """The folder of all jobs, and how often each was restarted until it succeeded."""
    for name in ("older", "before-it-is-saved"):
        (large / name).mkdir()
    (large / "older" / "m").write_bytes(b"years of work")
    # In processes of their own: what the jobs set there must not reach other tests.
    succeed([sys.executable, __file__, str(folder)], folder)
    return folder, json.loads((folder / "restarted.json").read_text())


@pytest.fixture(scope="module")
def found(jobs):
    """What 1, 2 and 3 processes found, rank by rank."""
    folder, restarted = jobs
    for size in (1, 2, 3):
        assert restarted[f"fit_all-{size}"] == 0, (folder / "fit_all.txt").read_text()
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
def large(folder):
    """A store that is not read whole, and the model of a quiet fit by one process."""
    place = folder / "large"
    place.mkdir()
    data = simulate.regression(2000, p=50, d=12, seed=0)
    RowStore.from_rows(place / "store", data.X, data.y, shard_mib=0.5, text=[*map(str, data.y)])
    line = ["fit", str(place / "store"), "--solver", "likelihood", "-o", str(place / "quiet")]
    assert CliRunner().invoke(cli.app, line).exit_code == 0
    return place


DIES_WHEN_IT_HAS_SAVED = """
import os
from diagatt.commands import cli
from diagatt.kinds import files

def save_and_die(*given):
    save(*given)
    os._exit(9)

attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
if os.environ["RANK"] == "0":
    with open("attempts", "a") as file:
        file.write(attempt)
if attempt == "1":
    save, files.save_model = files.save_model, save_and_die
cli.main()
"""


def test_a_job_whose_ranks_die_ends_with_the_same_model(large):
    """One is killed while it fits; in the second attempt one dies when the model is written."""
    (large / "job.py").write_text(DIES_WHEN_IT_HAS_SAVED)
    command = torchrun(2, "job.py", *FIT, "-o", "killed", max_restarts=2, monitor_interval=0.1)
    job = subprocess.Popen(command, cwd=large, env=ENVIRONMENT, stderr=subprocess.DEVNULL)
    while not (large / "killed.checkpoint").exists() and job.poll() is None:
        time.sleep(0.001)
    ranks = subprocess.run(
        ["pgrep", "-P", str(job.pid)], capture_output=True, text=True, check=True
    )
    os.kill(int(ranks.stdout.split()[-1]), 9)
    assert job.wait(timeout=1800) == 0
    assert (large / "attempts").read_text() == "012"
    quiet, killed = (DiagAttRegressor.load(large / name) for name in ("quiet", "killed"))
    theirs, ours = (
        np.concatenate([np.ravel(getattr(model, name)) for name in ATTRIBUTES])
        for model in (quiet, killed)
    )
    # Threads add up float32 in an order of their own, and what cancels has no digits left.
    assert_equal_up_to_rounding(ours.astype(np.float32), theirs.astype(np.float32))
    assert not list(large.glob("*checkpoint*"))


def test_a_restarted_job_replaces_no_older_model(jobs, large):
    folder, restarted = jobs
    said = (folder / "fit_beside_an_older_model.txt").read_text()
    assert restarted["fit_beside_an_older_model-2"] is None
    # In each of two attempts, at least one process writes the message; it may end the others first.
    assert said.count(": --output older/m exists: pass --overwrite to replace it") >= 2
    assert (large / "older" / "m").read_bytes() == b"years of work"
    assert [path.name for path in (large / "older").iterdir()] == ["m"]


def test_a_restarted_job_removes_the_checkpoint_of_its_first_attempt(jobs, large):
    folder, restarted = jobs
    said = (folder / "fit_and_die_before_it_is_saved.txt").read_text()
    assert restarted["fit_and_die_before_it_is_saved-2"] == 1, said
    assert [path.name for path in (large / "before-it-is-saved").iterdir()] == ["m"]


def test_processes_share_the_shards_of_a_prediction(jobs, large):
    folder, restarted = jobs
    said = (folder / "share_a_prediction.txt").read_text()
    assert restarted["share_a_prediction-2"] == 0, said
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
