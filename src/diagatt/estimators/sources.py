"""Containers of other libraries, such as AnnData, that are passed instead of samples.

What reads a container belongs to its kind of input, which is imported when one is met.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any

#: Modules that read containers, by the package of the container's class or the ending of a file.
#: Each has a function ``opened(X, given, fits)``, a context manager that yields samples and the
#: other arguments.
SOURCES = {"anndata": "diagatt.kinds.cells.source", ".h5ad": "diagatt.kinds.cells.source"}


def from_sources(method: Callable) -> Callable:
    """Let a method of samples take a container, with keyword arguments that say how to read it."""

    @wraps(method)
    def answer(self: Any, X: Any, *args: Any, **given: Any) -> Any:
        is_file = isinstance(X, str | Path)
        home = SOURCES.get(Path(X).suffix if is_file else type(X).__module__.split(".")[0])
        if home is None:
            return method(self, X, *args, **given)
        if args:
            raise TypeError(
                f"with {'a file' if is_file else type(X).__name__}, name every other argument: "
                f'{method.__name__}(adata, sample_key="patient", …).'
            )
        with import_module(home).opened(X, given, method.__name__ == "fit") as (rows, rest):
            return method(self, rows, **rest)

    return answer
