"""Ask how well independent quadratic softmax heads can do on the design of the paper's Table 2.

Run ``python -m benchmarks.table2_optimum`` (half an hour on one idle core; a killed run goes on
where it stopped). Our training of the paper's model does not reach the RMSE that Table 2 prints.
This script asks whether that is our training or the model: it minimizes the population risk

    E (y − Σ_r ⟨v_r, Xᵀκ_r⟩ − b)²,   κ_r = softmax(diag(X W_r Xᵀ)),

by Adam on samples that are drawn afresh at every step, so that nothing is overfitted.

Σ is the identity, so the population does not change if features are rotated around the span of the
bold μ and the β_j. Let the columns of Q be a basis of that span. A fit that starts with

    W_r = Q A_r Qᵀ + c_r (I − Q Qᵀ),   v_r = Q a_r,

keeps this form, and then needs only Qᵀx and the squared length of the rest of every row, a handful
of numbers instead of 70. These *symmetric* fits are cheap and many are run. *Full* fits have a free
W: one goes on from the best symmetric fit after a random disturbance, one starts with heads that
look at different halves of the features. RMSEs of both kinds are measured on complete samples.

The paper does not print β. It is read in two ways: "own", every active row has its own β_j with
entries N(1, 1), whose cosine is about one half, as in our tables; "equal", all active rows share
one β. Either way its norm is the one that the published RMSE of group lasso implies.

What is found is an upper bound of the optimum: another start or more steps may do better.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from itertools import product

import numpy as np
import torch
from torch import Tensor

from benchmarks.store import FOLDER, remember
from diagatt.simulate import Simulation, paper_setting
from diagatt.studies import published
from diagatt.tables import markdown_table

READINGS = ("own", "equal")
SYMMETRIC = ("outlier", "shift", "effect", *(f"random {k}" for k in range(2)))
FULL = ("disturbed", "halves")
N_TEST = 5000
RATE_SCORES, RATE_VALUES = 0.01, 0.1  # of Adam, for symmetric fits; they fall to 0 along a cosine

Draw = Callable[[int], tuple[Tensor, Tensor]]  # step → features, responses


def draw(active: int, reading: str, n: int, seed: tuple[int, ...]) -> Simulation:
    """Draw n samples of Table 2 with this many active rows."""
    setting = paper_setting(f"table2-s{active}")
    if reading == "own":
        return setting.draw(n, seed=seed)
    beta = setting.draw(1).parameters.beta  # (s, d)
    same = beta[0] / np.linalg.norm(beta[0]) * np.linalg.norm(beta, axis=1, keepdims=True)
    return setting.draw(n, seed=seed, beta=same)


# ---------------------------------------------------------------------------- symmetric fits


def basis(population: Simulation) -> np.ndarray:
    """Return Q, (d, k): an orthonormal basis of the span of the bold μ and the β_j."""
    parameters = population.parameters
    U, S, _ = np.linalg.svd(np.stack([parameters.center, *parameters.beta], axis=1))
    return U[:, : int((1e-8 * S[0] < S).sum())]


def draw_reduced(population: Simulation, Q: np.ndarray, n: int, seed: int) -> tuple[Tensor, Tensor]:
    """Draw n samples as (Qᵀx, ‖x − QQᵀx‖²), (n, p, k + 1), and their responses, (n,)."""
    parameters, rng = population.parameters, np.random.default_rng(seed)
    (p, _), (d, k), s = parameters.p, Q.shape, parameters.s
    mu, sigma2 = np.ones(p), np.ones(p)
    mu[:s], sigma2[:s] = parameters.mu, parameters.sigma2  # the order of rows does not matter
    u = rng.standard_normal((n, p, k)) * np.sqrt(sigma2)[:, None]
    u += mu[:, None] * (parameters.center @ Q)
    rest = rng.chisquare(d - k, (n, p)) * sigma2
    y = np.einsum("nsk,sk->n", u[:, :s], parameters.beta @ Q)
    y += parameters.noise * rng.standard_normal(n)
    rows = np.concatenate([u, rest[..., None]], axis=-1)
    return torch.tensor(rows, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


def predict_reduced(rows: Tensor, A: Tensor, c: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Return the predictors of reduced samples, (n,)."""
    u, rest = rows[..., :-1], rows[..., -1]  # (n, p, k), (n, p)
    quadratic = torch.einsum("npk,rkl,npl->nrp", u, A, u)
    kappa = torch.softmax(quadratic + c[:, None] * rest[:, None], dim=-1)  # (n, R, p)
    return (kappa * torch.einsum("npk,rk->nrp", u, a)).sum((1, 2)) + b


