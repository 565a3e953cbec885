"""One self-contained HTML page: data, style and script in one file, and nothing from a network.

Its first lines say what was fitted, to what, and how well it predicts.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import jinja2
import numpy as np
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from diagatt.families import FAMILIES, counts_trials, get_family
from diagatt.files import as_path, write_atomically
from diagatt.kinds import KINDS
from diagatt.kinds.estimator import KindEstimator
from diagatt.metrics import class_scores, concordance, crlr, number_scores
from diagatt.report.encoding import contents, safe_json
from diagatt.report.samples import NEAR, Samples, collect
from diagatt.report.top import DRAWINGS, located_distances, standing_out
from diagatt.stores.reading import opened
from diagatt.tables import percent

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
    place = as_path(path)
    page = render_page(model, X, y, **options)
    write_atomically(place, page.encode("utf-8", "xmlcharrefreplace"))


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
        As in `collect`; X are texts or images if the model is of these, and rows are drawn on them.
    title : str, optional
    feature_names : d names, optional
    **shown
        Texts and spans, images and boxes, ids, true_rows, covariates, exposure and offset, as in
        `collect`.

    Returns
    -------
    str
        At most about 20 MB for ten thousand samples, unless their texts alone are longer: if there
        are too many rows, each sample keeps those with the largest weights.
    """
    check_is_fitted(model)
    if isinstance(model, KindEstimator):
        prepared = model.prepare(X)
        shown = KINDS[model.kind].drawing(prepared) | shown
        model, X = model.estimator_, prepared.rows
    samples = collect(model, X, y, **shown)
    title = title or "Which rows decided?"
    names = _feature_names(model, feature_names)
    drawing = DRAWINGS[samples.kind]
    distances, standout = None, None
    if drawing.names_features:
        distances = located_distances(opened(X), samples.packed_located.ravel())
        standout = standing_out(distances, names)
    top = drawing.top(samples, distances, names)
    style = _asset("page.css")
    script = "".join(_asset(name) for name in _SCRIPTS)
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    return environment.from_string(_asset("page.html.j2")).render(
        title=title,
        facts=model_facts(model, samples),
        metrics=metrics(model, samples),
        verdict=verdict(model),
        has_scores=samples.scores is not None,
        kind=samples.kind,
        numbers=samples.labels is None,
        has_responses=samples.y is not None,
        style=style,
        script=script,
        data=safe_json({"title": title, "top": top, "standout": standout, **contents(samples)}),
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


# ---------------------------------------------------------------------- first lines


def model_facts(model: Any, samples: Samples) -> list[tuple[str, str]]:
    """Return name and value of each fact about the model and the samples."""
    facts = [("estimator", type(model).__name__)]
    if hasattr(model, "summary"):
        summary = model.summary().facts
        facts += [(name, str(summary[name])) for name in ("family", "solver")]
        facts += [("fitted to", _count(summary["samples"], "sample"))]
    heads = _count(samples.weights.shape[1], "head")
    restarts = getattr(model, "n_restarts_", 1)
    facts += [("heads", heads if restarts == 1 else f"{heads}, {restarts} restarts averaged")]
    if getattr(model, "unevenness_", None):
        facts += [("attention (0: even, 1: one row)", f"{np.mean(model.unevenness_):.2f}")]
    lengths = np.diff(samples.offsets)
    low, high = lengths.min(), lengths.max()
    others = "" if low == high else f" to {high:,}, median {np.median(lengths):,.0f}"
    facts += [
        ("shown here", _count(len(samples), "sample")),
        ("rows per sample", f"{low:,}{others}"),
        ("features per row", f"{model.n_features_in_:,}"),
    ]
    if samples.labels is not None:
        facts += [("classes", f"{len(samples.labels):,}")]
    if hasattr(model, "predict_survival_function"):
        facts += [("prediction", "risk score: larger ones mean earlier events")]
    return facts


def metrics(model: Any, samples: Samples) -> list[tuple[str, str, str]]:
    """Return name, value and meaning of each number that says how good the model is here."""
    found: list[tuple[str, str, str]] = []
    if samples.y is not None:
        found += _class_metrics(samples) if samples.labels else _number_metrics(model, samples)
    if samples.times is not None:
        found += _time_metrics(samples)
    labelled = [i for i, rows in enumerate(samples.true_rows or []) if rows]
    if samples.true_rows is not None and labelled:
        rate = crlr([samples.true_rows[i] for i in labelled], samples.located[labelled])
        found += [("Rows found", percent(rate), "CRLR: share of the true rows that were located")]
    sure = percent(1 - samples.ambiguous.mean())
    meaning = "samples in which every head puts at least half of its attention on one row"
    return [*found, ("Unambiguous", sure, meaning)]


def _class_metrics(samples: Samples) -> list[tuple[str, str, str]]:
    assert samples.y is not None
    assert samples.probability is not None
    right = float(np.mean(samples.y == samples.prediction))
    found = [("Accuracy", percent(right), "share of samples whose predicted class is right")]
    if samples.y.max() < samples.probability.shape[1]:  # a class never seen has no probability
        scores = class_scores(samples.y, samples.probability)
        if "auc" in scores:
            meaning = "chance that a sample of a class has a higher probability of it than another"
            found = [("AUC", f"{scores['auc']:.3f}", meaning), *found]
        meaning = "mean log probability of the true class; 0 is best"
        found += [("Log score", _signed(scores["log_score"]), meaning)]
    return found


def _time_metrics(samples: Samples) -> list[tuple[str, str, str]]:
    assert samples.times is not None
    event, ends = np.isfinite(samples.times[:, 2]), samples.times[:, 1]
    found = concordance(event, ends, samples.prediction)
    meaning = "chance that of two samples the one with the earlier event has the larger risk"
    share = ("With the event", percent(event.mean()), "share of samples whose event was seen")
    return ([] if np.isnan(found) else [("Concordance", f"{found:.3f}", meaning)]) + [share]


def _number_metrics(model: Any, samples: Samples) -> list[tuple[str, str, str]]:
    assert samples.y is not None
    assert samples.right is not None
    family = getattr(model, "family", "auto")
    # The page has shares of successes, without the trials of a binomial likelihood.
    family = "gaussian" if family not in FAMILIES or counts_trials(family) else family
    scores = number_scores(samples.y, samples.prediction, family)
    found = [("RMSE", f"{scores['rmse']:.4g}", "root mean squared error")]
    if "r2" in scores:
        found += [("R²", _signed(scores["r2"]), "share of the variance explained")]
    if "log_score" in scores and not get_family(family).is_quadratic:  # the RMSE says all
        meaning = f"mean log-likelihood of the responses, {family}"
        found += [("Log score", _signed(scores["log_score"]), meaning)]
    near = percent(samples.right.mean())
    return [*found, ("Near", near, f"samples predicted within {NEAR:g} RMSE of the response")]


UNTESTED = (
    "Whether single rows matter was not tested: the default solver tests it, and so does "
    "existence_test."
)


def verdict(model: Any) -> tuple[str, str] | None:
    """Return whether there is a row of interest as a word and a sentence, if it attends to rows."""
    found, test = (getattr(model, name, None) for name in ("has_row_of_interest_", "existence_"))
    if found is None:
        return ("untested", UNTESTED) if getattr(model, "unevenness_", None) else None
    result = test if isinstance(test, Mapping) else {}
    p = result.get("p_value")
    because = "" if p is None else " (p < 0.001)" if p < 0.001 else f" (p = {p:.3f})"
    if not found:
        said = f"No row of interest was found{because}"
        return "none", f"{said}: do not read located rows as an answer."
    said = f"A row of interest was found{because}"
    if result.get("n_folds") == 0:  # judged by rows that were found without responses
        said += ": the row that differs from the others explains more than mean rows do"
    elif because or len(getattr(model, "contest_", ())):  # judged by samples that were held out
        said += ": attention to single rows predicts new samples better than mean rows do"
    return "found", f"{said}."


def _signed(number: float) -> str:
    return f"{number:.3f}".replace("-", "−")


def _count(n: int, name: str) -> str:
    return f"{n:,} {name}{'' if n == 1 else 's'}"
