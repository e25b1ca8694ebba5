"""The fixed pool of places: how many streams the engine takes, and which it has."""

from __future__ import annotations

from asr_engine.errors import NoFreeSlotError


class SlotPool:
    """Counts streams against a capacity that never changes, so that memory never grows."""

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError("an engine needs at least one slot")
        self.capacity = capacity
        self._taken: set[str] = set()

    @property
    def free(self) -> int:
        return self.capacity - len(self._taken)

    def take(self, stream: str) -> None:
        """Raises NoFreeSlotError when every slot is taken."""
        if self.free == 0:
            raise NoFreeSlotError
        self._taken.add(stream)

    def give_back(self, stream: str) -> None:
        """Harmless for a stream that holds no slot."""
        self._taken.discard(stream)
