"""Torch's own settings for the methods of estimators, whatever those of the caller are.

A fit needs gradients, and numbers in the memory of the CPU. A caller may have switched gradients
off (`torch.no_grad`, `torch.inference_mode`), sent new tensors elsewhere
(`torch.set_default_device`) or chosen fewer digits (`torch.autocast`); a model must be the same.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any

import torch


@contextmanager
def own_torch_settings() -> Iterator[None]:
    """Compute with gradients, on the CPU unless a device is named, and with all digits.

    Examples
    --------
    >>> with torch.inference_mode(), own_torch_settings():
    ...     torch.is_grad_enabled()
    True
    """
    with ExitStack() as changed:  # what is as it should be is left alone: a device mode is slow
        if torch.is_inference_mode_enabled():
            changed.enter_context(torch.inference_mode(False))
        if not torch.is_grad_enabled():
            changed.enter_context(torch.enable_grad())
        if torch.get_default_device().type != "cpu":
            changed.enter_context(torch.device("cpu"))
        for kind in ("cpu", "cuda"):
            if torch.is_autocast_enabled(kind):
                changed.enter_context(torch.autocast(kind, enabled=False))
        yield


def give_own_torch_settings(kind: type) -> None:
    """Let the public methods of a class of ours run with `own_torch_settings`."""
    for name in dir(kind):
        method = inspect.getattr_static(kind, name)
        if name.startswith("_") or not inspect.isfunction(method):
            continue
        if method.__module__.startswith("diagatt.") and not hasattr(method, "has_own_settings"):
            setattr(kind, name, _with_own_settings(method))


def _with_own_settings(method: Callable) -> Callable:
    @wraps(method)
    def answer(*args: Any, **given: Any) -> Any:
        with own_torch_settings():
            return method(*args, **given)

    answer.has_own_settings = True  # type: ignore[attr-defined]
    return answer
