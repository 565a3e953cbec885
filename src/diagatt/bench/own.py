"""Our own methods: every solver by itself, our competitors, and the default."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import diagatt
from diagatt.bench.methods import METHODS, Method, accepts
from diagatt.families import FAMILIES
from diagatt.ragged import RaggedRows
from diagatt.solvers import SOLVERS

#: What we recommend, and what the bench judges.
DEFAULT = "diagatt"
#: Raise a method's number whenever a change of code changes its results: they are run again.
REVISIONS: dict[str, int] = {"diagatt": 3}
_TUNED = {"ridge": "auto", "selection": 5}


class Own:
    """One of our estimators, made for a task; it locates by its own weights."""

    def __init__(
        self, estimator: str, settings: dict[str, Any], task: str, family: str, seed: int
    ) -> None:
        kind = "Regressor" if task == "regression" else "Classifier"
        with_log_link = [name for name, known in FAMILIES.items() if known.has_log_link]
        # A log link is asked for; "auto" finds out about other responses.
        stated = {"family": family} if family in with_log_link else {}
        face = getattr(diagatt, f"{estimator}{kind}")
        self.model = face(**settings, **stated, random_state=seed)
        self.takes_covariates = accepts(self.model.fit, "covariates")

    def fit(self, X: RaggedRows, y: np.ndarray, groups: Any = None, covariates: Any = None) -> None:
        """Fit the estimator; groups and covariates reach those that take them."""
        known = {"groups": groups, "covariates": covariates}
        self.model.fit(X, y, **{k: v for k, v in known.items() if accepts(self.model.fit, k)})

    def predict(self, X: RaggedRows, covariates: Any = None) -> np.ndarray:
        """Return classes or expected responses."""
        return self.model.predict(X, covariates=covariates)

    def predict_proba(self, X: RaggedRows, covariates: Any = None) -> np.ndarray:
        """Return class probabilities."""
        return self.model.predict_proba(X, covariates=covariates)

    def locate(self, X: RaggedRows) -> np.ndarray:
        """Return the row of interest of the first head."""
        return np.asarray(self.model.locate(X))[:, 0]


def add_own_methods() -> list[str]:
    """Register our methods, one of them per solver that is registered now; return their names.

    The default gets rows as they are given, because it prepares them itself; single solvers and
    competitors get standardized rows, as rivals do. The default comes last.
    """
    solvers = sorted(set(SOLVERS) - {"auto"})
    listed: list[tuple[str, str, str, dict[str, Any]]] = [
        *((f"{DEFAULT}-{s}", "DiagAtt", f"DiagAtt, solver {s}", {"solver": s}) for s in solvers),
        ("gated", "GatedAttention", "our gated attention, defaults", {}),
        ("pooled", "Pooled", "our mean pooling, ridge by 5 folds", _TUNED),
        (DEFAULT, "DiagAtt", "our default, rows as they are given", {}),
    ]
    for name, estimator, description, settings in listed:
        METHODS[name] = Method(
            name,
            partial(Own, estimator, settings),
            description,
            standardizes=name != DEFAULT,
            settings=settings,
            revision=REVISIONS.get(name, 1),
        )
    return [name for name, *_ in listed]
