"""Files that users hold, at full size: how much memory a fit and a prediction take.

Run ``python -m benchmarks.files cells slides sparse`` (``--share 0.01`` for a quick look). Files go
to the temporary folder, 1, 11 and 0.2 GB, and are removed.

* ``cells``   a backed h5ad: 2,000 patients × 2,000 scattered cells × 50 features, float32;
* ``slides``  500 slides × 5,000 patches × 1,024 features, float16, in h5 as TRIDENT writes it;
* ``sparse``  100,000 rows × 20,000 features, 0.5 % filled, in a CSR matrix.

Each is read by a process of its own, whose peak resident memory is that of everything: Python,
torch, files that are mapped, rows. Results are kept in ``results/files.jsonl`` and, as a table, in
``results/files.md``.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.store import FOLDER, recall, remember

LIMITS = {"cells": 1.0, "slides": 2.0, "sparse": 1.0}  # GiB


def write_cells(folder: Path, share: float) -> None:
    """Write an h5ad file chunk by chunk; one cell of every patient decides."""
    import h5py

    n, p, d = max(20, round(2000 * share)), 2000 if share == 1 else 200, 50
    rng = np.random.default_rng(0)
    patient = rng.permutation(np.repeat(np.arange(n), p))
    special = np.zeros(n * p, dtype=bool)
    special[np.unique(patient, return_index=True)[1]] = True
    ill = np.arange(n) % 2
    with h5py.File(folder / "cells.h5ad", "w") as file:
        file.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
        X = file.create_dataset("X", (n * p, d), "f4", chunks=(4096, d))
        X.attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})
        for start in range(0, n * p, 100_000):
            block = slice(start, min(start + 100_000, n * p))
            rows = rng.standard_normal((block.stop - start, d), dtype=np.float32)
            shift = np.where(ill[patient[block]], 2.0, -2.0).astype(np.float32)
            X[block] = rows + (special[block] * shift)[:, None]
        words = h5py.string_dtype()
        for name, count in (("obs", n * p), ("var", d)):
            group = file.create_group(name)
            group.attrs.update({"encoding-type": "dataframe", "encoding-version": "0.2.0"})
            columns = ["patient", "ill"] if name == "obs" else []
            group.attrs.update({"_index": "_index", "column-order": columns})
            ids = [f"{name}{j}" for j in range(count)]
            index = group.create_dataset("_index", data=ids, dtype=words)
            index.attrs.update({"encoding-type": "string-array", "encoding-version": "0.2.0"})
        group = file["obs"].create_group("patient")
        group.attrs.update({"encoding-type": "categorical", "encoding-version": "0.2.0"})
        group.attrs["ordered"] = False
        group.create_dataset("codes", data=patient.astype(np.int16))
        names = group.create_dataset("categories", data=[f"{i:05d}" for i in range(n)], dtype=words)
        names.attrs.update({"encoding-type": "string-array", "encoding-version": "0.2.0"})
        column = file["obs"].create_dataset("ill", data=ill[patient])
        column.attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})


def read_cells(folder: Path, share: float) -> dict:
    """Fit to the file with the default, and predict it; anndata would read all names of cells."""
    from diagatt import DiagAttClassifier
    from diagatt.cells import CellSamples, CellTable

    path = folder / "cells.h5ad"
    start = time.perf_counter()
    model = DiagAttClassifier(random_state=0).fit(path, sample_key="patient", target="ill")
    fitted = time.perf_counter()
    predicted = model.predict(path, sample_key="patient")
    with CellTable.opened(path) as table:
        right = float((predicted == CellSamples.of(table, "patient", target="ill").y).mean())
    return {"fit_s": fitted - start, "predict_s": time.perf_counter() - fitted, "accuracy": right}


def write_slides(folder: Path, share: float) -> None:
    """Write one h5 file per slide, and the labels."""
    import h5py

    n, p, d = max(20, round(500 * share)), 5000 if share == 1 else 200, 1024
    rng = np.random.default_rng(0)
    place = folder / "20x_256px_0px_overlap" / "features_uni_v1"
    place.mkdir(parents=True)
    direction = rng.standard_normal(d)
    lines = ["slide_id,label"]
    for i in range(n):
        rows = rng.standard_normal((p, d), dtype=np.float32)
        rows[: p // 50] += (-1) ** i * 0.3 * direction
        with h5py.File(place / f"s{i:04d}.h5", "w") as file:
            file["features"] = rows.astype(np.float16)
            file["coords"] = 512 * np.stack([np.arange(p) % 70, np.arange(p) // 70], axis=1)
            file["coords"].attrs["patch_size_level0"] = 512
        lines.append(f"s{i:04d},{i % 2}")
    (folder / "labels.csv").write_text("\n".join(lines))


def read_slides(folder: Path, share: float) -> dict:
    """Fit through a store of float16 and predict it."""
    from diagatt import DiagAttClassifier
    from diagatt.slides import read_slides as read
    from diagatt.solvers import Gradient

    slides = read(folder, folder / "labels.csv", target="label")
    start = time.perf_counter()
    store = slides.to_store(folder / "store", memory=640, shard_mib=32)
    stored = time.perf_counter()
    solver = Gradient(rank=2, max_epochs=1, batch_size=8)
    model = DiagAttClassifier(solver=solver, random_state=0).fit(store)
    fitted = time.perf_counter()
    right = float((model.predict(store) == slides.y).mean())
    seconds = {"store_s": stored - start, "fit_s": fitted - stored}
    return {**seconds, "predict_s": time.perf_counter() - fitted, "accuracy": right}


def write_sparse(folder: Path, share: float) -> None:
    """Write a CSR matrix of counts; positive samples hold one row of a topic of its own."""
    from scipy.sparse import random_array, save_npz, vstack

    n, p, d = max(40, round(2000 * share)), 50, 20_000
    rng = np.random.default_rng(0)
    topic = np.arange(n) % 2
    y = np.where(rng.random(n) < 0.05, 1 - topic, topic)  # nothing separates classes perfectly
    parts = []
    for i in range(n):
        block = random_array(
            (p, d), density=0.005, rng=rng, data_sampler=lambda size: rng.poisson(2, size) + 1.0
        ).tolil()
        block[int(rng.integers(p)), :60] = 5.0 * topic[i] + 1.0
        parts.append(block.tocsr().astype(np.float32))
    save_npz(folder / "X.npz", vstack(parts, format="csr"), compressed=False)
    np.save(folder / "y.npy", y)


def read_sparse(folder: Path, share: float) -> dict:
    """Fit to the matrix with the default, and predict it."""
    from scipy.sparse import load_npz

    from diagatt import DiagAttClassifier, RaggedRows

    y = np.load(folder / "y.npy")
    X = RaggedRows(load_npz(folder / "X.npz"), 50 * np.arange(len(y) + 1))
    start = time.perf_counter()
    model = DiagAttClassifier(random_state=0).fit(X, y)
    fitted = time.perf_counter()
    right = float((model.predict(X) == y).mean())
    return {"fit_s": fitted - start, "predict_s": time.perf_counter() - fitted, "accuracy": right}


def peak_gib() -> float:
    """Return the peak resident memory of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 2**20
    raise KeyError("VmHWM")


