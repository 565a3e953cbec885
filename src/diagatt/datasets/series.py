"""Multivariate time series as bags: a row per moment, its order not used."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from diagatt.datasets.bags import Bags, provides
from diagatt.datasets.packaged import packaged_file
from diagatt.ragged import RaggedRows

_FOLDERS = {"japanese_vowels": "JapaneseVowels", "basic_motions": "BasicMotions"}
_CONTENTS = {
    "japanese_vowels": "Utterances of two vowels, a row of 12 cepstrum coefficients per moment; "
    "the class is one of nine speakers.",
    "basic_motions": "Movements recorded by a watch, a row of six readings per moment; the class "
    "is standing, walking, running or badminton.",
}


@provides(*_FOLDERS)
def series_bags(name: str) -> Bags:
    """Read training and test series from the files of PyPI's package ``aeon``, as one set."""
    folder = _FOLDERS[name]
    samples, labels = [], []
    for part in ("TRAIN", "TEST"):
        path = packaged_file("aeon", f"aeon/datasets/data/{folder}/{folder}_{part}.ts", name)
        for sample, label in read_ts(path):
            samples.append(sample)
            labels.append(label)
    return Bags(
        name,
        RaggedRows.from_samples(samples),
        np.array(labels),
        "multiclass",
        description=_CONTENTS[name],
        licence="BSD-3-Clause (package); the sets are from the UEA archive",
        source="aeon on PyPI, from timeseriesclassification.com",
    )


def read_ts(path: Path) -> list[tuple[np.ndarray, str]]:
    """Read series and labels of a ``.ts`` file: channels are separated by colons, the label last.

    Returns
    -------
    list of (array of shape (p, d), str)
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.lower().startswith("@data")) + 1
    found = []
    for line in lines[start:]:
        if not line.strip():
            continue
        *channels, label = line.strip().split(":")
        columns = [np.array(channel.split(","), dtype=np.float64) for channel in channels]
        found.append((np.column_stack(columns), label))
    return found
