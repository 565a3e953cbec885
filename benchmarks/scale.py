"""Fits beyond memory and beyond one process: a store of 5 GB, several processes, 50 kills.

Run ``python -m benchmarks.scale`` on a quiet machine (15 minutes, and 6 GB of disk space in the
temporary folder; ``--samples 20000`` for a quick look; ``--dtype float16 --samples 360000`` for a
store of 5 GB in half precision, with ``--part 0.2`` if 30 GB are more than the machine has in
memory). Rows are those of the paper's Table 1.

* ``memory``     one process fits the store and, in another process, the same rows in memory:
                 rows per second, peak resident memory, agreement of all parameters;
* ``processes``  1, 2 and 3 processes of one thread each (`torchrun`): time and agreement;
* ``kills``      a rank, or torchrun itself, is killed repeatedly at random moments;
* ``traffic``    bytes sent per likelihood iteration as n grows;
* ``costs``      seconds per likelihood iteration against the cost model, by N, d, R, processes.

Results are kept in ``results/scale.jsonl``.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.store import remember

SETTING, CHUNK = "table1-p100-d70", 2000
SAMPLES, SMALL = 180_000, 1500
ATTRIBUTES = ("query_key_", "value_", "intercept_", "value_se_")


def make_store(path: Path, n: int, shard_mib: float, dtype: str = "float32") -> None:
    """Draw n samples in chunks and stream them into a store."""
    from diagatt.simulate import paper_setting
    from diagatt.stores import RowStoreWriter

    with RowStoreWriter(path, shard_mib=shard_mib, dtype=dtype) as writer:
        for start in range(0, n, CHUNK):
            data = paper_setting(SETTING).draw(min(CHUNK, n - start), seed=start)
            writer.extend(data.X, data.y)


@contextmanager
def timed_passes() -> Iterator[list[float]]:
    """Record the seconds of every likelihood pass over a store during the block."""
    from diagatt.solvers.likelihood.em import Expectation

    seconds: list[float] = []
    run = Expectation.run

    def timed(*arguments: Any, **options: Any) -> Any:
        start = time.perf_counter()
        result = run(*arguments, **options)
        seconds.append(time.perf_counter() - start)
        return result

    Expectation.run = timed  # type: ignore[method-assign]
    try:
        yield seconds
    finally:
        Expectation.run = run  # type: ignore[method-assign]


def fit_and_tell(
    store: Path, output: Path, in_memory: bool, memory: float, part: float = 1.0, heads: int = 1
) -> None:
    """Fit in this process (one of several under torchrun); write model, time and memory."""
    import torch

    from diagatt import DiagAttRegressor
    from diagatt.distributed import joined
    from diagatt.stores import RowStore

    torch.set_num_threads(1)
    with joined() as group:
        rows = RowStore(store, memory=memory)
        rows = rows.select(range(max(1, round(part * len(rows.shards)))))
        for shard in rows.parts(range(group.rank, len(rows.shards), group.size)):
            shard.X.values[
                ::1000
            ].sum()  # files are read and verified first: only fits are measured
        given = (rows,)
        if in_memory:
            loaded = rows.take(np.arange(len(rows)))
            given = (loaded.X, loaded.y)
        model = DiagAttRegressor(heads, solver="likelihood", random_state=0)
        start, spent = time.perf_counter(), time.process_time()
        with timed_passes() as passes:
            model.fit(*given)
        seconds, spent = time.perf_counter() - start, time.process_time() - spent
        if group.rank == 0:
            model.save(output)
            status = Path("/proc/self/status").read_text()
            peak = int(status.split("VmHWM:")[1].split()[0]) / 1024
            told = {"seconds": seconds, "cpu_seconds": spent, "peak_mib": peak}
            told |= {"iterations": model.n_iter_}
            told |= {"rows": rows.n_rows, "features": rows.n_features, "passes": passes}
            told |= model.communication_
            output.with_suffix(".json").write_text(json.dumps(told))


def run_fit(
    folder: Path,
    processes: int = 1,
    in_memory: bool = False,
    memory: float = 256,
    part: float = 1.0,
    heads: int = 1,
) -> dict:
    """Fit in new processes of one thread each; return what they report."""
    output = folder / f"model-{processes}{'-memory' if in_memory else ''}.safetensors"
    worker = ["-m", "benchmarks.scale", "fit", str(folder / "store"), "--output", str(output)]
    worker += ["--memory", str(memory), *(["--in-memory"] if in_memory else [])]
    worker += ["--part", str(part), "--heads", str(heads)]
    subprocess.run([*_launcher(processes), *worker], check=True, env=_environment())
    return json.loads(output.with_suffix(".json").read_text()) | {"model": str(output)}


def _launcher(processes: int, *options: str) -> list[str]:
    if processes == 1:
        return [sys.executable]
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    return [*run, f"--nproc-per-node={processes}", *options]


def _environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1"}


def largest_difference(one: str, other: str) -> float:
    """Return the largest difference, relative to each parameter's largest entry."""
    from diagatt import DiagAttRegressor

    a, b = DiagAttRegressor.load(one), DiagAttRegressor.load(other)
    pairs = [(np.asarray(getattr(a, n)), np.asarray(getattr(b, n))) for n in ATTRIBUTES]
    return max(float(np.abs(x - y).max() / np.abs(x).max()) for x, y in pairs)


