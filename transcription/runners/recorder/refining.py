"""Wakes a worker for utterances that the second pass has yet to hear."""

from __future__ import annotations

from redis import Redis

from transcription.queue import Task, wake_on_commit
from transcription.services import live_refinement
from transcription.services.live_refinement import ASKED_KEY, ASKED_S
from webapp.config import site_settings


class RefineRequests:
    """Used by the recorder's loop alone. What it asks for is no more than a wake-up: the worker
    looks for itself at what waits, and leaves what is not on disk. A busy worker finds one message
    when it comes to look, not hundreds."""

    def __init__(self, broker: Redis) -> None:
        self._broker = broker
        self._closed: set[str] = set()
        """Sessions with finals since their last sync."""
        self._is_due = False

    def note_final(self, session_id: str) -> None:
        self._closed.add(session_id)

    def note_sync(self, session_id: str) -> None:
        self._is_due |= session_id in self._closed
        self._closed.discard(session_id)

    def ask(self, *, again: bool) -> None:
        """Send the wake-up, where there is news, or (`again`) while anything waits. Raises
        RedisError."""
        if site_settings().live_refine == "off":
            return
        if self._is_due or (again and live_refinement.has_due()):
            self._is_due = False
            if self._broker.set(ASKED_KEY, "1", nx=True, ex=ASKED_S):
                wake_on_commit(Task.REFINE_LIVE, expires_s=ASKED_S)

    def forget(self, session_id: str) -> None:
        self._closed.discard(session_id)
