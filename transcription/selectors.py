"""Every permissioned read. Strangers get NotFoundError: absent and forbidden look the same.

Pages, REST, sockets, media and exports go through these functions and no others. Who may do what:

    owner           everything
    editor          reads, and changes what a recording says and is called (a share with `can_edit`)
    reader          reads: a share with them or a team of theirs, or everybody who can log in
    administrator   sees that a thing exists, and reads it while it is opened (`OpenedContent`)

To capture a live session and to end it is its owner's alone, whoever may edit its recording. Once
there is one, who may read the recording may read its captions, and nobody else. What is in the
trash is seen by its owner, there.
"""

from __future__ import annotations

from typing import TypeVar
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db.models import Count, Model, Q, QuerySet
from django.utils import timezone

from transcription.errors import NotFoundError, UnknownLinkError
from transcription.models import (
    GlossaryTerm,
    Job,
    LiveSession,
    OpenedContent,
    Recording,
    Share,
    ShareLink,
    Upload,
    Visibility,
    Webhook,
    WebhookDelivery,
)
from webapp.accounts.models import Team, User

Viewer = User | AnonymousUser
Thing = TypeVar("Thing", bound=Model)


def _person(user: Viewer) -> User:
    """Raises NotFoundError where nobody is logged in, or who is may not be (any more)."""
    if not isinstance(user, User) or not user.is_active:
        raise NotFoundError
    return user


def _first(things: QuerySet[Thing]) -> Thing:
    """Raises NotFoundError where there is none."""
    thing = things.first()
    if thing is None:
        raise NotFoundError
    return thing


def shares_with(user: User) -> QuerySet[Share]:
    """What others share with this person, or with a team of theirs."""
    return Share.objects.filter(Q(person=user) | Q(team__in=user.teams.all())).order_by()


# Recordings ---------------------------------------------------------------------------------------


def recordings_visible_to(user: Viewer) -> QuerySet[Recording]:
    """For lists: their own and what they may read, by when it was recorded, the newest first;
    neither the trash nor what they opened as administrator."""
    if not isinstance(user, User) or not user.is_active:
        return Recording.objects.none()
    return _recordings().filter(_reads_recording(user)).order_by("-recorded_at", "-created_at")


def access_recording_by_id(user: Viewer, recording_id: UUID | str) -> Recording:
    """For reading. Raises NotFoundError for strangers and for what does not exist."""
    person = _person(user)
    may_read = _reads_recording(person)
    if person.is_administrator:
        may_read |= Q(id__in=_opened_by(person, "recording"))
    return _first(_recordings().filter(may_read, id=recording_id))


def access_editable_recording_by_id(user: Viewer, recording_id: UUID | str) -> Recording:
    """For its title, its speakers, its terms, its track, and for transcribing again or stopping:
    its owner and its editors. Raises NotFoundError otherwise."""
    person = _person(user)
    may_edit = Q(owner=person) | Q(id__in=_shared(person, "recording", can_edit=True))
    return _first(_recordings().filter(may_edit, id=recording_id))


def access_own_recording_by_id(user: Viewer, recording_id: UUID | str) -> Recording:
    """For sharing, deleting and retention: only the owner. Raises NotFoundError otherwise."""
    return _first(_recordings().filter(owner=_person(user), id=recording_id))


def can_edit_recording(user: User, recording: Recording) -> bool:
    """Of a recording that they may read: what `access_editable_recording_by_id` would say."""
    if recording.owner_id == user.pk:
        return True
    return shares_with(user).filter(recording=recording, can_edit=True).exists()


def trashed_recordings_of(user: Viewer) -> QuerySet[Recording]:
    """What this person may still restore, or delete for ever."""
    if not isinstance(user, User) or not user.is_active:
        return Recording.objects.none()
    return Recording.objects.filter(owner=user).exclude(trashed_at=None).select_related("owner")


def access_trashed_recording_by_id(user: Viewer, recording_id: UUID | str) -> Recording:
    """For restoring, or deleting for ever: only the owner. Raises NotFoundError otherwise."""
    return _first(trashed_recordings_of(user).filter(id=recording_id))


def recordings_administered_by(user: Viewer) -> QuerySet[Recording]:
    """All that there are, the trash too, for administrators, who see what they are called, whose
    they are and how large, and no word of them. Raises NotFoundError for everybody else."""
    if not _person(user).is_administrator:
        raise NotFoundError
    return Recording.objects.select_related("owner")


def access_administered_recording_by_id(user: Viewer, recording_id: UUID | str) -> Recording:
    """For its jobs, its retention, and for opening it. Raises NotFoundError otherwise."""
    return _first(recordings_administered_by(user).filter(id=recording_id))


def _recordings() -> QuerySet[Recording]:
    return Recording.objects.filter(trashed_at=None).select_related("owner")