# ---------------------------------------------------------------------- memory, processes


def memory_report(folder: Path, part: float = 1.0) -> Iterator[str]:
    """Compare a store with rows in memory, each in one process of one thread.

    Where memory is too small for all rows, a part of the store is compared.
    """
    whole = run_fit(folder)
    yield f"store of {whole['rows']:,} rows: {size_of(folder / 'store') / 1e9:.2f} GB"
    if part < 1:
        yield (
            f"  all of it {whole['seconds']:7.1f} s, {whole['cpu_seconds']:.1f} s of CPU, "
            f"{whole['iterations']} iterations, peak {whole['peak_mib']:,.0f} MiB resident"
        )
        yield f"  compared on {100 * part:.0f} % of its shards:"
    stored = whole if part == 1 else run_fit(folder, part=part)
    loaded = run_fit(folder, in_memory=True, memory=10**6, part=part)
    speed = [t["rows"] * t["iterations"] / t["seconds"] for t in (stored, loaded)]
    for name, told, rate in zip(("store", "memory"), (stored, loaded), speed, strict=True):
        yield (
            f"  from {name:<7} {told['seconds']:7.1f} s, {told['iterations']} iterations, "
            f"{rate / 1e6:.2f} million rows/s, peak {told['peak_mib']:,.0f} MiB resident"
        )
    yield f"  speed from the store: {100 * speed[0] / speed[1]:.0f} % of that in memory (wanted 90)"
    spent = [t["cpu_seconds"] / t["iterations"] for t in (stored, loaded)]
    yield f"  by CPU seconds, which do not see the disk: {100 * spent[1] / spent[0]:.0f} %"
    yield f"  peak resident memory: {whole['peak_mib']:.0f} MiB (wanted at most 700)"
    difference = largest_difference(stored["model"], loaded["model"])
    yield f"  largest relative difference of a parameter: {difference:.1e} (wanted 1e-5)"


def processes_report(folder: Path) -> Iterator[str]:
    """Time 1, 2 and 3 processes, and 1 process again at the end, as the machine may drift."""
    told = {n: run_fit(folder, n) for n in (1, 2, 3)}
    again = run_fit(folder, 1)
    alone = (told[1]["seconds"] + again["seconds"]) / 2
    for n, t in told.items():
        difference = largest_difference(told[1]["model"], t["model"])
        yield (
            f"  {n} process{'es' if n > 1 else '  '} of one thread: {t['seconds']:6.1f} s, "
            f"difference to one: {difference:.1e} (wanted 1e-6)"
        )
    yield (
        f"  two are {alone / told[2]['seconds']:.2f} times as fast as one (wanted 1.6; one took "
        f"{told[1]['seconds']:.1f} s before, {again['seconds']:.1f} s after)"
    )
    each = told[2]["bytes"] / told[2]["reductions"]
    yield f"  {told[2]['reductions']} sums, {told[2]['bytes']:,} bytes: {each:,.0f} bytes each"


