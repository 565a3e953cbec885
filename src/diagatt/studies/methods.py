"""The methods of the paper's tables, tuned as supplement S7.2 says, and ours next to them.

The paper's own methods are group lasso, MDSP, Two-Step, and standard and diagonalized attention
with one head and with R heads chosen on a held-out eighth. Beside them stand our default DiagAtt,
mean-pooled regression, gated attention, and the Bayes oracle, which is not fitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import diagatt
from diagatt.solvers import Gradient

#: Methods that the paper's tables list, in their order.
PAPER_METHODS = (
    *("grouplasso", "mdsp", "two-step", "stdatt-1", "stdatt-r", "diagatt-1", "diagatt-r"),
)
#: What they are compared with.
OURS = ("diagatt", "pooled", "gated")
ORACLE = "oracle"


@dataclass(frozen=True)
class Method:
    """An estimator with its settings.

    `settings` are plain values that JSON can hold: they are part of the key of every result, so
    that the code of estimators may change without changing any key. ``"n_heads": "active"`` means
    as many heads as there are active rows, ``"tried"`` the counts of heads that the scenario tries;
    "preset" names a preset of the estimator.
    """

    estimator: str | None  #: "Pooled" for PooledRegressor and PooledClassifier; None: the oracle.
    settings: Mapping[str, Any]
    #: Raise it by one whenever a change of code changes the method's results: results of other
    #: revisions no longer count, and the next run replaces them.
    revision: int = 1

    def described(
        self, n_active: int = 1, heads_tried: Sequence[int] = (1, 2, 3), **changed: Any
    ) -> dict[str, Any]:
        """Return what a result depends on: settings, changes by a scenario, and the revision.

        Examples
        --------
        >>> METHODS["diagatt-r"].described(batch_size=64)
        {'settings': {'preset': 'paper', 'n_heads': [1, 2, 3], 'batch_size': 64}, 'revision': 1}
        """
        settings = {**self.settings, **changed}
        heads = {"active": n_active, "tried": list(heads_tried)}
        if isinstance(named := settings.get("n_heads"), str):
            settings["n_heads"] = heads[named]
        return {"settings": settings, "revision": self.revision}


_UNPENALIZED = {"ridge": 0.0, "score_ridge": 0.0}  # as the paper trains standard attention

#: Every method by name.
METHODS: dict[str, Method] = {
    "grouplasso": Method("GroupLasso", {"alpha": "auto"}),
    "mdsp": Method("MDSP", {"preset": "stopped", "alpha": "auto"}),
    "two-step": Method("TwoStep", {"ridge": "auto"}),
    "stdatt-1": Method("StdAtt", {"n_heads": 1, **_UNPENALIZED}),
    "stdatt-r": Method("StdAtt", {"n_heads": "tried", **_UNPENALIZED}),
    "diagatt-1": Method("DiagAtt", {"preset": "paper", "n_heads": 1}),
    "diagatt-r": Method("DiagAtt", {"preset": "paper", "n_heads": "tried"}),
    "diagatt": Method("DiagAtt", {"n_heads": "active"}),
    "diagatt-contextual": Method("DiagAtt", {"n_heads": "active", "score_form": "contextual"}),
    "pooled": Method("Pooled", {"ridge": "auto"}),
    "gated": Method("GatedAttention", {"max_epochs": "auto"}),
    ORACLE: Method(None, {}),
}


def make_estimator(method: str, *, classifies: bool, seed: int = 0, **described: Any) -> Any:
    """Return an unfitted estimator of a method.

    Parameters
    ----------
    method : str
        A name in `METHODS` other than the oracle's.
    classifies : bool
    seed : int
    **described
        As in `Method.described`: active rows per sample, counts of heads to try, and settings
        other than the method's own.

    Examples
    --------
    >>> make_estimator("diagatt-r", classifies=False).n_heads
    [1, 2, 3]
    """
    if method not in METHODS or METHODS[method].estimator is None:
        raise ValueError(f"unknown method {method!r}: choose among {list(METHODS)}.")
    kind = "Classifier" if classifies else "Regressor"
    face = getattr(diagatt, f"{METHODS[method].estimator}{kind}")
    settings = METHODS[method].described(**described)["settings"]
    preset = settings.pop("preset", None)
    if preset is None:
        model = face(**settings)
    elif preset == "stopped":
        model = face.stopped(**settings)
    else:  # plain names in the key; some are parameters of the solver
        names = {name: f"solver__{name}" if name in Gradient.rules else name for name in settings}
        model = face.preset(preset, **{names[name]: value for name, value in settings.items()})
    return model.set_params(random_state=seed)
