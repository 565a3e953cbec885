"""Communication between processes: all-reduce of sums, and broadcast from process 0.

Under ``torchrun``, or after ``torch.distributed.init_process_group``, each process reads its own
shards, and only small sums are exchanged. All processes then hold the same numbers, so they take
the same decisions. A single process exchanges nothing.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


@dataclass
class Group:
    """The processes that work together, as seen from one of them.

    Attributes
    ----------
    rank, size : int
        Index of this process, and the number of processes.
    reductions, traffic : int
        Number of all-reduces of sums, and their total size in bytes.
    exchanged : int
        Total size in bytes of the samples that processes read in parts and merged.

    Examples
    --------
    >>> Group().add([torch.ones(2)])
    [tensor([1., 1.], dtype=torch.float64)]
    """

    rank: int = 0
    size: int = 1
    reductions: int = 0
    traffic: int = 0
    exchanged: int = 0

    def add(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return the sums of the tensors over all processes, in float64; equal in every process."""
        flat = torch.cat([t.detach().double().flatten() for t in tensors])
        self.reductions += 1
        self.traffic += flat.numel() * flat.element_size()
        if self.size > 1:
            dist.all_reduce(flat)
        return _shaped(flat, tensors)

    def merge(self, tensor: Tensor) -> Tensor:
        """Add up, in place, a tensor of which each process filled a part and left the rest 0."""
        self.exchanged += tensor.numel() * tensor.element_size()
        if self.size > 1:
            dist.all_reduce(tensor)
        return tensor

    def agree(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return the tensors of process 0; the other processes pass tensors of the same shapes."""
        flat = torch.cat([t.detach().double().flatten() for t in tensors])
        if self.size > 1:
            dist.broadcast(flat, src=0)
        return _shaped(flat, tensors)

    def share(self, content: bytes | None) -> bytes | None:
        """Return the bytes that process 0 passes (or None) in every process."""
        if self.size == 1:
            return content
        device = "cuda" if dist.get_backend() == "nccl" else "cpu"
        length = torch.tensor([-1 if content is None else len(content)], device=device)
        dist.broadcast(length, src=0)
        if int(length) < 0:
            return None
        buffer = torch.empty(int(length), dtype=torch.uint8, device=device)
        if self.rank == 0:
            buffer.copy_(torch.frombuffer(bytearray(content or b""), dtype=torch.uint8))
        dist.broadcast(buffer, src=0)
        return buffer.cpu().numpy().tobytes()


def _shaped(flat: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    parts = flat.split([t.numel() for t in like])
    return [part.reshape(t.shape) for part, t in zip(parts, like, strict=True)]


def current_group() -> Group:
    """Return the process group of ``torch.distributed``, or a group of one process."""
    if dist.is_available() and dist.is_initialized():
        return Group(dist.get_rank(), dist.get_world_size())
    return Group()


@contextmanager
def joined(device: str = "cpu") -> Iterator[Group]:
    """Join the processes that ``torchrun`` started, for the duration of the block.

    They communicate through gloo on the CPU and through nccl on graphics cards. Without torchrun
    there is one process and nothing to join.
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ or dist.is_initialized():
        yield current_group()
        return
    on_card = torch.device(device).type == "cuda"
    if on_card:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    # torch.optim imports this module when it is first used. If that happened inside the block, its
    # default arguments would keep the group alive, whose threads can abort the process at exit.
    importlib.import_module("torch.distributed.nn.functional")
    dist.init_process_group(
        "nccl" if on_card else "gloo", store=_store_of_this_attempt(), rank=rank, world_size=size
    )
    try:
        yield current_group()
        dist.barrier()  # no process leaves while another still needs it
    finally:
        dist.destroy_process_group()


class Job:
    """What this process of a ``torchrun`` job did before torchrun restarted it."""

    def __init__(self) -> None:
        self._store = _store_of_torchrun()
        self._rank = os.environ["RANK"]

    def has_passed(self, step: str) -> bool:
        """Return whether an earlier attempt noted that it passed a step."""
        return bool(self._store.check([self._key(step)]))

    def note_passed(self, step: str) -> None:
        """Note that this attempt passed a step."""
        self._store.set(self._key(step), b"1")

    def _key(self, step: str) -> str:
        return f"diagatt-passed-{step}-{self._rank}"


def _store_of_torchrun() -> Any:
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    return dist.TCPStore(address, port, is_master=False)  # type: ignore[attr-defined]


def _store_of_this_attempt() -> Any:
    """Return torchrun's store, in which processes find each other, under a prefix of its own.

    When torchrun restarts processes it keeps the store and the addresses of the dead ones in it:
    without the prefix, the new processes would wait for those.
    """
    name = f"diagatt-{os.environ['TORCHELASTIC_RESTART_COUNT']}"
    return dist.PrefixStore(name, _store_of_torchrun())  # type: ignore[attr-defined]
