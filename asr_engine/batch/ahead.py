"""Reading on while a model works: for models that compute beside this machine's own cores."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

from asr_engine.errors import CancelledError

CHECK_S: Final = 0.5
"""Between two calls of `check` while nothing has been read."""
T = TypeVar("T")


class ReadAhead(Generic[T]):
    """The items of an iterator, which a thread of its own takes, at most `limit` ahead.

    `check` is called in the thread of the caller, while it waits. What the iterator raises is
    raised to the caller, after the items before it. After `close` the thread has ended; an iterator
    that may take long for an item must call `must_go_on` meanwhile.
    """

    def __init__(self, *, limit: int, check: Callable[[], None]) -> None:
        self._limit = limit
        self._check = check
        self._changed = threading.Condition()
        self._items: deque[T] = deque()
        self._is_closed = False
        self._is_read = False
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None

    def start(self, items: Iterator[T]) -> None:
        self._thread = threading.Thread(target=self._read, args=(items,), name="read-ahead")
        self._thread.start()

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def must_go_on(self) -> None:
        """Raises CancelledError in the reading thread, once nobody wants what it reads."""
        if self._is_closed:
            raise CancelledError

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._items or self._is_read, timeout=CHECK_S)
                if self._items:
                    self._changed.notify_all()
                    return self._items.popleft()
                if self._error is not None:
                    raise self._error
                if self._is_read:
                    raise StopIteration
            self._check()

    def _read(self, items: Iterator[T]) -> None:
        try:
            for item in items:
                with self._changed:
                    self._changed.wait_for(
                        lambda: len(self._items) < self._limit or self._is_closed
                    )
                    self.must_go_on()
                    self._items.append(item)
                    self._changed.notify_all()
        except BaseException as error:  # noqa: BLE001 - it is the caller's, who raises it
            self._error = error
        finally:
            with self._changed:
                self._is_read = True
                self._changed.notify_all()
