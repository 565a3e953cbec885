"""``diagatt info``: what a model file says of itself, read without building the model.

A model is a JSON document and tensors; nothing here needs torch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diagatt.commands import input_facts, options
from diagatt.commands.messages import NOT_TESTED

if TYPE_CHECKING:
    import numpy as np

    Tensors = Mapping[str, np.ndarray]
    Document = Mapping[str, Any]

MOST = 12  # coefficients that are shown, largest first
_NONSENSE = (AttributeError, IndexError, KeyError, TypeError, ValueError)


def info(
    model: options.Model,
    all: Annotated[bool, typer.Option("--all", help="Show every coefficient.")] = False,
) -> None:
    """Say what a model file holds: data, family, settings, how it was found, coefficients.

    Coefficients are shown largest first; of several fits that are blended, those of one.

    Example: `diagatt info m.safetensors`
    """
    from diagatt import modelfile

    if not model.exists():
        raise FileNotFoundError(f"{model} does not exist.")
    tensors, document = modelfile.read(model)
    try:
        facts, lines = _facts(tensors, document), list(_coefficients(tensors, document))
    except _NONSENSE as error:
        raise modelfile.ModelFileError(
            f"{model} is damaged: its document is not that of a model ({error!r})."
        ) from error
    _show(str(model), facts, lines, len(lines) if all else MOST)


def _show(name: str, facts: dict[str, str], lines: list[tuple], most: int) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    input_facts.show(console, name, facts)
    if not lines:
        return
    shown = sorted(lines, key=lambda line: -abs(line[2]))[:most]
    has_se = any(math.isfinite(line[3]) for line in shown)
    head = ["", "coefficient of", "estimate", *(["std. error"] if has_se else [])]
    table = Table(*head, box=None, padding=(0, 2, 0, 0))
    for where, what, estimate, se in shown:
        table.add_row(where, what, f"{estimate:.4g}", *([_number(se)] if has_se else []))
    console.print()
    console.print(table, markup=False)
    if len(lines) > len(shown):
        console.print(f"{len(lines) - len(shown)} smaller ones are not shown: pass --all.")


def _number(value: float) -> str:
    return f"{value:.3g}" if math.isfinite(value) else "–"


def _facts(tensors: Tensors, document: Document) -> dict[str, str]:
    """Return what the document says, in the order in which it is shown."""
    inner = document.get("estimator", document)
    members = inner.get("members") or []
    nested = [m for m in members if "fitted" in m]  # members that are estimators themselves
    fits = nested or [inner]
    classes = _list(tensors, inner, "classes_")
    blend = f" of {len(members)} members" if len(members) > 1 else ""
    facts = {"model": document["class"] + ("" if inner is not document else blend)}
    if inner is not document:
        facts["estimator"] = inner["class"] + blend
        facts |= _rows(document.get("rows"))
    facts |= {
        "family": _family(len(classes), fits),
        **({"classes": ", ".join(str(c) for c in classes)} if len(classes) else {}),
        "samples": _joined(fits, "n_samples_"),
        "features": _features(tensors, inner, fits),
        "heads": _joined(fits, "n_heads_"),
        "solver": _joined(fits, "solver_"),
        "row of interest": _found(fits),
    }
    settings = inner["parameters"]
    kept: tuple[str, ...] = ("score_form", "coupling", "ridge", "random_state")
    kept += ("missing",) if settings.get("missing", "refuse") != "refuse" else ()
    facts["settings"] = ", ".join(f"{n} = {settings[n]}" for n in kept if n in settings) or "–"
    for name, value in (document.get("columns") or {}).items():
        if value:
            facts[f"--{name}"] = _listed(value)
    from diagatt import __version__

    facts["written by"] = f"diagatt {document['diagatt']}, format {document['format']}"
    facts["read by"] = f"diagatt {__version__}"
    return facts


def _rows(rows: Any) -> dict[str, str]:
    """Return how texts or images become rows."""
    parameters = (rows or {}).get("parameters", {})
    if "model" not in parameters:
        return {}
    layers = parameters.get("layers")
    return {"language model": f"{parameters['model']}, layers {layers}"}


def _family(classes: int, fits: list) -> str:
    name = fits[0]["parameters"].get("family", "auto")
    if name != "auto":
        return str(name)
    return "gaussian" if not classes else "bernoulli" if classes == 2 else "multinomial"


def _found(fits: list) -> str:
    answers = {fit["fitted"].get("has_row_of_interest_") for fit in fits}
    if answers == {None}:
        attends = any(fit["fitted"].get("unevenness_") for fit in fits)
        return NOT_TESTED if attends else "–"
    return "found" if True in answers else "none was found: do not read located rows as an answer"


def _features(tensors: Tensors, inner: Document, fits: list) -> str:
    count = inner["fitted"].get("n_features_in_", fits[0]["fitted"].get("n_features_in_"))
    names = _list(tensors, inner, "feature_names_in_")
    return f"{count}: {_listed(names)}" if names else str(count)


def _list(tensors: Tensors, document: Document, name: str) -> list:
    """Return a fitted array, which stands in the document or among the tensors; [] without it."""
    if name in tensors:
        return tensors[name].tolist()
    stored = document["fitted"].get(name) or []
    return list(stored["array"] if isinstance(stored, Mapping) else stored)


def _joined(fits: list, name: str) -> str:
    return ", ".join(dict.fromkeys(str(fit["fitted"].get(name, "–")) for fit in fits))


def _listed(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {_listed(levels)}" for name, levels in value.items())
    return input_facts.some([str(word) for word in value])


def _coefficients(tensors: Tensors, document: Document) -> Iterator[tuple[str, str, float, float]]:
    """Yield head, name, estimate and standard error of every coefficient, if there are values."""
    import numpy as np

    inner = document.get("estimator", document)
    value = tensors.get("value_")
    if value is None or "covariate_coef_" not in tensors:  # another method
        return
    d = inner["fitted"]["n_features_in_"]
    features = _list(tensors, inner, "feature_names_in_") or [f"x{j}" for j in range(d)]
    classes = _list(tensors, inner, "classes_")
    K = max(np.size(tensors["intercept_"]), 1)
    labels = [""] if K == 1 else [f" {c}" for c in classes]
    value = value.reshape(-1, K, d)
    Z = np.reshape(tensors["covariate_coef_"], (K, -1))
    named = _list(tensors, inner, "covariate_names_in_") or [
        f"covariate {j}" for j in range(Z.shape[1])
    ]
    count = len(value) * d + 1 + Z.shape[1]
    se = tensors.get("value_se_")
    errors = np.full(count, np.nan) if K > 1 or se is None else np.reshape(se, count)
    for k, label in enumerate(labels):
        where = [(f"head {r}{label}", x) for r in range(len(value)) for x in features]
        where += [(f"shared{label}", name) for name in ("intercept", *named)]
        estimates = [*value[:, k].ravel(), np.reshape(tensors["intercept_"], K)[k], *Z[k]]
        for (head, name), estimate, error in zip(where, estimates, errors, strict=True):
            yield head, str(name), float(estimate), float(error)
