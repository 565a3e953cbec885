"""Distance to the Bayes oracle in every simulation of the paper, and in three that violate it.

Run ``python -m benchmarks.oracle`` (hours on two cores; a killed run resumes where it stopped).
``--methods``, ``--settings`` and ``--seeds`` select a part, ``--table`` only prints what is stored.
Each line has the oracle, our solvers, the paper's training, and the paper's own figure.
"""

import argparse
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from benchmarks.store import FOLDER, recall, remember
from diagatt import DiagAttClassifier, DiagAttRegressor, simulate
from diagatt.metrics import accuracy, crlr, rmse

PUBLISHED = {  # RMSE and CRLR of the paper's DiagAtt with the true number of heads
    "table1-p100-d70": (7.294, 79.13),
    "table1-p100-d90": (6.000, 87.43),
    "table1-p120-d70": (7.716, 76.95),
    "table1-p120-d90": (6.716, 84.15),
    "tableS2-p100-d70": (6.520, 83.30),
    "tableS2-p100-d90": (5.101, 90.95),
    "tableS2-p120-d70": (6.902, 81.60),
    "tableS2-p120-d90": (5.689, 88.57),
    "tableS4-mu1-sigma2-2": (7.753, 76.51),
    "tableS4-mu1-sigma2-2.5": (4.450, 93.15),
    "tableS4-mu3-sigma2-2": (5.883, 86.60),
    "tableS4-mu3-sigma2-2.5": (3.695, 95.43),
    "tableS3-rho0.3": (5.644, 82.63),
    "tableS3-rho0.6": (3.086, 91.81),
    "table2-s2": (5.012, 95.98),
    "table2-s3": (8.874, 89.30),
}
METHODS = ("gradient", "likelihood", "auto")


@dataclass(frozen=True)
class Case:
    """One line of the table."""

    name: str
    setting: Any  # a simulate.PaperSetting, or None
    n: int
    seeds: tuple[int, ...]
    options: tuple = ()  # for simulate.regression if there is no setting

    def draw(self, seed: int):
        """Draw training and test samples for one seed."""
        if self.setting is not None:
            train = self.setting.draw(self.n, seed=(seed, 0))
            return train, self.setting.draw(self.n // 4, seed=(seed, 1))
        train = simulate.regression(self.n, seed=(seed, 0), **dict(self.options))
        return train, train.draw(self.n // 4, seed=(seed, 1))


def cases() -> list[Case]:
    """Return all lines, cheap ones first."""
    found = []
    for setting in simulate.PAPER_SETTINGS.values():
        seeds = (0, 1, 2, 3, 4) if setting.table == "table2" else (0, 1, 2)
        found.append(Case(setting.name, setting, setting.n, seeds))
        if setting.table == "table2":
            found.append(Case(f"{setting.name}-n9000", setting, 9000, seeds))
    ar1 = simulate.ar1(70, 0.7)
    found += [
        Case("ar1", None, 9000, (0, 1, 2), (("covariance", ar1),)),
        Case("ragged", None, 9000, (0, 1, 2), (("p", (20, 200)),)),
        Case("t5", None, 9000, (0, 1, 2), (("degrees_of_freedom", 5),)),
    ]
    return sorted(found, key=lambda c: c.n)


def model_of(method: str, case: Case, train, seed: int):
    """Return the estimator for a column."""
    classifies = train.y.dtype.kind == "i"
    cls = DiagAttClassifier if classifies else DiagAttRegressor
    heads = train.rows.shape[1]
    if method == "gradient":
        return cls.preset("paper", n_heads=heads, random_state=seed)
    rho = 0.0 if case.setting is None else case.setting.rho
    form = {"score_form": "contextual"} if rho > 0 else {}
    return cls(n_heads=heads, solver=method, random_state=seed, **form)


def score(method: str, case: Case, seed: int) -> dict[str, float]:
    """Fit one estimator to one draw, and score it and the oracle on new samples."""
    train, test = case.draw(seed)
    oracle = test.oracle()
    start = time.perf_counter()
    model = model_of(method, case, train, seed).fit(train.X, train.y)
    seconds = time.perf_counter() - start
    result = {"seconds": seconds, "crlr": 100 * crlr(test.rows, model.locate(test.X))}
    result["oracle crlr"] = 100 * crlr(test.rows, oracle.rows)
    if train.y.dtype.kind == "i":
        result["error"] = 100 * accuracy(test.y, model.predict(test.X))
        result["oracle error"] = 100 * accuracy(test.y, oracle.prediction > 0.5)
    else:
        result["error"] = rmse(test.y, model.predict(test.X))
        result["oracle error"] = rmse(test.y, oracle.prediction)
    return result


def lines(chosen: list[Case]) -> list[list[str]]:
    """Return the cells of the table: means over the stored seeds."""
    results, found = recall("oracle"), []
    for case in chosen:
        cells, oracle = [], "–"
        for method in METHODS:
            keys = [f"{case.name}.{method}.{s}" for s in case.seeds]
            done = [results[key] for key in keys if key in results]
            if not done:
                cells.append("–")
                continue
            mean = {k: np.mean([r[k] for r in done]) for k in done[0]}
            oracle = f"{mean['oracle error']:.2f} / {mean['oracle crlr']:.1f}"
            cells.append(f"{mean['error']:.2f} / {mean['crlr']:.1f} {_worst(case, done)}")
        paper = PUBLISHED.get(case.name)
        published = "–" if paper is None else f"{paper[0]:.2f} / {paper[1]:.1f}"
        found.append([case.name, str(case.n), oracle, *cells, published])
    return found


def _worst(case: Case, done: list[dict]) -> str:
    """Return the worst seed's distance to the oracle (RMSE ratio or accuracy) and their count."""
    if case.setting is not None and case.setting.task == "classification":
        worst = min(r["error"] - r["oracle error"] for r in done)
        return f"({worst:+.2f}; {len(done)})"
    return f"(×{max(r['error'] / r['oracle error'] for r in done):.3f}; {len(done)})"


HEAD = ["setting", "n", "oracle", *METHODS, "paper"]
TITLE = (
    "RMSE (accuracy % for figures) / CRLR %, mean over seeds "
    "(worst seed against the oracle; number of seeds)"
)


def show(chosen: list[Case]) -> None:
    """Print the table and write it to results/oracle.md."""
    view = Table(title=TITLE)
    for column in HEAD:
        view.add_column(column, justify="left" if column == "setting" else "right")
    rows = lines(chosen)
    for row in rows:
        view.add_row(*row)
    Console(width=170).print(view)
    markdown = [HEAD, ["---"] * len(HEAD), *rows]
    text = "\n".join("| " + " | ".join(row) + " |" for row in markdown)
    (FOLDER / "oracle.md").write_text(f"{TITLE}.\n\n{text}\n")


def main() -> None:
    """Run what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--settings", nargs="+", default=[""], help="prefixes of setting names")
    parser.add_argument("--seeds", type=int, help="only the first so many seeds")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--table", action="store_true", help="print what is stored, run nothing")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    chosen = [c for c in cases() if c.name.startswith(tuple(options.settings))]
    for case in [] if options.table else chosen:
        for seed in case.seeds[: options.seeds]:
            for method in options.methods:
                key = f"{case.name}.{method}.{seed}"
                result = remember("oracle", key, lambda: score(method, case, seed))  # noqa: B023
                print(key, {k: round(v, 3) for k, v in result.items()}, flush=True)
    show(cases())


if __name__ == "__main__":
    main()
