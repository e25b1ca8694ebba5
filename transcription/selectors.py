"""Every permissioned read. Strangers get NotFoundError: absent and forbidden look the same.

Pages, REST, sockets, media and exports go through these functions and no others.
"""

from __future__ import annotations

from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db.models import Q, QuerySet
from django.utils import timezone

from transcription.errors import NotFoundError, UnknownLinkError
from transcription.models import (
    GlossaryTerm,
    LiveSession,
    Recording,
    ShareLink,
    Upload,
    Visibility,
)
from webapp.accounts.models import User

Viewer = User | AnonymousUser


def recordings_visible_to(user: Viewer) -> QuerySet[Recording]:
    """The person's own recordings and those shared with the whole organisation; not the trash."""
    if not isinstance(user, User) or not user.is_active:
        return Recording.objects.none()
    return Recording.objects.filter(
        Q(owner=user) | Q(is_organisation_wide=True), trashed_at=None
    ).select_related("owner")


def access_recording_by_id(user: Viewer, recording_id: UUID | str) -> Recording:
    """Raises NotFoundError for strangers and for what does not exist."""
    recording = recordings_visible_to(user).filter(id=recording_id).first()
    if recording is None:
        raise NotFoundError
    return recording


def access_own_recording_by_id(user: Viewer, recording_id: UUID | str) -> Recording:
    """For changes: only the owner. Raises NotFoundError otherwise."""
    recording = access_recording_by_id(user, recording_id)
    if not isinstance(user, User) or recording.owner_id != user.pk:
        raise NotFoundError
    return recording


def uploads_of(user: Viewer) -> QuerySet[Upload]:
    if not isinstance(user, User) or not user.is_active:
        return Upload.objects.none()
    return Upload.objects.filter(owner=user)


def access_upload_by_id(user: Viewer, upload_id: UUID | str) -> Upload:
    upload = uploads_of(user).filter(id=upload_id).first()
    if upload is None:
        raise NotFoundError
    return upload


def organisation_terms_of(user: Viewer) -> QuerySet[GlossaryTerm]:
    """The organisation's glossary, for administrators. Raises NotFoundError for everybody else."""
    if not isinstance(user, User) or not user.is_active or not user.is_administrator:
        raise NotFoundError
    return GlossaryTerm.objects.filter(recording=None)


def access_organisation_term_by_id(user: Viewer, term_id: int) -> GlossaryTerm:
    """For changes, by administrators. Raises NotFoundError otherwise."""
    term = organisation_terms_of(user).filter(id=term_id).first()
    if term is None:
        raise NotFoundError
    return term


def live_sessions_visible_to(user: Viewer) -> QuerySet[LiveSession]:
    """The person's own sessions and those that everybody who can log in may read."""
    if not isinstance(user, User) or not user.is_active:
        return LiveSession.objects.none()
    return LiveSession.objects.filter(
        Q(owner=user) | Q(visibility=Visibility.ORGANISATION), recording__trashed_at=None
    ).select_related("owner")


def access_live_session_by_id(user: Viewer, session_id: UUID | str) -> LiveSession:
    """For reading captions. Raises NotFoundError for strangers."""
    session = live_sessions_visible_to(user).filter(id=session_id).first()
    if session is None:
        raise NotFoundError
    return session


def access_own_live_session_by_id(user: Viewer, session_id: UUID | str) -> LiveSession:
    """For capturing and ending: only the owner. Raises NotFoundError otherwise."""
    session = access_live_session_by_id(user, session_id)
    if not isinstance(user, User) or session.owner_id != user.pk:
        raise NotFoundError
    return session


def access_caption_link_by_token(token: str) -> ShareLink:
    """For reading captions by a link, while it is open and its owner's account is.

    Raises UnknownLinkError for a token that never was one, and NotFoundError, which says why, for
    one that is not open (any more): whoever has a real token may know.
    """
    if not settings.SITE.share_links:
        raise NotFoundError("Links to captions are switched off on this server.")
    link = (
        ShareLink.objects.select_related("session__owner")
        .filter(sha256=ShareLink.hash_token(token))
        .first()
    )
    if link is None:
        raise UnknownLinkError
    if link.session is None:
        raise UnknownLinkError
    if link.revoked_at is not None or not link.session.owner.is_active:
        raise NotFoundError("This link was withdrawn by the person who made it.")
    if not link.is_open(timezone.now()):
        raise NotFoundError("This link has expired.")
    return link


def access_own_caption_link_by_id(user: Viewer, link_id: UUID | str) -> ShareLink:
    """For withdrawing: only the session's owner. Raises NotFoundError otherwise."""
    link = ShareLink.objects.select_related("session").filter(id=link_id).first()
    if link is None or link.session is None or not isinstance(user, User):
        raise NotFoundError
    if link.session.owner_id != user.pk:
        raise NotFoundError
    return link
