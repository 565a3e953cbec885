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
from diagatt.report.contents import contents
from diagatt.report.facts import metrics, model_facts
from diagatt.report.packing import safe_json
from diagatt.report.samples import collect
from diagatt.report.top import DRAWINGS

__all__ = ["render_page", "write_page"]

_SCRIPTS = ("data.js", "tooltip.js", "drawing.js", "sample.js", "list.js", "top.js", "page.js")


def write_page(path: str | os.PathLike, model: Any, X: Any, y: Any = None, **payload: Any) -> None:
    """Write the page of `render_page` to a file: whole, or not at all.

    Parameters
    ----------
    path : path
    model, X, y, **payload
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
    page = render_page(model, X, y, **payload)
    write_atomically(Path(path), page.encode("utf-8", "xmlcharrefreplace"))


def render_page(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    texts: Sequence[str] | None = None,
    spans: Sequence[Any] | None = None,
    images: Sequence[Any] | None = None,
    boxes: Sequence[Any] | None = None,
    ids: Sequence[Any] | None = None,
    title: str | None = None,
    covariates: Any = None,
    true_rows: Any = None,
    feature_names: Sequence[str] | None = None,
) -> str:
    """Show which rows decided: summary, metrics, top rows, and an explorer of all samples.

    The page is one string of HTML. All text of the data is in one block of escaped JSON and is
    put on the page as text; a content security policy admits the page's own script and style by
    their digests, pictures from the page itself, and nothing else.

    Parameters
    ----------
    model : fitted estimator with `attention`, `locate` and `predict`
    X : samples
    y : array of shape (n,), optional
        Responses: right and wrong predictions are told apart, and metrics shown.
    texts, spans : n strings, and for each an integer array of shape (p_i, 2); optional
        Row j of a sample is ``text[start:stop]``; an empty span is a row without text.
    images, boxes : n uint8 arrays (h, w) or (h, w, 3), and for each (p_i, 4); optional
        Row j of a sample is the patch (top, left, height, width), in pixels.
    ids : n names of samples, optional
    title : str, optional
    covariates : array of shape (n, q), optional
        If the model was fitted with covariates.
    true_rows : array of shape (n, s), or n collections of row numbers; optional
        Rows known to matter: they are marked, and the localization rate is shown.
    feature_names : d names, optional

    Returns
    -------
    str
        About 20 MB for ten thousand samples at most, unless their texts alone are longer: where
        rows are too many, each sample keeps those with the largest weights.
    """
    check_is_fitted(model)
    if texts is not None and images is not None:
        raise ValueError("a sample is shown as text or as image: pass texts or images, not both.")
    samples = collect(
        model,
        X,
        y,
        texts=texts,
        spans=spans,
        images=images,
        boxes=boxes,
        ids=ids,
        true_rows=true_rows,
        covariates=covariates,
    )
    title = title or "Which rows decided?"
    names = _feature_names(model, feature_names)
    top = DRAWINGS[samples.kind].top(samples, RaggedRows.coerce(X).values, names)
    style = _asset("page.css")
    script = "".join(_asset(name) for name in _SCRIPTS)
    template = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(
        _asset("page.html.j2")
    )
    return template.render(
        title=title,
        facts=model_facts(model, samples),
        metrics=metrics(model, samples),
        kind=samples.kind,
        numbers=samples.labels is None,
        known=samples.y is not None,
        restarts=getattr(model, "n_restarts_", 1),
        style=style,
        script=script,
        data=safe_json({"title": title, "top": top, **contents(samples)}),
        style_digest=_digest(style),
        script_digest=_digest(script),
    )


def _feature_names(model: Any, names: Sequence[str] | None) -> list[str]:
    if names is None:
        return [str(name) for name in _check_feature_names_in(model)]
    if len(names) != model.n_features_in_:
        raise ValueError(
            f"feature_names has {len(names)} entries, rows have {model.n_features_in_} features."
        )
    return [str(name) for name in names]


def _asset(name: str) -> str:
    return files("diagatt.report").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """What a content security policy calls the hash of an inline element."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
