"""How much each person may keep here, and how much they do.

What counts is the audio as it came: of recordings, those in the trash too, and all that an upload
announced. A live session is never refused for its size, but counts once it is a recording.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Sum

from transcription.errors import OverQuotaError, TooManyUploadsError
from transcription.models import Recording, Upload, UploadState
from webapp.accounts.models import Role, User
from webapp.config import site_settings


@dataclass(frozen=True, slots=True)
class Space:
    """`used_bytes` of `most_bytes`, which are 0 where there is no limit."""

    used_bytes: int
    most_bytes: int

    @property
    def share(self) -> float:
        """0..1, and 0 without a limit."""
        return min(1.0, self.used_bytes / self.most_bytes) if self.most_bytes else 0.0


def space_of(owner: User) -> Space:
    stored = Recording.objects.filter(owner=owner, audio_removed_at=None)
    coming = Upload.objects.filter(
        owner=owner, state__in=(UploadState.RECEIVING, UploadState.CHECKING)
    )
    used_bytes = sum(
        rows.aggregate(bytes=Sum(field))["bytes"] or 0
        for rows, field in ((stored, "size_bytes"), (coming, "length_bytes"))
    )
    site = site_settings()
    most_bytes = (
        site.max_stored_bytes_per_service_account
        if owner.role == Role.SERVICE
        else site.max_stored_bytes_per_person
    )
    return Space(used_bytes=used_bytes, most_bytes=most_bytes)


def check_space(*, owner: User, length_bytes: int) -> None:
    """Whether `owner` may begin an upload of so many bytes.

    Raises OverQuotaError, TooManyUploadsError. In the transaction that makes the upload, which
    keeps others of this person waiting: two at once would both fit.
    """
    User.objects.select_for_update().get(pk=owner.pk)
    most = site_settings().max_unfinished_uploads_per_person
    if Upload.objects.filter(owner=owner, state=UploadState.RECEIVING).count() >= most:
        raise TooManyUploadsError.of_person(most)
    space = space_of(owner)
    if space.most_bytes and space.used_bytes + length_bytes > space.most_bytes:
        raise OverQuotaError.of_person(space.used_bytes, space.most_bytes)
