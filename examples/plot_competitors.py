"""
Against the competitors
=======================

Several methods with the same interface are fitted to one data set. How well does each predict, and
how often does it name the row that decides? (In the paper's tables competitors may name ten rows.)
"""

# %%
# One row of each sample decides; its variance is four times that of the other 29.

import matplotlib.pyplot as plt

from diagatt import DiagAttRegressor, PooledRegressor, StdAttRegressor, TwoStepRegressor, simulate
from diagatt.metrics import crlr, rmse

train = simulate.regression(800, p=30, d=10, mu=(3,), sigma2=(4,), seed=0)
test = train.draw(400, seed=1)
methods = {
    "DiagAtt": DiagAttRegressor(solver="likelihood", random_state=0),
    "StdAtt": StdAttRegressor(optimizer="adam", n_located=1, random_state=0),
    "Two-Step": TwoStepRegressor(n_located=1, random_state=0),
    "pooled rows": PooledRegressor("mean+max", n_located=1, random_state=0),
}

# %%
# The Bayes oracle knows every parameter; no method does better on average.

oracle = test.oracle()
scores = {"oracle": (rmse(test.y, oracle.prediction), crlr(test.rows, oracle.rows))}
for name, model in methods.items():
    model.fit(train.X, train.y)
    scores[name] = rmse(test.y, model.predict(test.X)), crlr(test.rows, model.locate(test.X))
for name, (error, found) in scores.items():
    print(f"{name:12s} RMSE {error:5.2f}   rows found {100 * found:5.1f} %")

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 2.8), sharey=True, layout="constrained")
names = list(scores)[::-1]
left.barh(names, [scores[name][0] for name in names], color="#1b6ca8")
left.set_xlabel("RMSE, smaller is better")
right.barh(names, [100 * scores[name][1] for name in names], color="#1b6ca8")
right.set_xlabel("rows found (%)")
