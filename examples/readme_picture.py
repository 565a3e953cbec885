"""The picture in the README: where the model looks in six new samples, and how sure it is.

Run ``python examples/readme_picture.py`` to draw docs/images/attention.png again.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from diagatt import DiagAttRegressor, simulate
from diagatt.metrics import crlr, rmse

TARGET = Path(__file__).parent.parent / "docs" / "images" / "attention.png"
FOUND, MISSED, TRUTH = "#1b6ca8", "#c1440e", "#222222"


def draw() -> plt.Figure:
    """Fit to 4500 samples of the paper's first setting, and draw the attention in new ones."""
    setting = simulate.paper_setting("table1-p100-d70")
    train, test = setting.draw(4500, seed=(0, 0)), setting.draw(1125, seed=(0, 1))
    model = DiagAttRegressor(solver="likelihood", random_state=0).fit(train.X, train.y)
    certainty, weights = model.certainty(test.X), model.attention(test.X)
    oracle = test.oracle()
    prediction = model.predict(test.X)

    figure, (left, right) = plt.subplots(
        1, 2, figsize=(10, 4.2), width_ratios=(1.35, 1), layout="constrained"
    )
    sure = np.flatnonzero(certainty.posterior[:, 0] > 0.9)[:3]
    torn = np.flatnonzero(certainty.ambiguous[:, 0])[:3]
    for line, i in enumerate([*sure, *torn]):
        height = 0.85 * weights[i][:, 0]
        base = 5 - line
        right_row = certainty.rows[i, 0] == test.rows[i, 0]
        left.vlines(np.arange(100), base, base + height, color=FOUND if right_row else MISSED, lw=2)
        left.axhline(base, color="0.85", lw=0.8, zorder=0)
        left.plot(test.rows[i, 0], base - 0.1, "^", color=TRUTH, ms=6, clip_on=False)
    left.set(xlim=(-1, 100), ylim=(-0.25, 6), xlabel="row of the sample", yticks=np.arange(6) + 0.3)
    left.set_yticklabels(["torn"] * 3 + ["sure"] * 3)
    left.set_title("attention in six new samples, ▲ the row that decides", fontsize=10)

    hit = certainty.rows[:, 0] == test.rows[:, 0]
    right.plot(test.y[hit], prediction[hit], ".", color=FOUND, ms=3, label="row found")
    right.plot(test.y[~hit], prediction[~hit], ".", color=MISSED, ms=5, label="row missed")
    span = [test.y.min(), test.y.max()]
    right.plot(span, span, color="0.6", lw=1, zorder=0)
    right.set(xlabel="response (never shown)", ylabel="prediction")
    right.set_title(
        f"RMSE {rmse(test.y, prediction):.2f} (oracle {rmse(test.y, oracle.prediction):.2f}), "
        f"rows found {100 * crlr(test.rows, certainty.rows):.1f} % "
        f"({100 * crlr(test.rows, oracle.rows):.1f} %)",
        fontsize=10,
    )
    right.legend(frameon=False, fontsize=9)
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
    return figure


if __name__ == "__main__":
    draw().savefig(TARGET, dpi=130)
