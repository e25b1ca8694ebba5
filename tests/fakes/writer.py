"""One of several processes that write to one database as hard as they can.

    python -m tests.fakes.writer NUMBER SECONDS

Prints a JSON object: `rounds` done and the `errors` that it met.
"""

from __future__ import annotations

import json
import sys
import time

import django

django.setup()

from celery import Celery  # noqa: E402
from django.db import DatabaseError, transaction  # noqa: E402
from django.db.models import F  # noqa: E402

from tests.fakes.recordings import make_recording, progress  # noqa: E402
from transcription import broadcast  # noqa: E402
from transcription.errors import ProductError  # noqa: E402
from transcription.models import LiveSession, LiveUtterance  # noqa: E402
from transcription.services import job_queue, jobs, recordings, trash, uploads  # noqa: E402
from webapp.accounts.models import User  # noqa: E402


def write_round(owner: User, session: LiveSession, number: int) -> None:
    """An upload, a job from claim to end, a final, a title, a deletion."""
    upload = uploads.create_upload(owner=owner, display_name="a.wav", length_bytes=4)
    upload = uploads.append_upload(upload=upload, offset_bytes=0, chunks=[b"ab"])
    uploads.append_upload(upload=upload, offset_bytes=2, chunks=[b"cd"])
    uploads.cancel_upload(upload=upload)
    recording = make_recording(owner)
    jobs.submit_job(recording=recording, requested_by=owner)
    claim = job_queue.claim_next_job(worker=owner.email)
    if claim is not None:
        jobs.store_progress(claim=claim, progress=progress(*["word"] * 30))
        jobs.renew_lease(claim=claim)
        jobs.finish_job(claim=claim, model_name="scripted")
    with transaction.atomic():
        LiveSession.objects.filter(id=session.id).update(last_seq=F("last_seq") + 1)
        LiveUtterance.objects.create(
            session=session, utterance=number, seq=number, start_ms=0, end_ms=1, text="word"
        )
    recordings.rename_recording(recording=recording, title="Renamed", renamed_by=owner)
    if claim is not None:
        trash.delete_for_ever(recording=claim.job.recording, deleted_by=owner)


def main(number: int, seconds: float) -> None:
    # The broker is not what is tried here.
    Celery.send_task = lambda *_, **__: None
    broadcast._send = lambda *_: None
    owner = User.objects.create_user(f"writer{number}@example.org")
    session = LiveSession.objects.create(owner=owner, title="Meeting")
    rounds, errors = 0, []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        rounds += 1
        try:
            write_round(owner, session, rounds)
        except ProductError:
            continue  # another writer was given this one's job and deleted its recording
        except DatabaseError as error:
            errors.append(str(error))
    print(json.dumps({"rounds": rounds, "errors": errors}))  # noqa: T201


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