def symmetric_start(name: str, heads: int, population: Simulation, Q: np.ndarray) -> list[Tensor]:
    """Return A, (R, k, k), c, (R,), a, (R, k), and b to start from."""
    parameters, k = population.parameters, Q.shape[1]
    if name.startswith("random"):
        generator = torch.Generator().manual_seed(int(name.split()[1]))
        A, a = (torch.randn(*shape, generator=generator) for shape in ((heads, k, k), (heads, k)))
        return [0.3 * A, 0.2 * torch.rand(heads, generator=generator), 3 * a, torch.zeros(())]
    beta = np.resize(parameters.beta, (heads, parameters.d)) @ Q  # (R, k)
    center = parameters.center @ Q / np.linalg.norm(parameters.center)
    A = np.stack([np.eye(k) / 5] * heads)
    for r in range(heads):
        along = beta[r] / np.linalg.norm(beta[r])
        if name == "effect":
            A[r] += np.outer(along, along) / 2
        if name == "shift":
            A[r] -= (-1.0) ** r * np.outer(center, center) / 2
    given = [torch.tensor(x, dtype=torch.float32) for x in (A, np.full(heads, 0.2), beta)]
    return [*given, torch.zeros(())]


def minimize(
    parameters: list[Tensor],
    rates: list[float],
    predictor: Callable[..., Tensor],
    fresh: Draw,
    steps: int,
) -> list[Tensor]:
    """Minimize the mean squared error by Adam, with new samples at every step."""
    leaves = [t.clone().requires_grad_() for t in parameters]
    groups = [{"params": [t], "lr": rate} for t, rate in zip(leaves, rates, strict=True)]
    adam = torch.optim.Adam(groups, betas=(0.9, 0.99))
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(adam, steps)
    for step in range(steps):
        rows, y = fresh(step)
        loss = (y - predictor(rows, *leaves)).square().mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
        schedule.step()
    return [t.detach() for t in leaves]


def fit_symmetric(active: int, reading: str, heads: int, name: str, steps: int) -> dict:
    """Fit in the span from one start; return the measures and the parameters."""
    population = draw(active, reading, 1, (0,))
    Q = basis(population)
    A, c, a, b = minimize(
        symmetric_start(name, heads, population, Q),
        [RATE_SCORES, RATE_SCORES / 4, RATE_VALUES, RATE_VALUES],
        predict_reduced,
        lambda step: draw_reduced(population, Q, 400, step),
        steps,
    )
    kept = {"A": A.tolist(), "c": c.tolist(), "a": a.tolist(), "b": float(b)}
    return measure(active, reading, expand(kept, Q)) | kept


def expand(kept: dict, Q: np.ndarray) -> list[Tensor]:
    """Return W, (R, d, d), V, (R, d), and b of a symmetric fit."""
    A, a = np.array(kept["A"]), np.array(kept["a"])
    rest = np.eye(len(Q)) - Q @ Q.T
    W = Q @ A @ Q.T + np.array(kept["c"])[:, None, None] * rest
    return [torch.tensor(x, dtype=torch.float32) for x in (W, a @ Q.T, kept["b"])]


# ---------------------------------------------------------------------------- full fits


def predict(X: Tensor, W: Tensor, V: Tensor, b: Tensor) -> Tensor:
    """Return the predictors of complete samples, (n,)."""
    kappa = torch.softmax(scores(X, W), dim=-1)
    return (kappa * torch.einsum("npd,rd->nrp", X, V)).sum((1, 2)) + b


def scores(X: Tensor, W: Tensor) -> Tensor:
    """Return the scores of complete samples, (n, R, p)."""
    return torch.stack([((X @ w) * X).sum(-1) for w in W], dim=1)


def tensors(data: Simulation) -> tuple[Tensor, Tensor]:
    """Return rows, (n, p, d), and responses, (n,)."""
    n, d = len(data.y), data.X.n_features
    return torch.tensor(data.X.values).view(n, -1, d), torch.tensor(data.y)


def fit_full(active: int, reading: str, name: str, best: dict, steps: int) -> dict:
    """Fit a free W, from the best symmetric fit or with heads that see halves of the features."""
    population = draw(active, reading, 1, (0,))
    W, V, b = expand(best, basis(population))
    generator = torch.Generator().manual_seed(0)
    if name == "disturbed":
        W = W + 0.003 * torch.randn(W.shape, generator=generator)
    else:
        d = W.shape[1]
        for r in range(len(W)):
            W[r] = torch.diag((torch.arange(d) % 2 == r % 2).float() / 4 + 0.1)
    fitted = minimize(
        [W, V, b],
        [5e-4, 5e-3, 5e-3],  # 4900 entries per head: larger steps are noise in the scores
        predict,
        lambda step: tensors(draw(active, reading, 200, (1, step))),
        steps,
    )
    return measure(active, reading, fitted)


