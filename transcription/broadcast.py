"""Rare messages to open pages by the channel layer: job progress, rights revoked.

Captions do not go this way (see `transcription.realtime`). A message may be lost: pages refetch.
"""

from __future__ import annotations

from functools import partial
from typing import Literal, TypedDict
from uuid import UUID

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import transaction


class RecordingChanged(TypedDict):
    """Something about a recording is worth a refetch: progress, state, a grown transcript."""

    type: Literal["recording.changed"]
    recording: str


class RightsChanged(TypedDict):
    """Sockets must check their rights again, or close: those of `user`, or of a whole group."""

    type: Literal["rights.changed"]
    user: int | None


def recording_group(recording_id: UUID | str) -> str:
    return f"recording.{recording_id}"


def user_group(user_id: int) -> str:
    return f"user.{user_id}"


def session_group(session_id: UUID | str) -> str:
    """Those who capture or read a live session."""
    return f"session.{session_id}"


def links_group(session_id: UUID | str) -> str:
    """Those who read a live session by a link."""
    return f"links.{session_id}"


def recording_changed_on_commit(recording_id: UUID | str) -> None:
    message: RecordingChanged = {"type": "recording.changed", "recording": str(recording_id)}
    # Robust: what is committed stays done even where the broker is away.
    transaction.on_commit(lambda: _send(recording_group(recording_id), message), robust=True)


def audience_changed_on_commit(thing_id: UUID | str) -> None:
    """Everybody who looks at this recording, or at this live session, must check their rights
    again; a recording has the id of the session that it was."""
    message: RightsChanged = {"type": "rights.changed", "user": None}
    for group in (recording_group(thing_id), session_group(thing_id)):
        transaction.on_commit(partial(_send, group, message), robust=True)


def rights_changed_on_commit(user_id: int) -> None:
    message: RightsChanged = {"type": "rights.changed", "user": user_id}
    transaction.on_commit(lambda: _send(user_group(user_id), message), robust=True)


def links_changed_on_commit(session_id: UUID | str) -> None:
    """Everybody who reads this live session by a link must check it again."""
    message: RightsChanged = {"type": "rights.changed", "user": None}
    transaction.on_commit(lambda: _send(links_group(session_id), message), robust=True)


def _send(group: str, message: RecordingChanged | RightsChanged) -> None:
    async_to_sync(get_channel_layer().group_send)(group, message)
