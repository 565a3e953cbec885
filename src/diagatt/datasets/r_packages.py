"""Bags in the files of R's packages: patients with their visits, and schools with their pupils.

Rows of patients are measurements up to a landmark, and the response is the time to death after it.
Patients who have died or left by the landmark are not in the set, so that rows never contain
anything about the future.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterable
from typing import Any

import numpy as np

from diagatt.datasets.bags import Bags, provides
from diagatt.datasets.packaged import r_library_file, read_lazyload
from diagatt.lifetimes import make_times
from diagatt.ragged import RaggedRows

DAYS, YEARS = 5, 1.0


@provides("icu_nutrition")
def nutrition_bags(name: str) -> Bags:
    """Read patients in intensive care from R's package pammtools, patient and daily.

    A row is one of the first five days: its number, calories (% of the prescription) and protein
    (g/kg). The response is the time of death in hospital after day 5. Age, sex, body mass index and
    the Apache II score are covariates, hospitals are groups.
    """
    index = r_library_file("pammtools", "data/Rdata.rdx", "r-cran-pammtools", name)
    patients, daily = (read_lazyload(index, table) for table in ("patient", "daily"))
    rows = daily[["Study_Day", "caloriesPercentage", "proteinGproKG"]].to_numpy(float)
    known = np.column_stack(
        [
            (patients["Gender"] == "Female").to_numpy(float),
            *(patients[column].to_numpy(float) for column in ("Age", "BMI", "ApacheIIScore")),
        ]
    )
    return _landmarked(
        name,
        rows,
        of_row=daily["CombinedID"].to_numpy(float),
        measured=rows[:, 0],
        ids=patients["CombinedID"].to_numpy(float),
        ends=patients["survhosp"].to_numpy(float),
        died=patients["PatientDied"].to_numpy(float) == 1,
        landmark=DAYS,
        covariates=known,
        groups=patients["CombinedicuID"].astype(str).to_numpy(),
        description="Patients in intensive care, their first five days as rows; time to death.",
        licence="MIT (package)",
        source="pammtools for R, patient and daily",
    )


@provides("cirrhosis")
def cirrhosis_bags(name: str) -> Bags:
    """Read patients with cirrhosis from R's package timereg, csl (the CSL 1 trial).

    A row is a visit of the first year: its time and the prothrombin index. The response is the
    time of death after that year. Sex, age, treatment and the first prothrombin index are
    covariates.
    """
    file = r_library_file("timereg", "data/csl.txt.gz", "r-cran-timereg", name)
    with gzip.open(file, "rt", encoding="utf-8") as text:
        head, *lines = csv.reader(text, delimiter=" ")
    table = np.array([line[1:] for line in lines], dtype=float)
    column = {title: table[:, k] for k, title in enumerate(head)}
    ids, first = np.unique(column["id"], return_index=True)
    known = [column[title][first] for title in ("sex", "age", "treat", "prot.base")]
    return _landmarked(
        name,
        np.column_stack([column["time"], column["prot"]]),
        of_row=column["id"],
        measured=column["time"],
        ids=ids,
        ends=column["eventT"][first],
        died=column["dc"][first] == 1,
        landmark=YEARS,
        covariates=np.column_stack(known),
        groups=None,
        description="Patients with cirrhosis, visits of their first year as rows; time to death.",
        licence="GPL-2 or later (package)",
        source="timereg for R, csl",
    )


def _landmarked(
    name: str,
    rows: np.ndarray,
    *,
    of_row: np.ndarray,
    measured: np.ndarray,
    ids: Iterable[float],
    ends: np.ndarray,
    died: np.ndarray,
    landmark: float,
    covariates: np.ndarray,
    groups: np.ndarray | None,
    **words: Any,
) -> Bags:
    """Return which patients are observed beyond the landmark and have rows and all covariates."""
    early = (measured <= landmark) & np.isfinite(rows).all(axis=1)
    samples = [rows[early & (of_row == own)] for own in ids]
    complete = np.isfinite(covariates).all(axis=1) & (ends > landmark)
    kept = np.array([k for k, own in enumerate(samples) if len(own) and complete[k]])
    return Bags(
        name,
        RaggedRows.from_samples([samples[k] for k in kept]),
        make_times(died[kept], ends[kept] - landmark),
        "survival",
        groups=None if groups is None else groups[kept],
        covariates=covariates[kept],
        **words,
    )


@provides("schools", "schools_sector")
def school_bags(name: str) -> Bags:
    """Read 160 schools with 7185 pupils from R's package nlme, MathAchieve and MathAchSchool.

    For "schools" a row is a pupil's minority status, sex and social status, and the response is
    the school's mean achievement in mathematics. For "schools_sector" a row has the pupil's
    achievement, too, and the response is whether the school is Catholic. The school's size is a
    covariate.
    """
    index = r_library_file("nlme", "data/Rdata.rdx", "r-cran-nlme", name)
    pupils, schools = (read_lazyload(index, n) for n in ("MathAchieve", "MathAchSchool"))
    values = np.column_stack(
        [
            (pupils["Minority"] == "Yes").to_numpy(float),
            (pupils["Sex"] == "Female").to_numpy(float),
            *(pupils[column].to_numpy(float) for column in ("SES", "MathAch")),
        ]
    )
    of_pupil, of_school = (frame["School"].astype(str).to_numpy() for frame in (pupils, schools))
    samples = [values[of_pupil == school] for school in of_school]
    if regresses := name == "schools":
        y = np.array([sample[:, 3].mean() for sample in samples])
        samples = [sample[:, :3] for sample in samples]
        text = "the response is mean achievement in mathematics"
    else:
        y = (schools["Sector"] == "Catholic").to_numpy().astype(np.int64)
        text = "positive ones are Catholic"
    return Bags(
        name,
        RaggedRows.from_samples(samples),
        y,
        "regression" if regresses else "binary",
        covariates=schools["Size"].to_numpy(float)[:, None],
        description=f"Schools, their pupils as rows; {text}.",
        licence="GPL-2 or later (package)",
        source="nlme for R, MathAchieve and MathAchSchool",
    )