def measure(active: int, reading: str, parameters: list[Tensor]) -> dict:
    """Return RMSE with its standard error, and the share of active rows that some head names."""
    squares, located = [], []
    for block in range(N_TEST // 1000):
        data = draw(active, reading, 1000, (2, block))
        X, y = tensors(data)
        squares.append((y - predict(X, *parameters)).square())
        best = scores(X, parameters[0]).argmax(-1).numpy()  # (n, R)
        located.append((data.rows[:, :, None] == best[:, None, :]).any(-1))
    square = torch.cat(squares)
    rmse = float(square.mean().sqrt())
    error = float(square.std() / math.sqrt(len(square)) / (2 * rmse))
    return {"rmse": rmse, "error": error, "located": 100 * float(np.concatenate(located).mean())}


# ---------------------------------------------------------------------------- the table


def run_symmetric(active: int, reading: str, heads: int, steps: int) -> dict[str, dict]:
    """Compute what is missing of the symmetric fits of a line, by the name of the start."""
    found = {}
    for name in SYMMETRIC:
        found[name] = remember(
            "table2_optimum",
            f"s{active} {reading} R{heads} {name}, {steps} steps",
            lambda name=name: fit_symmetric(active, reading, heads, name, steps),
        )
        print(active, reading, heads, name, f"{found[name]['rmse']:.3f}", flush=True)
    return found


def run_full(active: int, reading: str, heads: int, best: dict, steps: int) -> dict[str, dict]:
    """Compute what is missing of the full fits of a line, by the name of the start."""
    found = {}
    for name in FULL if steps else ():
        found[name] = remember(
            "table2_optimum",
            f"s{active} {reading} R{heads} {name}, {steps} full steps",
            lambda name=name: fit_full(active, reading, name, best, steps),
        )
        print(active, reading, heads, name, f"{found[name]['rmse']:.3f}", flush=True)
    return found


def line(active: int, reading: str, heads: int, found: dict[str, dict]) -> list:
    """Return the best fit beside the published numbers."""
    method = "diagatt-1" if heads == 1 else "diagatt-r"
    printed = {
        c.metric: c.mean
        for c in published("table2")
        if (c.setting, c.method) == (f"table2-s{active}", method)
    }
    best = min(found, key=lambda name: found[name]["rmse"])
    symmetric = sorted(found[name]["rmse"] for name in SYMMETRIC)
    full = ", ".join(f"{name} {found[name]['rmse']:.2f}" for name in FULL if name in found)
    return [
        *(active, reading, heads, f"{found[best]['rmse']:.2f} ± {found[best]['error']:.2f}", best),
        *(f"{symmetric[0]:.2f} to {symmetric[-1]:.2f}", full or "–"),
        *(f"{found[best]['located']:.1f} %", printed["rmse"], f"{printed['crlr']} %"),
    ]


HEAD = (
    *("active rows", "β", "heads", "best RMSE found", "start", f"{len(SYMMETRIC)} symmetric fits"),
    *("full fits", "rows named", "published RMSE", "published CRLR"),
)


def page(rows: list[list], lines: int, steps: int, full_steps: int) -> str:
    """Return the table with what was run and what it does and does not show."""
    return f"""# Table 2: the best that was found for independent quadratic heads

`python -m benchmarks.table2_optimum --steps {steps} --full-steps {full_steps}` minimizes the population risk
of the paper's model on the design of its Table 2 (p = 100, d = 70) with new samples at every step: Adam,
{steps} steps of 400 samples for symmetric fits, {full_steps} steps of 200 samples for full ones; the
script explains both. RMSEs are those of {N_TEST} new samples, with a standard error. "Rows named" is the
share of active rows that some head names. Published numbers with several heads are those of a number of
heads that validation chose; ours have as many heads as rows are active. {len(rows)} of the {lines} lines that
this command asks for are done; "–" stands for full fits that were not run.

{markdown_table(HEAD, rows)}

What it shows: from no start, even those that know β, did the risk fall to the published one, and our
training on 27000 samples ([Table 2](../../results/table2.md)) ends not far above the best that was found.

What it does not show: it is no proof. Every value is an upper bound of the optimum. Another start, more
steps, more heads, or a detail of the published design that we read differently (β, the bold μ, Σ, what
counts as R heads) may explain the difference. We tried, besides, heads with a linear term and up to five
heads in earlier trials; they came somewhat lower, and not to the published values either.
"""  # noqa: E501


def main() -> None:
    """Compute what is missing, print the table and write results/table2_optimum.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=2000, help="of symmetric fits")
    parser.add_argument("--full-steps", type=int, default=1000, help="of full fits; 0 for none")
    parser.add_argument("--active", type=int, nargs="+", default=[2, 3], choices=(2, 3))
    options = parser.parse_args()
    torch.set_num_threads(1)
    lines = [(a, r, h) for a, r in product(options.active, READINGS) for h in (1, a)]
    found: dict[tuple, dict] = {}

    def write() -> str:
        rows = [line(*place, results) for place, results in found.items()]
        text = page(rows, len(lines), options.steps, options.full_steps)
        (FOLDER / "table2_optimum.md").write_text(text, encoding="utf-8")
        return text

    for place in lines:
        found[place] = run_symmetric(*place, options.steps)
        write()
    for place in lines:
        best = min(found[place].values(), key=lambda one: one["rmse"])
        found[place] |= run_full(*place, best, options.full_steps)
        write()
    print(write())


if __name__ == "__main__":
    main()
