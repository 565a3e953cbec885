"""One self-contained HTML page that shows what the model saw: open it, mail it, keep it.

>>> from diagatt import DiagAttRegressor, simulate
>>> from diagatt.report import render_page
>>> data = simulate.regression(200, p=6, d=4, mu=(3,), sigma2=(4,), seed=0)
>>> model = DiagAttRegressor(solver="likelihood", random_state=0).fit(data.X, data.y)
>>> page = render_page(model, data.X, data.y, true_rows=data.rows)
>>> page.startswith("<!doctype html>")
True
"""

from diagatt.report.page import render_page, write_page
from diagatt.report.samples import Samples, collect

__all__ = ["Samples", "collect", "render_page", "write_page"]
