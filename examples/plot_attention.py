"""
What a model saw
================

This example draws every figure of ``diagatt.plots`` for one simulated data set, in which two rows
of each sample decide its response. Run ``python examples/plot_attention.py attention.html`` to also
write the page that shows every sample.
"""

import re
import sys

import matplotlib.pyplot as plt

from diagatt import DiagAttRegressor, plots, simulate
from diagatt.report import write_page

# %%
# Fit to 1500 samples of 15 rows, and look at 300 new ones.
train = simulate.regression(1500, p=15, d=15, mu=(4, 3), sigma2=(4, 3), seed=0)
test = train.draw(300, seed=1)
model = DiagAttRegressor(n_heads=2, solver="likelihood", random_state=0).fit(train.X, train.y)
weights, located = model.attention(test.X), model.locate(test.X)

# %%
# One sample: the weight of every row in both heads, and the rows with the most weight.
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3), layout="constrained")
plots.attention(weights[0], true_rows=test.rows[0], ax=left)
plots.top_rows(weights[0], most=5, ax=right)

# %%
# All samples: scores of active rows against the rest, predictions against responses.
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
plots.scores(model.scores(test.X), test.rows, ax=left)
found = [set(a) == set(b) for a, b in zip(test.rows, located, strict=True)]
plots.observed_predicted(test.y, model.predict(test.X), found=found, ax=right)

# %%
# The fit itself: coefficients with intervals, training, and whether the heads differ.
figure, axes = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
plots.coefficients(model.summary(), ax=axes[0])
plots.history(model.history_, ax=axes[1])
plots.heads(weights, ax=axes[2])

# %%
# A text with its words shaded, and an image with its patches: rows of other kinds.
figure, (left, right) = plt.subplots(
    1, 2, figsize=(10, 2.4), width_ratios=(2, 1), layout="constrained"
)
text = "The plot is thin, but the acting is simply wonderful."
spans = [match.span() for match in re.finditer(r"\w+", text)]
plots.words(text, spans, [0.01, 0.02, 0.01, 0.15, 0.01, 0.01, 0.05, 0.01, 0.03, 0.7], ax=left)
picture = [[0, 0, 90, 90], [0, 0, 90, 255], [30, 30, 0, 0], [30, 30, 0, 0]]
boxes = [(0, 0, 2, 2), (0, 2, 2, 2), (2, 0, 2, 2), (2, 2, 2, 2)]
plots.patches(picture, boxes, [0.05, 0.8, 0.1, 0.05], true_rows=[1], ax=right)

# %%
# Write the page.
if __name__ == "__main__" and len(sys.argv) == 2:
    write_page(sys.argv[1], model, test.X, test.y, true_rows=test.rows)