def measure(kind: str, share: float) -> dict:
    """Write the files, read them in a process of its own, and return what it says."""
    with tempfile.TemporaryDirectory() as folder:
        globals()[f"write_{kind}"](Path(folder), share)
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.files", kind]
        one_thread = {**os.environ, "OMP_NUM_THREADS": "1"}  # two wait for each other on busy cores
        done = subprocess.run(
            [*command, "--share", str(share), "--read", folder],
            capture_output=True,
            text=True,
            env=one_thread,
        )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


WORDS = {
    "cells": "2,000 patients × 2,000 cells × 50 features, float32, backed h5ad; default fit",
    "slides": "500 slides × 5,000 patches × 1,024 features, float16, h5; gradient fit of one epoch",
    "sparse": "100,000 rows × 20,000 features, 0.5 % filled, CSR; default fit",
}


def write_table() -> None:
    """Write ``results/files.md``: what has been measured so far."""
    lines = [
        "# Files that users hold: peak resident memory",
        "",
        "`python -m benchmarks.files cells slides sparse`: a process of its own each, one thread.",
        "The peak includes Python, torch and everything that is imported, about 0.4 GiB.",
        "",
        "| file | reading, fit, prediction (s) | accuracy | peak (GiB) | limit (GiB) |",
        "|---|---|---|---|---|",
    ]
    for kind, found in sorted(recall("files").items()):
        seconds = ", ".join(
            f"{found[s]:.0f}" for s in ("store_s", "fit_s", "predict_s") if s in found
        )
        numbers = f"{found['accuracy']:.3f} | {found['peak_gib']:.2f} | {LIMITS[kind]:g}"
        lines.append(f"| {WORDS[kind]} | {seconds} | {numbers} |")
    (FOLDER / "files.md").write_text("\n".join(lines) + "\n")


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="+", choices=list(LIMITS))
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    for kind in asked.kinds:
        if asked.read is not None:
            found = globals()[f"read_{kind}"](asked.read, asked.share)
            print(json.dumps({**found, "peak_gib": peak_gib()}))
            continue
        if asked.share == 1:
            found = remember("files", kind, partial(measure, kind, 1.0))
            write_table()
        else:
            found = measure(kind, asked.share)
        said = ", ".join(f"{k} {v:.3g}" for k, v in found.items() if isinstance(v, float))
        kept = found["peak_gib"] <= LIMITS[kind]
        print(f"{kind}: {said}; limit {LIMITS[kind]:g} GiB {'kept' if kept else 'EXCEEDED'}")


if __name__ == "__main__":
    main()
