"""Purges in processes of their own, which are killed, or meet each other.

    python -m tests.fakes.purger killed|together

Prints a JSON object about what is there afterwards. The database must be migrated and empty.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import django

django.setup()

from celery import Celery  # noqa: E402
from django.conf import settings  # noqa: E402
from django.db import connections  # noqa: E402
from django.utils import timezone  # noqa: E402

from tests.fakes.recordings import make_recording  # noqa: E402
from transcription import broadcast  # noqa: E402
from transcription.errors import LeaseLostError  # noqa: E402
from transcription.models import PurgeRun, Recording, Remains, RetentionPolicy  # noqa: E402
from transcription.services import purge, remains, storage, trash  # noqa: E402
from webapp.accounts.models import Act, AuditEntry, User  # noqa: E402

DAY = timedelta(days=1)
EACH = 8
"""Recordings of each kind."""

POINTS: tuple[tuple[Any, str, int], ...] = (
    (trash, "remove_audio", 1),  # inside the transaction
    (trash, "put_into_trash", 1),
    (trash, "end_recording", 1),
    (purge, "_write", 2),  # all done, and not committed
    (remains, "remove_remains", 2),  # committed, and the bytes are still there
    (storage, "remove_folder", 3),  # some of the folders are gone
    (remains, "_remove_keys", 1),  # the bytes are gone, and that is not written down
)
"""Where a purge is killed: at the n-th call of this."""


def seed() -> None:
    owner = User.objects.create_user("alice@example.org")
    now = timezone.now()
    RetentionPolicy.objects.create(
        audio_days=10, transcript_days=30, trash_days=7, takes_effect_at=now - DAY
    )
    kinds: dict[str, dict[str, Any]] = {
        "delete": {"created_at": now - 40 * DAY, "trashed_at": now - 8 * DAY},
        "audio": {"created_at": now - 20 * DAY},
        "trash": {"created_at": now - 5 * DAY, "expires_at": now - DAY},
        "keep": {"created_at": now - 9 * DAY},
        "keep held": {"created_at": now - 99 * DAY, "is_held": True},
    }
    for title, fields in kinds.items():
        for _ in range(EACH):
            make_recording(owner, title=title, size_bytes=10, **fields)


def in_a_child(act: Callable[[], object]) -> int:
    """The child's process id."""
    connections.close_all()
    child = os.fork()
    if child == 0:
        try:
            act()
        except LeaseLostError:
            os._exit(0)
        except BaseException:  # noqa: BLE001 - a child must not go on as its parent
            os._exit(1)
        os._exit(0)
    return child


def die_at(module: Any, name: str, call: int) -> None:
    """A purge that is killed at the `call`-th call of `name`."""
    real, calls = getattr(module, name), Counter[str]()

    def wrapped(*arguments: Any, **options: Any) -> Any:
        calls[name] += 1
        if calls[name] == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **options)

    setattr(module, name, wrapped)
    purge.purge_now()


def killed() -> list[int]:
    """One purge after the other is killed, each at another point; the last one may finish."""
    ends = []
    for point in POINTS:
        child = in_a_child(lambda point=point: die_at(*point))  # type: ignore[misc]
        ends.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    child = in_a_child(purge.purge_now)
    ends.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    return ends


def together() -> list[int]:
    """Four at once, each of which takes the run from whoever has it."""
    children = [in_a_child(purge.purge_now) for _ in range(4)]
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def report(ends: list[int]) -> dict[str, Any]:
    folders = {folder.name for folder in (Path(settings.MEDIA_ROOT) / "recordings").iterdir()}
    rows = Recording.objects.values_list("title", "trashed_at", "audio_removed_at")
    told = AuditEntry.objects.exclude(subject_kind="purgerun").filter(actor=None)
    return {
        "ends": ends,
        "left": Counter(title for title, _, _ in rows),
        "trashed": Counter(title for title, trashed_at, _ in rows if trashed_at),
        "without_audio": Counter(title for title, _, removed_at in rows if removed_at),
        "folders_agree": folders
        == {str(row.id) for row in Recording.objects.filter(audio_removed_at=None)},
        "remains": Remains.objects.count(),
        "counts": [run.counts for run in PurgeRun.objects.all()],
        "open": PurgeRun.objects.filter(is_open=True).count(),
        "told": Counter(f"{entry.act} {entry.subject_name}" for entry in told),
        "runs_told": AuditEntry.objects.filter(act=Act.PURGED, subject_kind="purgerun").count(),
    }


def main(how: str) -> None:
    # The broker is not what is tried here.
    Celery.send_task = lambda *_, **__: None
    broadcast._send = lambda *_: None
    purge.LEASE = timedelta(0)
    seed()
    ends = killed() if how == "killed" else together()
    print(json.dumps(report(ends)))  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1])
