"""Missing entries: marginalizing against mean imputation and against complete data.

Run ``python -m benchmarks.missing`` (about half an hour on one core; a killed run resumes where it
stopped; ``--table`` only prints what is stored). The design is the paper's first, table1-p100-d70,
with n = 2000 samples; of their entries 20 % are missing at random. Errors are those of new samples,
complete ones and ones with 20 % of their entries missing.

The goal is about complete new samples: "at most 1.05 times the error of complete data" asks what
missing entries of the training samples cost. Where entries of new samples are missing, the response
depends on what nobody knows, and "known parameters" is the error that remains if all of them are
known; "at most that of mean imputation" is asked of both kinds of new samples.
"""

import argparse
import time

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from benchmarks.store import FOLDER, recall, remember
from diagatt import DiagAttRegressor, simulate
from diagatt.metrics import rmse
from diagatt.missing import completed
from diagatt.ragged import RaggedRows

SETTING, N, SHARE, SEEDS = "table1-p100-d70", 2000, 0.2, (0, 1, 2, 3, 4)
METHODS = ("complete data", "marginalize", "mean imputation", "known parameters")
GOAL = 1.05


def with_holes(X: RaggedRows, seed: tuple[int, ...]) -> RaggedRows:
    """Return samples of which a share of entries is missing at random."""
    values = np.array(X.values)
    values[np.random.default_rng(seed).random(values.shape) < SHARE] = np.nan
    return X.with_values(values)


def imputed(X: RaggedRows, means: np.ndarray) -> RaggedRows:
    """Return samples with means in the place of missing entries."""
    return X.with_values(np.where(np.isnan(X.values), means, X.values).astype(X.dtype))


def known(test, X: RaggedRows) -> np.ndarray:
    """Return the Bayes predictions of incomplete samples, with all parameters known."""
    from diagatt.segments import segment_softmax, segment_sum

    p = test.parameters
    means = np.stack([p.center, p.mu[0] * p.center])
    covariances = np.stack([p.covariance, p.sigma2[0] * p.covariance])
    rows = completed(X, means, covariances)
    x, offsets = rows.to_torch(dtype=torch.float64)
    K = np.linalg.inv(covariances)
    gaps = [x.numpy() - m for m in means]
    logs = [-0.5 * np.einsum("nd,de,ne->n", g, k, g) for g, k in zip(gaps, K, strict=True)]
    scores = torch.from_numpy(logs[1] - logs[0])
    scores = scores if rows.log_prior is None else scores + torch.from_numpy(rows.log_prior)
    kappa = segment_softmax(scores[:, None], offsets)
    effects = x @ torch.from_numpy(np.asarray(p.beta[0], dtype=float))[:, None]
    return segment_sum(kappa * effects, offsets)[:, 0].numpy()


def score(method: str, seed: int) -> dict[str, float]:
    """Fit to one draw, and return the errors of new samples, complete and incomplete."""
    setting = simulate.PAPER_SETTINGS[SETTING]
    train, test = setting.draw(N, seed=(seed, 0)), setting.draw(N, seed=(seed, 1))
    X, new = with_holes(train.X, (seed, 2)), with_holes(test.X, (seed, 3))
    start = time.perf_counter()
    if method == "known parameters":
        found = {"complete": test.oracle().prediction, "incomplete": known(test, new)}
    else:
        given = {"solver": "likelihood", "random_state": seed}
        if method == "mean imputation":
            means = np.nanmean(X.values, axis=0)
            X, new = imputed(X, means), imputed(new, means)
        else:
            given["missing"] = "marginalize"
        model = DiagAttRegressor(**given).fit(train.X if method == "complete data" else X, train.y)
        found = {"complete": model.predict(test.X), "incomplete": model.predict(new)}
    seconds = time.perf_counter() - start
    return {"seconds": seconds, **{k: float(rmse(test.y, z)) for k, z in found.items()}}


def lines() -> list[list[str]]:
    """Return the cells of the table: means over seeds, and by how much complete data are better."""
    results, found = recall("missing"), []
    for kind in ("complete", "incomplete"):
        for seed in (*SEEDS, "mean"):
            cells = []
            for method in METHODS:
                keys = [f"{method}.{s}" for s in (SEEDS if seed == "mean" else (seed,))]
                done = [results[key][kind] for key in keys if key in results]
                cells.append(f"{np.mean(done):.3f}" if done else "–")
            ratio = "–" if "–" in cells[:2] else f"{float(cells[1]) / float(cells[0]):.3f}"
            found.append([kind, str(seed), *cells, ratio])
    return found


HEAD = ["new samples", "seed", *METHODS, "marginalize / complete data"]
TITLE = f"RMSE, {SETTING}, n = {N}, {100 * SHARE:.0f} % of entries missing at random"


def show() -> None:
    """Print the table and write it to results/missing.md."""
    view = Table(*HEAD, title=TITLE)
    for row in (rows := lines()):
        view.add_row(*row)
    Console(width=150).print(view)
    text = "\n".join("| " + " | ".join(row) + " |" for row in [HEAD, ["---"] * len(HEAD), *rows])

    verdicts = [_verdict(rows, kind) for kind in ("complete", "incomplete")]
    print("\n".join(verdicts))
    words = __doc__.split("\n\n")[-1].strip()
    (FOLDER / "missing.md").write_text(
        f"{TITLE}.\n\n{text}\n\n{words}\n\n" + "\n".join(f"- {line}" for line in verdicts) + "\n"
    )


def _verdict(rows: list[list[str]], kind: str) -> str:
    """Say whether the means reach the goal."""
    line = next(row for row in rows if row[:2] == [kind, "mean"])
    if "–" in line:
        return f"{kind} new samples: not all have run."
    full, ours, plain = (float(cell) for cell in line[2:5])
    said = f"{kind} new samples: marginalizing {'is' if ours <= plain else 'is NOT'} at most "
    said += f"mean imputation ({ours:.3f} against {plain:.3f})"
    if kind == "complete":
        reached = "at most" if ours <= GOAL * full else "NOT at most"
        said += f", and {reached} {GOAL} times complete data (×{ours / full:.3f})"
    return said + "."


def main() -> None:
    """Run what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", action="store_true", help="print what is stored, run nothing")
    options = parser.parse_args()
    for seed in () if options.table else SEEDS:
        for method in METHODS:
            key = f"{method}.{seed}"
            result = remember("missing", key, lambda: score(method, seed))  # noqa: B023
            print(key, {k: round(v, 3) for k, v in result.items()}, flush=True)
    show()


if __name__ == "__main__":
    main()
