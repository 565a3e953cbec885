"""What the paper does not say about its fits, inferred from its tables.

``python -m benchmarks.unstated mdsp`` prints the early stopping of MDSP that the published numbers
imply, next to the rule in the library; ``two-step`` the number of EM steps after which the mixture
locates as many rows as published; ``diagatt`` the batches that reproduce the gain from n = 9000 to
18000. Each takes minutes; nothing is asserted.
"""

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from diagatt import DiagAttRegressor, simulate
from diagatt.competitors.mdsp import early_rule
from diagatt.families import get_family
from diagatt.localization import N_LOCATED, top_rows
from diagatt.metrics import crlr, rmse
from diagatt.solvers.problem import Samples
from diagatt.studies import published
from diagatt.studies.scenarios import Simulated


def mdsp_rule() -> Table:
    """Compare the T and σ that every published cell implies with those of `early_rule`.

    Ten steps of T/10 from a random start leave (1 − T‖X_i‖²/10)¹⁰ of a response: T follows from
    the published RMSE. σ then follows from the published CRLR, by bisection.
    """
    lines = Table(title="MDSP: asked for by the published RMSE and CRLR, and by rule")
    for name in ("setting", "n", "s", "T·mean‖X‖²", "by rule", "σ", "by rule"):
        lines.add_column(name, justify="left" if name == "setting" else "right")
    numbers = {(c.setting, c.metric): c.mean for c in published() if c.method == "mdsp"}
    for setting in simulate.paper_settings():
        if setting.task == "classification":
            continue
        data = setting.draw(1500, seed=(99, 0))
        y, rows = data.y, data.X.values.reshape(1500, setting.p, setting.d)
        squares = (rows**2).sum(axis=(1, 2), dtype=np.float64)
        noise = np.random.default_rng(0).standard_normal(rows.shape, dtype=np.float32)

        def left(T: float, squares=squares) -> Any:
            return (1 - T * squares / 10) ** 10

        def error(T: float, y=y) -> float:
            return -rmse(y, y - y * left(T))  # rises with T

        T = _bisect(error, -numbers[setting.name, "rmse"], 0.0, 10 / squares.max())
        fitted = (y * (1 - left(T)) / squares).astype(np.float32)[:, None, None] * rows

        def missed(spread: float, data=data, fitted=fitted, noise=noise) -> float:
            norms = np.linalg.norm(fitted + np.float32(spread) * noise, axis=2)
            return -crlr(data.rows, top_rows(norms.ravel(), data.X.offsets, 10))

        spread = _bisect(missed, -numbers[setting.name, "crlr"] / 100, 1e-4, 1e-2, steps=12)
        n = Simulated(setting).parameters("mdsp", 1.0)["setting"]["n"]
        values, offsets = data.X.to_torch()
        response = values.new_tensor(y)
        none = values.new_empty(1500, 0)
        family = get_family("gaussian")
        rule = early_rule(Samples(family, values, offsets, response, response, none))
        by_rule = rule[0] * (1500 / n) ** (1 / 3) * squares.mean()
        cells = (f"{T * squares.mean():.3f}", f"{by_rule:.3f}", f"{spread:.5f}")
        s = np.sqrt(np.mean(y**2))
        sigma = f"{rule[1] * (1500 / n) ** 0.5:.5f}"
        lines.add_row(setting.name, str(n), f"{s:.1f}", *cells, sigma)
    return lines


def _bisect(
    rises: Callable[[float], float], level: float, low: float, high: float, steps: int = 40
) -> float:
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (middle, high) if rises(middle) < level else (low, middle)
    return (low + high) / 2


def mixture_steps(n: int = 2500, draws: int = 3, steps: int = 6) -> Table:
    """Return the CRLR of the ten rows of the better component after each EM step.

    Means over draws, with the standard deviation; the start is scikit-learn's k-means.
    """
    lines = Table(title=f"Two-Step: CRLR % after k EM steps; {draws} draws of {n} samples")
    for name in ("setting", *map(str, range(1, steps + 1)), "published"):
        lines.add_column(name, justify="left" if name == "setting" else "right")
    numbers = {c.setting: c for c in published() if (c.method, c.metric) == ("two-step", "crlr")}
    for name in ("table1-p100-d70", "tableS4-mu3-sigma2-2.5", "table2-s2", "table2-s3"):
        setting = simulate.paper_setting(name)
        rates = np.array([_rates(setting.draw(n, seed=(k, 0)), steps, k) for k in range(draws)])
        cells = [f"{r.mean():.1f} ({r.std(ddof=1):.1f})" for r in rates.T]
        lines.add_row(name, *cells, f"{numbers[name].mean:.1f} ({numbers[name].sd:.1f})")
    return lines


def _rates(data: Any, steps: int, seed: int) -> list[float]:
    mixture = GaussianMixture(2, warm_start=True, max_iter=1, random_state=seed)
    rates = []
    for _ in range(steps):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # one step at a time
            mixture.fit(data.X.values)
        posterior = mixture.predict_proba(data.X.values)  # (N, 2)
        located = [top_rows(posterior[:, c], data.X.offsets, N_LOCATED) for c in range(2)]
        rates.append(100 * max(crlr(data.rows, rows) for rows in located))
    return rates


def batches(seed: int = 0) -> Table:
    """Compare more steps with larger batches in the paper's training with one head."""
    lines = Table(title="DiagAtt, 1 head, the paper's training")
    for name in ("setting", "batch", "epochs", "steps", "RMSE", "published", "CRLR %", "published"):
        lines.add_column(name, justify="left" if name == "setting" else "right")
    numbers = {(c.setting, c.metric): c.mean for c in published() if c.method == "diagatt-1"}
    for table, size, epochs in ((1, 32, 40), ("S2", 32, 40), ("S2", 32, 20), ("S2", 64, 40)):
        name = f"table{table}-p100-d70"
        setting = simulate.paper_setting(name)
        train = setting.draw(setting.n, seed=(seed, 0))
        test = setting.draw(setting.n // 4, seed=(seed, 1))
        model = DiagAttRegressor.preset(
            "paper",
            n_heads=1,
            solver__batch_size=size,
            solver__max_epochs=epochs,
            random_state=seed,
        ).fit(train.X, train.y)
        error = f"{rmse(test.y, model.predict(test.X)):.2f}"
        rate = f"{100 * crlr(test.rows, model.locate(test.X)):.1f}"
        steps = epochs * -(-setting.n // size)
        told = (f"{numbers[name, 'rmse']:.2f}", f"{numbers[name, 'crlr']:.1f}")
        lines.add_row(name, str(size), str(epochs), str(steps), error, told[0], rate, told[1])
    return lines


if __name__ == "__main__":
    tables = {"mdsp": mdsp_rule, "two-step": mixture_steps, "diagatt": batches}
    for asked in sys.argv[1:] or tables:
        Console(width=130).print(tables[asked]())
