"""Patients as bags of visits: rows stop at the landmark, times begin there."""

import gzip

import numpy as np
import pytest

from diagatt import datasets

CSL = """"id" "time" "prot" "dc" "eventT" "sex" "age" "treat" "prot.base" "prot.prev" "lt" "rt"
"1" 7 0.2 31 1 4.5 0 -12 1 38 38 0 0.2
"2" 7 0.9 27 1 4.5 0 -12 1 38 31 0.2 0.9
"3" 7 1.4 99 1 4.5 0 -12 1 38 27 0.9 1.4
"4" 8 0.1 50 1 0.6 1 3 0 51 51 0 0.1
"5" 9 0.5 60 0 2 1 3 0 52 52 0 0.5
"""


@pytest.fixture
def library(tmp_path, monkeypatch):
    folder = tmp_path / "timereg" / "data"
    folder.mkdir(parents=True)
    (folder / "csl.txt.gz").write_bytes(gzip.compress(CSL.encode()))
    monkeypatch.setenv("R_LIBS", str(tmp_path))


def test_visits_after_the_landmark_and_early_deaths_are_left_out(library):
    bags = datasets.load_bags("cirrhosis")
    assert bags.task == "survival"
    assert not bags.classifies
    assert [x.tolist() for x in bags.X] == [[[0.2, 31], [0.9, 27]], [[0.5, 60]]]
    np.testing.assert_allclose(bags.y["time"], [3.5, 1.0])
    assert bags.y["event"].tolist() == [True, False]
    assert bags.covariates.tolist() == [[0, -12, 1, 38], [1, 3, 0, 52]]


def test_a_missing_package_is_one_sentence(monkeypatch):
    monkeypatch.setattr("diagatt.datasets.packaged._R_LIBRARIES", ())
    monkeypatch.delenv("R_LIBS", raising=False)
    for name, package in (("cirrhosis", "timereg"), ("icu_nutrition", "pammtools")):
        with pytest.raises(FileNotFoundError, match=f"apt install r-cran-{package}"):
            datasets.load_bags(name)
