"""What is left of things that ended: their bytes on disk and their keys on the servers.

A row goes first, and in the same transaction it is written down here that its bytes and keys have
to follow. They are removed after the commit, and again by every purge until nothing is left, so a
process may be killed at any point.
"""

from __future__ import annotations

from uuid import UUID

import redis
import structlog
from django.conf import settings
from django.db import DatabaseError

from asr_engine.protocol import (
    SESSIONS_KEY,
    audio_key,
    capture_key,
    session_key,
    whole_key,
    writer_key,
)
from transcription.models import Remains
from transcription.services import storage
from transcription.services.readers import readers_key

log = structlog.get_logger(__name__)


def leave_remains(thing_id: UUID) -> None:
    """Inside the transaction that ends a thing, or takes its audio: the rest is to follow."""
    Remains.objects.bulk_create([Remains(id=thing_id)], ignore_conflicts=True)


def remove_remains(*thing_ids: UUID) -> int:
    """Remove what is left of `thing_ids`, or of everything; how many are gone altogether.

    After the commit. What cannot be removed now stays written down.
    """
    remains = Remains.objects.filter(id__in=thing_ids) if thing_ids else Remains.objects.all()
    removed = 0
    for thing_id in list(remains.values_list("id", flat=True)):
        try:
            is_gone = storage.remove_all_of(thing_id) and _remove_keys(str(thing_id))
            if is_gone:
                removed += Remains.objects.filter(id=thing_id).delete()[0]
        except DatabaseError as error:
            log.warning("remains_kept", thing=str(thing_id), error=type(error).__name__)
    return removed


def _remove_keys(session: str) -> bool:
    """Those of the live session that a recording was, or would have been."""
    site = settings.SITE
    try:
        with redis.Redis.from_url(site.broker_url, socket_timeout=2) as broker:
            broker.srem(SESSIONS_KEY, session)
            broker.delete(session_key(session), capture_key(session), readers_key(session))
        with redis.Redis.from_url(site.audio_url, socket_timeout=2) as audio:
            audio.delete(audio_key(session), writer_key(session), whole_key(session))
    except redis.RedisError as error:
        log.warning("keys_not_removed", thing=session, error=type(error).__name__)
        return False
    return True
