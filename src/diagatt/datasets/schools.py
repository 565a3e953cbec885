"""Schools as bags of pupils (High School and Beyond, 1982)."""

from __future__ import annotations

import numpy as np

from diagatt.datasets.bags import Bags, provides
from diagatt.datasets.packaged import r_library_file, read_lazyload
from diagatt.ragged import RaggedRows


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
