"""Reading the next parts of a store while the present one is in use."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def read_ahead(load: Callable[[int], T], order: Sequence[int], ahead: int) -> Iterator[T]:
    """Yield ``load(k)`` for k in order, while a thread loads the next `ahead` of them.

    Nothing that was yielded is kept. An error of the thread is raised here. Closing the generator
    ends the thread.
    """
    pool = ThreadPoolExecutor(1, thread_name_prefix="diagatt-read-ahead")
    waiting: deque[Future[T]] = deque()
    try:
        for k in order:
            waiting.append(pool.submit(load, k))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
