"""The methods of the bench: classes with `fit` and `predict`, registered by a name.

Our own are every solver by itself, our competitors and the default (`add_own_methods`); rivals come
from files (`load_methods`).
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import sys
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import diagatt
from diagatt.families import FAMILIES
from diagatt.ragged import RaggedRows
from diagatt.solvers import SOLVERS

#: What we recommend, and what the bench judges.
DEFAULT = "diagatt"
_TUNED = {"ridge": "auto", "selection": 5}


@dataclass(frozen=True)
class Method:
    """A class, and the facts about it that the bench needs.

    The class is called with the task ("binary", "multiclass" or "regression"), the family of the
    response and a seed, as far as its constructor has parameters `task`, `family` and `seed`. It
    has ``fit(X, y)`` and ``predict(X)`` for `RaggedRows` X; classifiers have ``predict_proba``,
    columns in the order of sorted classes. It may have ``locate(X)``, the index of one row per
    sample. ``fit`` may take ``groups``. A class with ``takes_covariates = True`` gets covariates
    in `fit` and in its predictions; for others they are appended to every row.
    """

    name: str
    face: Any  #: The class, or a function that makes an object.
    description: str = ""
    tasks: tuple[str, ...] = ("binary", "multiclass", "regression")
    needs: tuple[str, ...] = ()  #: Modules that must be installed.
    #: Whether rows are standardized by means and spreads of the training part before `fit`.
    standardizes: bool = True
    #: Plain values that results depend on; they and the revision are part of the key.
    settings: dict[str, Any] = field(default_factory=dict)
    revision: int = 1
    #: Larger sets are left out: of a method whose cost grows with the square of rows, or worse.
    most_rows: int | None = None

    def reason_to_skip(self, task: str, n_rows: int = 0) -> str | None:
        """Return why the method cannot be run on a task with this many rows here, or None."""
        if task not in self.tasks:
            return f"not for {task} responses"
        for module in self.needs:
            if importlib.util.find_spec(module) is None:
                return f"{module} is not installed"
        if self.most_rows is not None and n_rows > self.most_rows:
            return f"run on sets of at most {self.most_rows} rows only, for its cost"
        return None

    def make(self, task: str, family: str, seed: int) -> Any:
        """Return an unfitted object."""
        known = {"task": task, "family": family, "seed": seed}
        return self.face(**{k: v for k, v in known.items() if k in _parameters(self.face)})

    def described(self) -> dict[str, Any]:
        """Return what a result depends on."""
        return {
            "settings": self.settings,
            "revision": self.revision,
            "standardizes": self.standardizes,
        }


#: Every method by name.
METHODS: dict[str, Method] = {}


def get_method(name: str) -> Method:
    """Look a method up by name."""
    if name not in METHODS:
        raise ValueError(
            f"unknown method {name!r}: choose among {', '.join(METHODS)}, or name the file of its "
            "class with --rivals."
        )
    return METHODS[name]


def load_methods(place: str | Path) -> list[str]:
    """Register the methods of a Python file, or of all files in a folder, and return their names.

    Every class of a file that has a `name`, `fit` and `predict` is a method. The class attributes
    `tasks`, `needs`, `standardizes`, `settings`, `revision` and `most_rows` are those of `Method`;
    the first line of its docstring is the description.
    """
    path = Path(place)
    files = sorted(path.glob("*.py")) if path.is_dir() else [path]
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist: name a Python file or a folder of them.")
    found = []
    for file in files:
        faces: list[Any] = [held for held in vars(_module(file)).values() if inspect.isclass(held)]
        for face in faces:
            if all(hasattr(face, wanted) for wanted in ("name", "fit", "predict")):
                METHODS[face.name] = _from_class(face)
                found.append(face.name)
    return found


def _from_class(face: Any) -> Method:
    names = ("tasks", "needs", "standardizes", "settings", "revision", "most_rows")
    stated = {name: getattr(face, name) for name in names if hasattr(face, name)}
    description = (inspect.getdoc(face) or "").partition("\n")[0]
    return Method(face.name, face, description, **stated)


def _module(file: Path) -> Any:
    digest = hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:8]
    name = f"diagatt_bench_{file.stem}_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is not a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _parameters(function: Any) -> set[str]:
    return set(inspect.signature(function).parameters)


def accepts(function: Any, name: str) -> bool:
    """Return whether a method's function has a parameter."""
    return name in _parameters(function)


#: Raise a method's number whenever a change of code changes its results: they are run again.
REVISIONS: dict[str, int] = {"diagatt": 4}


class Own:
    """One of our estimators, made for a task; it locates by its own weights."""

    def __init__(
        self, estimator: str, settings: dict[str, Any], task: str, family: str, seed: int
    ) -> None:
        kind = "Regressor" if task == "regression" else "Classifier"
        with_log_link = [name for name, known in FAMILIES.items() if known.has_log_link]
        # A log link must be stated; "auto" chooses by the response otherwise.
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