def size_of(store: Path) -> int:
    """Return the total size of all files in bytes."""
    return sum(file.stat().st_size for file in store.iterdir())


# ---------------------------------------------------------------------- traffic


def traffic_report() -> Iterator[str]:
    """Count the bytes sent per likelihood iteration for growing n."""
    from diagatt import DiagAttRegressor
    from diagatt.stores import RowStore

    for n in (2_000, 4_000, 8_000):
        with tempfile.TemporaryDirectory() as folder:
            make_store(Path(folder) / "store", n, shard_mib=8)
            store = RowStore(Path(folder) / "store")
            model = DiagAttRegressor(solver="likelihood", random_state=0).fit(store)
            told, iterations = model.communication_, model.n_iter_
        d = store.n_features
        formula = 8 * (3 + d * d + d + (d + 1) + (d + 1) ** 2)
        yield (
            f"  n = {n:>5}: {formula:,} bytes an iteration by the cost model; counted in all: "
            f"{told['bytes']:,} bytes in {told['reductions']} sums, {iterations} iterations"
        )


# ---------------------------------------------------------------------- costs


def costs_report(folder: Path) -> Iterator[str]:
    """Time likelihood passes and compare them with the cost model."""
    from benchmarks.cost import IterationCost

    points = [(folder, {"part": part}) for part in (0.25, 0.5, 1.0)]
    points += [(folder, {"processes": 2}), (folder, {"part": 0.25, "heads": 2})]
    for d in (35, 140):
        other = folder / f"d{d}"
        if not (other / "store").exists():
            other.mkdir(exist_ok=True)
            make_other(other / "store", d)
        points.append((other, {}))
    for place, settings in points:
        told = run_fit(place, **settings)
        heads, processes = settings.get("heads", 1), settings.get("processes", 1)
        cost = IterationCost(told["rows"], told["features"], heads, processes=processes)
        seconds = float(np.median(told["passes"][:-1]))  # the last pass is for standard errors
        yield (
            f"  N = {told['rows'] / 1e6:5.1f} million, d = {told['features']:3}, R = {heads}, "
            f"{processes} process{'es' if processes > 1 else '  '}: {seconds:6.2f} s, "
            f"{cost.flops / seconds / 1e9 / processes:5.1f} Gflop/s and "
            f"{cost.bytes_read / seconds / 1e9 / processes:5.2f} GB/s a process, "
            f"{cost.bytes_of_sums / 1e3:.0f} kB of sums"
        )