def _reads_recording(user: User) -> Q:
    return Q(owner=user) | Q(is_organisation_wide=True) | Q(id__in=_shared(user, "recording"))


def _shared(user: User, kind: str, **fields: bool) -> QuerySet[Share, UUID]:
    """Ids of the recordings, or sessions, that are shared with `user`: read once for a list."""
    shares = shares_with(user).filter(**fields, **{f"{kind}__isnull": False})
    return shares.values_list(kind, flat=True)


def _opened_by(user: User, kind: str) -> QuerySet[OpenedContent, UUID]:
    """Ids of what this administrator may read at this moment, by having said why."""
    openings = OpenedContent.objects.filter(
        **{"administrator": user, "closes_at__gt": timezone.now(), f"{kind}__isnull": False}
    )
    return openings.order_by().values_list(kind, flat=True)


# Jobs ---------------------------------------------------------------------------------------------


def jobs_visible_to(user: Viewer) -> QuerySet[Job]:
    """Those of the recordings that they may read."""
    return Job.objects.filter(recording__in=recordings_visible_to(user)).defer("checkpoint")


def access_job_by_id(user: Viewer, job_id: UUID | str) -> Job:
    """Who may read its recording. Raises NotFoundError otherwise."""
    job = _first(Job.objects.filter(id=job_id).defer("checkpoint"))
    access_recording_by_id(user, job.recording_id)
    return job


def jobs_administered_by(user: Viewer) -> QuerySet[Job]:
    """All that there are, for administrators. Raises NotFoundError for everybody else."""
    jobs = Job.objects.filter(recording__in=recordings_administered_by(user)).defer("checkpoint")
    return jobs.select_related("recording__owner").annotate(tries=Count("attempts"))


def access_administered_job_by_id(user: Viewer, job_id: UUID | str) -> Job:
    """For ending it, or beginning it anew, by administrators. Raises NotFoundError otherwise."""
    return _first(jobs_administered_by(user).filter(id=job_id))


def current_opening(user: User, thing: Recording | LiveSession) -> OpenedContent | None:
    """By which an administrator reads `thing` at this moment; None for whoever needs none."""
    if not user.is_administrator or thing.owner_id == user.pk:
        return None
    openings = thing.openings.filter(administrator=user, closes_at__gt=timezone.now())
    return openings.order_by("-closes_at").first()


def openings_shown_to(user: User, thing: Recording | LiveSession) -> QuerySet[OpenedContent]:
    """Which administrators opened it, and why: for its owner. Empty for everybody else."""
    if thing.owner_id != user.pk:
        return OpenedContent.objects.none()
    return thing.openings.select_related("administrator")


# Live sessions ------------------------------------------------------------------------------------


def live_sessions_visible_to(user: Viewer) -> QuerySet[LiveSession]:
    """For lists: their own and what they may read, as for recordings."""
    if not isinstance(user, User) or not user.is_active:
        return LiveSession.objects.none()
    return _live_sessions().filter(_reads_session(user))


def access_live_session_by_id(user: Viewer, session_id: UUID | str) -> LiveSession:
    """For reading captions. Raises NotFoundError for strangers."""
    person = _person(user)
    may_read = _reads_session(person)
    if person.is_administrator:
        may_read |= Q(id__in=_opened_by(person, "session"))
        may_read |= Q(recording__in=_opened_by(person, "recording"))
    return _first(_live_sessions().filter(may_read, id=session_id))


def access_own_live_session_by_id(user: Viewer, session_id: UUID | str) -> LiveSession:
    """For capturing, ending and sharing: only the owner. Raises NotFoundError otherwise."""
    return _first(_live_sessions().filter(owner=_person(user), id=session_id))


def live_sessions_administered_by(user: Viewer) -> QuerySet[LiveSession]:
    """What they are called, whose they are and how they stand, for administrators. Raises
    NotFoundError for everybody else."""
    if not _person(user).is_administrator:
        raise NotFoundError
    return _live_sessions()


def access_administered_live_session_by_id(user: Viewer, session_id: UUID | str) -> LiveSession:
    """For opening it, by administrators. Raises NotFoundError otherwise."""
    return _first(live_sessions_administered_by(user).filter(id=session_id))


def _live_sessions() -> QuerySet[LiveSession]:
    return LiveSession.objects.filter(recording__trashed_at=None).select_related("owner")


def _reads_session(user: User) -> Q:
    """The recording's readers once there is one: what is taken from them there is taken here."""
    while_live = Q(visibility=Visibility.ORGANISATION) | Q(id__in=_shared(user, "session"))
    since = Q(recording__is_organisation_wide=True) | Q(recording__in=_shared(user, "recording"))
    return Q(owner=user) | (Q(recording=None) & while_live) | since


# Links --------------------------------------------------------------------------------------------


