"""Missing entries: marginalizing against mean imputation and against complete data.

Run ``python -m benchmarks.missing`` (about half an hour on one core; a killed run resumes where it
stopped; ``--table`` only prints what is stored). The design is the paper's first, table1-p100-d70,
with n = 2000 samples; of their entries 20 % are missing at random. Errors are those of new samples,
complete ones and ones with 20 % of their entries missing.

Marginalizing should be at most 1.05 times as wrong as a fit to complete data, and at most as wrong
as mean imputation. Where entries of new samples are missing, the response depends on unknown
numbers: "known parameters" is the error that remains if all parameters are known. Where new samples
are complete, what counts is how well the coefficients are known, and training samples with missing
entries say less about them. "Known rows" is what is left of an estimate: the active rows of the
training samples, the distribution of rows and the variance of every response given what is observed
are all known, and only the coefficients are estimated, by weighted least squares. No fit can be
expected to do better.
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
METHODS = ("complete data", "marginalize", "mean imputation", "known rows", "known parameters")
GOAL = 1.05


def with_holes(X: RaggedRows, seed: tuple[int, ...]) -> RaggedRows:
    """Return samples of which a share of entries is missing at random."""
    values = np.array(X.values)
    values[np.random.default_rng(seed).random(values.shape) < SHARE] = np.nan
    return X.with_values(values)


def imputed(X: RaggedRows, means: np.ndarray) -> RaggedRows:
    """Return samples with means in the place of missing entries."""
    return X.with_values(np.where(np.isnan(X.values), means, X.values).astype(X.dtype))


def estimated(train, X: RaggedRows) -> np.ndarray:
    """Return coefficients where all but them is known, from the samples with missing entries."""
    p = train.parameters
    mean, covariance, beta = p.mu[0] * p.center, p.sigma2[0] * p.covariance, p.beta[0]
    rows, weights = np.empty((len(X), p.d)), np.empty(len(X))
    for i, row in enumerate(X.values[X.offsets[:-1] + train.rows[:, 0]].astype(float)):
        seen, lost = ~np.isnan(row), np.isnan(row)
        slope = np.linalg.solve(covariance[np.ix_(seen, seen)], covariance[np.ix_(seen, lost)])
        row[lost] = mean[lost] + (row - mean)[seen] @ slope
        left = covariance[np.ix_(lost, lost)] - covariance[np.ix_(lost, seen)] @ slope
        rows[i], weights[i] = row, 1 / (p.noise**2 + beta[lost] @ left @ beta[lost])
    return np.linalg.solve(rows.T @ (weights[:, None] * rows), rows.T @ (weights * train.y))


def known(test, X: RaggedRows, beta: np.ndarray) -> np.ndarray:
    """Return the Bayes predictions of incomplete samples with these coefficients."""
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
    effects = x @ torch.from_numpy(np.asarray(beta, dtype=float))[:, None]
    return segment_sum(kappa * effects, offsets)[:, 0].numpy()


def score(method: str, seed: int) -> dict[str, float]:
    """Fit to one draw, and return the errors of new samples, complete and incomplete."""
    setting = simulate.PAPER_SETTINGS[SETTING]
    train, test = setting.draw(N, seed=(seed, 0)), setting.draw(N, seed=(seed, 1))
    X, new = with_holes(train.X, (seed, 2)), with_holes(test.X, (seed, 3))
    start = time.perf_counter()
    if method.startswith("known"):
        beta = estimated(train, X) if method == "known rows" else test.parameters.beta[0]
        found = {"complete": known(test, test.X, beta), "incomplete": known(test, new, beta)}
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
    reached = "at most" if ours <= GOAL * full else "NOT at most"
    said += f", and {reached} {GOAL} times complete data (×{ours / full:.3f}"
    floor = f"; known rows ×{float(line[5]) / full:.3f})."
    return said + (floor if kind == "complete" else ").")


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
