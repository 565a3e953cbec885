"""What is compared: a method is a class with `fit` and `predict`, and a name.

Our own methods stand in `diagatt.bench.own`; rivals come from files, see `load_methods`.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Method:
    """A class with what the bench must know about it.

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
    #: Whether rows are standardized on the training part before `fit` sees them.
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