def access_caption_link_by_token(token: str) -> ShareLink:
    """For reading captions by a link, while it is open and its owner's account is.

    Raises UnknownLinkError for a token that never was one of captions, and NotFoundError, which
    says why, for one that is not open (any more): whoever has a real token may know.
    """
    links = ShareLink.objects.select_related("session__owner", "session__recording")
    link = _real_link(links.filter(session__isnull=False), token)
    session = link.live_session
    _check_open(link, session.owner, session.recording)
    return link


def access_recording_link_by_token(token: str) -> ShareLink:
    """The same for reading, hearing and downloading a recording."""
    links = ShareLink.objects.select_related("recording__owner")
    link = _real_link(links.filter(recording__isnull=False), token)
    recording = link.linked_recording
    _check_open(link, recording.owner, recording)
    return link


def open_links() -> QuerySet[ShareLink]:
    """Those that lead somewhere at this moment."""
    links = ShareLink.objects.filter(revoked_at=None, expires_at__gt=timezone.now())
    return links if settings.SITE.share_links else links.none()


def has_open_link(thing: Recording | LiveSession) -> bool:
    """Whether somebody without an account may read it."""
    of_it = Q(recording=thing) if isinstance(thing, Recording) else Q(session=thing)
    return open_links().filter(of_it).exists()


def access_own_share_link_by_id(user: Viewer, link_id: UUID | str) -> ShareLink:
    """For withdrawing: only who owns what it leads to. Raises NotFoundError otherwise."""
    person = _person(user)
    is_own = Q(session__owner=person) | Q(recording__owner=person)
    links = ShareLink.objects.select_related("session", "recording")
    return _first(links.filter(is_own, id=link_id))


def _real_link(links: QuerySet[ShareLink], token: str) -> ShareLink:
    if not settings.SITE.share_links:
        raise NotFoundError("Links are switched off on this server.")
    link = links.filter(sha256=ShareLink.hash_token(token)).first()
    if link is None:
        raise UnknownLinkError
    return link


def _check_open(link: ShareLink, owner: User, recording: Recording | None) -> None:
    if link.revoked_at is not None:
        raise NotFoundError("This link was withdrawn by the person who made it.")
    if recording is not None and recording.trashed_at is not None:
        raise NotFoundError("What this link led to was deleted.")
    if not owner.is_active:
        raise NotFoundError("This link no longer works.")
    if not link.is_open(timezone.now()):
        raise NotFoundError("This link has expired.")


# Whom to share with -------------------------------------------------------------------------------


def people_to_share_with(user: Viewer) -> QuerySet[User]:
    """Everybody else who may use their account, tools of the organisation too."""
    return (
        User.objects.filter(is_active=True).exclude(pk=_person(user).pk).order_by("name", "email")
    )


def teams_to_share_with(user: Viewer) -> QuerySet[Team]:
    """All: also those that this person is not in."""
    _person(user)
    return Team.objects.all()


def access_own_share_by_id(user: Viewer, share_id: int) -> Share:
    """For changing and stopping: only who owns what is shared. Raises NotFoundError otherwise."""
    person = _person(user)
    is_own = Q(session__owner=person) | Q(recording__owner=person, recording__trashed_at=None)
    shares = Share.objects.select_related("session", "recording", "person", "team")
    return _first(shares.filter(is_own, id=share_id))


# Uploads and terms --------------------------------------------------------------------------------


def webhooks_of(user: Viewer) -> QuerySet[Webhook]:
    """A person's own; nobody else sees or changes them."""
    return Webhook.objects.filter(owner=_person(user))


def access_webhook_by_id(user: Viewer, webhook_id: UUID | str) -> Webhook:
    return _first(webhooks_of(user).filter(id=webhook_id))


def access_delivery_by_id(user: Viewer, delivery_id: UUID | str) -> WebhookDelivery:
    """Of one's own webhooks. Raises NotFoundError otherwise."""
    deliveries = WebhookDelivery.objects.filter(webhook__in=webhooks_of(user))
    return _first(deliveries.select_related("webhook").filter(id=delivery_id))


def uploads_of(user: Viewer) -> QuerySet[Upload]:
    if not isinstance(user, User) or not user.is_active:
        return Upload.objects.none()
    return Upload.objects.filter(owner=user)


def access_upload_by_id(user: Viewer, upload_id: UUID | str) -> Upload:
    return _first(uploads_of(user).filter(id=upload_id))


def organisation_terms_of(user: Viewer) -> QuerySet[GlossaryTerm]:
    """The organisation's glossary, for administrators. Raises NotFoundError for everybody else."""
    if not _person(user).is_administrator:
        raise NotFoundError
    return GlossaryTerm.objects.filter(recording=None)


def access_organisation_term_by_id(user: Viewer, term_id: int) -> GlossaryTerm:
    """For changes, by administrators. Raises NotFoundError otherwise."""
    return _first(organisation_terms_of(user).filter(id=term_id))
