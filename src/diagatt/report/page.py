"""One self-contained HTML page: data, style and script in one file, and nothing from a network."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from diagatt.files import write_atomically
from diagatt.ragged import RaggedRows
from diagatt.report.encoding import contents, safe_json
from diagatt.report.facts import metrics, model_facts
from diagatt.report.samples import collect
from diagatt.report.top import DRAWINGS

__all__ = ["render_page", "write_page"]

_SCRIPTS = ("data.js", "tooltip.js", "drawing.js", "sample.js", "list.js", "top.js", "page.js")


def write_page(path: str | os.PathLike, model: Any, X: Any, y: Any = None, **options: Any) -> None:
    """Write the page of `render_page` to a file: whole, or not at all.

    Parameters
    ----------
    path : path
    model, X, y, **options
        As in `render_page`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from diagatt import DiagAttClassifier, simulate
    >>> data = simulate.classification(200, p=6, d=4, seed=0)
    >>> model = DiagAttClassifier(solver="likelihood", random_state=0).fit(data.X, data.y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = pathlib.Path(folder, "page.html")
    ...     write_page(page, model, data.X, data.y, title="What decided?")
    ...     "What decided?" in page.read_text(encoding="utf-8")
    True
    """
    page = render_page(model, X, y, **options)
    write_atomically(Path(path), page.encode("utf-8", "xmlcharrefreplace"))


def render_page(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    title: str | None = None,
    feature_names: Sequence[str] | None = None,
    **shown: Any,
) -> str:
    """Show which rows decided: summary, metrics, top rows, and an explorer of all samples.

    The page is one string of HTML. All text of the data is in one block of escaped JSON and is
    put on the page as text; a content security policy admits the page's own script and style by
    their digests, pictures from the page itself, and nothing else.

    Parameters
    ----------
    model, X, y
        As in `collect`.
    title : str, optional
    feature_names : d names, optional
    **shown
        Texts and spans, images and boxes, ids, true_rows and covariates, as in `collect`.

    Returns
    -------
    str
        At most about 20 MB for ten thousand samples, unless their texts alone are longer: if there
        are too many rows, each sample keeps those with the largest weights.
    """
    check_is_fitted(model)
    samples = collect(model, X, y, **shown)
    title = title or "Which rows decided?"
    names = _feature_names(model, feature_names)
    top = DRAWINGS[samples.kind].top(samples, RaggedRows.coerce(X).values, names)
    style = _asset("page.css")
    script = "".join(_asset(name) for name in _SCRIPTS)
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    return environment.from_string(_asset("page.html.j2")).render(
        title=title,
        facts=model_facts(model, samples),
        metrics=metrics(model, samples),
        kind=samples.kind,
        numbers=samples.labels is None,
        has_responses=samples.y is not None,
        restarts=getattr(model, "n_restarts_", 1),
        style=style,
        script=script,
        data=safe_json({"title": title, "top": top, **contents(samples)}),
        style_digest=_digest(style),
        script_digest=_digest(script),
    )


def _feature_names(model: Any, names: Sequence[str] | None) -> list[str]:
    names = _check_feature_names_in(model) if names is None else names
    if len(names) != model.n_features_in_:
        raise ValueError(
            f"feature_names has {len(names)} entries, rows have {model.n_features_in_} features."
        )
    return [str(name) for name in names]


def _asset(name: str) -> str:
    return files("diagatt.report").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """Return the hash by which a content security policy names an inline element."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
