"""The methods of the paper's tables, tuned as supplement S7.2 says, and ours beside them.

Paper's own: group lasso, MDSP, Two-Step, standard and diagonalized attention with one head and
with R heads chosen on a held-out eighth. Beside them: our default DiagAtt, mean-pooled
regression, gated attention, and the Bayes oracle, which is not fitted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from diagatt.competitors import (
    GroupLassoClassifier,
    GroupLassoRegressor,
    MDSPClassifier,
    MDSPRegressor,
    StdAttClassifier,
    StdAttRegressor,
    TwoStepClassifier,
    TwoStepRegressor,
)
from diagatt.estimators import (
    DiagAttClassifier,
    DiagAttRegressor,
    GatedAttentionClassifier,
    GatedAttentionRegressor,
    PooledClassifier,
    PooledRegressor,
)

__all__ = ["ORACLE", "OURS", "PAPER_METHODS", "make_estimator"]

#: Methods that the paper's tables list, in their order.
PAPER_METHODS = (
    *("grouplasso", "mdsp", "two-step", "stdatt-1", "stdatt-r", "diagatt-1", "diagatt-r"),
)
#: What we set beside them.
OURS = ("diagatt", "pooled", "gated")
ORACLE = "oracle"

# (regressor, classifier) of every method.
_FACES: dict[str, tuple[Any, Any]] = {
    "grouplasso": (GroupLassoRegressor, GroupLassoClassifier),
    "mdsp": (MDSPRegressor, MDSPClassifier),
    "two-step": (TwoStepRegressor, TwoStepClassifier),
    "stdatt": (StdAttRegressor, StdAttClassifier),
    "diagatt": (DiagAttRegressor, DiagAttClassifier),
    "pooled": (PooledRegressor, PooledClassifier),
    "gated": (GatedAttentionRegressor, GatedAttentionClassifier),
}
_UNPENALIZED = {"ridge": 0.0, "score_ridge": 0.0}  # as the paper trains standard attention


def make_estimator(
    method: str,
    *,
    classifies: bool,
    n_active: int = 1,
    heads_tried: Sequence[int] = (1, 2, 3),
    seed: int = 0,
) -> Any:
    """Return an unfitted estimator of a method.

    Parameters
    ----------
    method : str
        One of `PAPER_METHODS`, `OURS`, or "diagatt-contextual".
    classifies : bool
    n_active : int
        Active rows a sample, s: the number of heads of our default.
    heads_tried : sequence of int
        What "R heads" are chosen from.
    seed : int

    Examples
    --------
    >>> make_estimator("diagatt-r", classifies=False).n_heads
    [1, 2, 3]
    """
    heads = list(heads_tried)
    builders: dict[str, Callable[[], Any]] = {
        "grouplasso": lambda: _face("grouplasso", classifies)("auto"),
        "mdsp": lambda: _face("mdsp", classifies).stopped(alpha="auto"),
        "two-step": lambda: _face("two-step", classifies)("auto"),
        "stdatt-1": lambda: _face("stdatt", classifies)(1, **_UNPENALIZED),
        "stdatt-r": lambda: _face("stdatt", classifies)(heads, **_UNPENALIZED),
        "diagatt-1": lambda: _face("diagatt", classifies).preset("paper", n_heads=1),
        "diagatt-r": lambda: _face("diagatt", classifies).preset("paper", n_heads=heads),
        "diagatt": lambda: _face("diagatt", classifies)(n_active),
        "diagatt-contextual": lambda: _face("diagatt", classifies)(
            n_active, score_form="contextual"
        ),
        "pooled": lambda: _face("pooled", classifies)(ridge="auto"),
        "gated": lambda: _face("gated", classifies)(max_epochs="auto"),
    }
    if method not in builders:
        raise ValueError(f"unknown method {method!r}: choose among {[*builders, ORACLE]}.")
    return builders[method]().set_params(random_state=seed)


def _face(name: str, classifies: bool) -> Any:
    return _FACES[name][int(classifies)]