def make_other(path: Path, d: int) -> None:
    """Store 100 million numbers in rows of d features, otherwise like those of Table 1."""
    from diagatt.simulate import regression
    from diagatt.stores import RowStoreWriter

    population = regression(1, p=100, d=d, mu=2.0, sigma2=2.0, seed=d)
    with RowStoreWriter(path) as writer:
        for seed in range(10**6 // d // CHUNK + 1):
            data = population.draw(CHUNK, seed=seed)
            writer.extend(data.X, data.y)


# ---------------------------------------------------------------------- kills


def kills_report(folder: Path, kills: int) -> Iterator[str]:
    """Kill a rank or torchrun at random moments until the count is reached."""
    store = folder / "small"
    if not store.exists():
        make_store(store, SMALL, shard_mib=1)
    luck = random.Random(0)
    wrong = strays = jobs = restarts = killed = 0
    quiet = folder / "quiet.safetensors"
    seconds = _job(store, quiet, None)[1]
    while killed < kills:
        output = folder / "killed.safetensors"
        output.unlink(missing_ok=True)
        jobs += 1
        while True:
            moment = luck.uniform(0, seconds) if killed < kills else None
            victim, _, done = _job(store, output, moment, luck)
            killed += victim is not None
            if done:
                break
            restarts += 1
        wrong += largest_difference(str(quiet), str(output)) > 1e-12
        strays += sum(1 for file in folder.glob("*killed*") if file != output)
    yield (
        f"  {killed} kills in {jobs} jobs of 2 processes: {wrong} wrong models, {strays} files "
        f"left behind; {restarts} times the command was given again, else torchrun went on alone"
    )


def _job(
    store: Path, output: Path, moment: float | None, luck: random.Random | None = None
) -> tuple[str | None, float, bool]:
    """Run ``torchrun -m diagatt fit`` and kill one of its processes after so many seconds.

    Return which process was killed, the seconds, and whether the model was written.
    """
    # A job whose launcher is killed at the very end has written its model when it is given again.
    files = [str(store), "-o", str(output), "--overwrite"]
    worker = ["-m", "diagatt", "fit", *files, "--solver", "likelihood"]
    command = [*_launcher(2, "--max-restarts=3", "--monitor-interval=0.1"), *worker]
    start = time.perf_counter()
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    job = subprocess.Popen(command, env=_environment(), start_new_session=True, **quiet)
    victim = None
    if moment is not None:
        time.sleep(moment)
        victim = _kill_someone(job.pid, luck or random.Random())
    code = job.wait()
    _end_session(job.pid)
    return victim, time.perf_counter() - start, code == 0 and output.exists()


def _kill_someone(agent: int, luck: random.Random) -> str | None:
    """Kill torchrun (in one of five cases) or one of its processes; None if none is running."""
    workers = subprocess.run(
        ["pgrep", "-P", str(agent)], capture_output=True, text=True, check=False
    )
    ranks = [int(pid) for pid in workers.stdout.split()]
    chosen = agent if luck.random() < 0.2 or not ranks else luck.choice(ranks)
    try:
        os.kill(chosen, signal.SIGKILL)
    except ProcessLookupError:
        return None
    return "torchrun" if chosen == agent else "rank"


def _end_session(leader: int) -> None:
    """End the processes that a killed torchrun left, as a cluster manager would."""
    subprocess.run(["pkill", "-KILL", "-s", str(leader)], check=False)
    while subprocess.run(["pgrep", "-s", str(leader)], capture_output=True, check=False).stdout:
        time.sleep(0.05)


# ---------------------------------------------------------------------- all of it


def main() -> None:
    """Run the requested measurements, print and store them."""
    parser = argparse.ArgumentParser(description=__doc__)
    everything = ["memory", "processes", "costs", "traffic", "kills"]
    parser.add_argument("what", nargs="*", default=everything)
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--dtype", default="float32", help="type in which rows are stored")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--folder", type=Path, help="where the store is, or is to be made")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--in-memory", action="store_true")
    parser.add_argument("--memory", type=float, default=256)
    parser.add_argument("--part", type=float, default=1.0, help="share of the shards to compare")
    parser.add_argument("--heads", type=int, default=1)
    options = parser.parse_args()
    if options.what[0] == "fit":
        asked = (options.in_memory, options.memory, options.part, options.heads)
        fit_and_tell(Path(options.what[1]), options.output, *asked)
        return
    folder = options.folder or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    if {"memory", "processes", "costs"} & set(options.what) and not (folder / "store").exists():
        # Shards of half precision are widened: two are in memory as rows, and one as it was read.
        mib = 64 if options.dtype == "float32" else 16
        make_store(folder / "store", options.samples, mib, options.dtype)
    reports = {
        "memory": lambda: memory_report(folder, options.part),
        "processes": lambda: processes_report(folder),
        "costs": lambda: costs_report(folder),
        "kills": lambda: kills_report(folder, options.kills),
        "traffic": traffic_report,
    }
    size = "" if options.samples == SAMPLES else f" {options.samples}"
    size += "" if options.dtype == "float32" else f" {options.dtype}"
    for name in options.what:
        report = remember("scale", name + size, lambda name=name: {"said": list(reports[name]())})
        print(name, *report["said"], sep="\n")
    if options.folder is None:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
