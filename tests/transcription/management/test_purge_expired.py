"""`manage.py purge_expired`."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from tests.fakes.recordings import make_recording
from transcription.models import PurgeRun, Recording, RetentionPolicy
from transcription.services import purge
from webapp.accounts.models import User

DAY = timedelta(days=1)


def said_by(*arguments: str) -> tuple[list[str], str]:
    out, problems = StringIO(), StringIO()
    call_command("purge_expired", *arguments, stdout=out, stderr=problems)
    return out.getvalue().splitlines(), problems.getvalue()


def test_the_dry_run_says_what_the_run_then_does(alice: User) -> None:
    now = timezone.now()
    RetentionPolicy.objects.create(
        audio_days=10, transcript_days=30, trash_days=7, takes_effect_at=now - DAY
    )
    silent = make_recording(alice, created_at=now - 12 * DAY, size_bytes=2048)
    old = make_recording(alice, created_at=now - 40 * DAY, audio_removed_at=now)
    gone = make_recording(alice, created_at=now - DAY, trashed_at=now - 8 * DAY, size_bytes=1024)
    make_recording(alice)
    report = [
        "audio removed: 1 (2 kB)",
        "moved to the trash: 1",
        "deleted for ever: 1 (1 kB)",
        "sessions without audio, and refused uploads: 0",
    ]
    lines, problem = said_by("--dry-run")
    assert set(lines[:-4]) == {
        f"recording {silent.id}: audio",
        f"recording {old.id}: trash",
        f"recording {gone.id}: delete",
    }
    assert lines[-4:] == report
    assert problem == ""
    assert Recording.objects.count() == 4
    assert not PurgeRun.objects.exists()
    assert said_by() == (report, "")
    assert Recording.objects.count() == 3


def test_why_nothing_is_done_is_said_by_both(alice: User) -> None:
    PurgeRun.objects.create(started_at=timezone.now() - 9 * DAY, is_open=False)
    for arguments in (("--dry-run",), ()):
        lines, problem = said_by(*arguments)
        assert problem.strip() == purge.CLOCK_PROBLEM
        assert "deleted for ever: 0 (0 bytes)" in lines


def test_while_one_runs_another_does_not(db: None) -> None:
    purge.begin_purge()
    with pytest.raises(CommandError, match="A purge is running"):
        said_by()
