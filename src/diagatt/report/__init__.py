"""What the model saw, on one page: a self-contained HTML file to look at, mail and keep.

>>> from diagatt import DiagAttRegressor, simulate
>>> from diagatt.report import render_page
>>> data = simulate.regression(200, p=6, d=4, mu=(3,), sigma2=(4,), seed=0)
>>> model = DiagAttRegressor(solver="likelihood", random_state=0).fit(data.X, data.y)
>>> page = render_page(model, data.X, data.y, true_rows=data.rows)
>>> page.startswith("<!doctype html>")
True
"""

from diagatt.report.notebook import estimator_html
from diagatt.report.page import render_page, write_page
from diagatt.report.samples import Samples, collect

__all__ = ["Samples", "collect", "estimator_html", "render_page", "write_page"]
