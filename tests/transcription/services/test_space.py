"""How much a person may keep: what counts, what is refused, and that two do not slip in."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from tests.fakes.recordings import make_recording
from transcription.errors import OverQuotaError, TooManyUploadsError
from transcription.models import Upload, UploadState
from transcription.services import space, uploads
from transcription.services.space import space_of
from webapp.accounts.models import Role, User
from webapp.config import site_settings

GB = 1024**3


@pytest.fixture(autouse=True)
def limits(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = site_settings().model_copy(
        update={"max_stored_bytes_per_person": 1000, "max_unfinished_uploads_per_person": 3}
    )
    monkeypatch.setattr(space, "site_settings", lambda: changed)


def begin(owner: User, length_bytes: int) -> Upload:
    return uploads.create_upload(owner=owner, display_name="a.wav", length_bytes=length_bytes)


def test_what_is_stored_in_the_trash_or_on_its_way_counts(alice: User, bob: User) -> None:
    make_recording(alice, size_bytes=100)
    make_recording(alice, size_bytes=200, trashed_at=timezone.now())
    make_recording(alice, size_bytes=5000, audio_removed_at=timezone.now())
    make_recording(bob, size_bytes=7000)
    begin(alice, 300)
    assert space_of(alice) == space.Space(used_bytes=600, most_bytes=1000)
    assert space_of(alice).share == 0.6


def test_upload_that_fits_exactly_is_taken_and_the_next_is_refused(alice: User) -> None:
    make_recording(alice, size_bytes=400)
    begin(alice, 600)
    with pytest.raises(OverQuotaError, match=r"you keep .* of .* GB here") as refusal:
        begin(alice, 1)
    assert (refusal.value.status, refusal.value.is_retryable) == (413, False)
    assert Upload.objects.count() == 1
    assert len(list(Upload.objects.get().folder.parent.iterdir())) == 1


def test_refused_and_cancelled_uploads_free_their_space(alice: User) -> None:
    first = begin(alice, 900)
    Upload.objects.filter(id=first.id).update(state=UploadState.REFUSED)
    second = begin(alice, 900)
    uploads.cancel_upload(upload=second)
    assert begin(alice, 1000).length_bytes == 1000


def test_too_many_unfinished_uploads_are_refused_until_one_ends(alice: User, bob: User) -> None:
    begun = [begin(alice, 1) for _ in range(3)]
    with pytest.raises(TooManyUploadsError, match="3 unfinished uploads") as refusal:
        begin(alice, 1)
    assert (refusal.value.status, refusal.value.is_retryable) == (429, True)
    assert begin(bob, 1)
    Upload.objects.filter(id=begun[0].id).update(touched_at=timezone.now() - timedelta(days=2))
    uploads.sweep_uploads()
    assert begin(alice, 1)


def test_zero_is_no_limit(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = site_settings().model_copy(update={"max_stored_bytes_per_person": 0})
    monkeypatch.setattr(space, "site_settings", lambda: changed)
    make_recording(alice, size_bytes=900 * GB)
    assert begin(alice, 5).length_bytes == 5
    assert space_of(alice).share == 0


def test_service_accounts_have_a_limit_of_their_own(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice.role = Role.SERVICE
    alice.save()
    make_recording(alice, size_bytes=3000)
    assert begin(alice, 1)
    changed = site_settings().model_copy(update={"max_stored_bytes_per_service_account": 3000})
    monkeypatch.setattr(space, "site_settings", lambda: changed)
    with pytest.raises(OverQuotaError):
        begin(alice, 1)


@pytest.mark.django_db(transaction=True)
def test_of_many_at_once_only_those_that_fit_are_taken(alice: User) -> None:
    taken, refused = [], []

    def upload() -> None:
        try:
            taken.append(begin(alice, 400))
        except OverQuotaError as error:
            refused.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=upload) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(taken), len(refused)) == (2, 4)
