"""Who besides its owner reads a recording or a live session: shares, and administrators by their
recorded act.

Whoever may no longer read is sent away from open pages within seconds. Links for people without a
log-in: see `share_links`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.db import transaction
from django.utils import timezone

from transcription.broadcast import audience_changed_on_commit, rights_changed_on_commit
from transcription.errors import ConflictError, InvalidInputError, NotFoundError
from transcription.models import LiveSession, OpenedContent, Recording, Share, Visibility
from transcription.services.names import one_line
from webapp.accounts.audit import record_act
from webapp.accounts.models import Act, Team, User

MAX_SHARES: Final = 200
"""Of one thing: more people are a team."""
OPENED_FOR: Final = timedelta(hours=1)
"""How long an administrator reads what they opened."""
MIN_REASON_CHARACTERS: Final = 5
MAX_REASON_CHARACTERS: Final = 300


def set_audience(
    *, thing: Recording | LiveSession, is_organisation_wide: bool, set_by: User
) -> None:
    """Whether everybody who can log in may read. Raises NotFoundError if it is gone."""
    with transaction.atomic():
        if isinstance(thing, Recording):
            thing.is_organisation_wide = is_organisation_wide
            changed = Recording.objects.filter(id=thing.id).update(
                is_organisation_wide=is_organisation_wide
            )
        else:
            thing.visibility = (
                Visibility.ORGANISATION if is_organisation_wide else Visibility.PRIVATE
            )
            changed = LiveSession.objects.filter(id=thing.id).update(visibility=thing.visibility)
        if not changed:
            raise NotFoundError
        record_act(
            act=Act.SHARED if is_organisation_wide else Act.UNSHARED,
            actor=set_by,
            on=thing,
            detail={"with": "everybody who can log in"},
        )
        audience_changed_on_commit(thing.id)


def share_with(
    *, thing: Recording | LiveSession, sharer: User, with_: User | Team, can_edit: bool
) -> Share:
    """Let a person or a team read, and with `can_edit` change, `thing`; once shared, only the right
    changes.

    An editor of a live session edits the recording that it becomes: to speak into it stays its
    owner's. Raises ConflictError, InvalidInputError.
    """
    _check_side(thing, with_)
    person = with_ if isinstance(with_, User) else None
    team = with_ if isinstance(with_, Team) else None
    with transaction.atomic():
        is_new = not thing.shares.filter(person=person, team=team).exists()
        if is_new and thing.shares.count() >= MAX_SHARES:
            raise ConflictError(
                f"This is shared with {MAX_SHARES} people and teams, which is the limit. Share it"
                " with a team."
            )
        share, _ = thing.shares.update_or_create(
            person=person, team=team, defaults={"can_edit": can_edit}
        )
        record_act(
            act=Act.SHARED,
            actor=sharer,
            on=thing,
            detail={"with": _name_of(share), "can_edit": can_edit},
        )
        # Their open pages show what they may do now.
        audience_changed_on_commit(thing.id)
    return share


def stop_sharing(*, share: Share, stopped_by: User) -> None:
    """Harmless where it has stopped already."""
    thing = share.recording or share.session
    with transaction.atomic():
        if thing is None or not Share.objects.filter(id=share.id).delete()[0]:
            return
        record_act(act=Act.UNSHARED, actor=stopped_by, on=thing, detail={"with": _name_of(share)})
        audience_changed_on_commit(thing.id)


def hand_on_shares(*, session: LiveSession, recording: Recording) -> None:
    """Who reads the session reads the recording that it became, in the caller's transaction."""
    Share.objects.bulk_create(
        Share(
            recording=recording,
            person_id=share.person_id,
            team_id=share.team_id,
            can_edit=share.can_edit,
        )
        for share in session.shares.all()
    )


def _check_side(thing: Recording | LiveSession, with_: User | Team) -> None:
    if not isinstance(with_, User):
        return
    if with_.pk == thing.owner_id:
        raise InvalidInputError("It is yours already: choose somebody else.")
    if not with_.is_active:
        raise InvalidInputError("This person cannot log in any more. Nothing was shared.")


def _name_of(share: Share) -> str:
    if share.person is not None:
        return share.person.email
    return "" if share.team is None else f"team {share.team}"


# Administrators -----------------------------------------------------------------------------------


def open_as_administrator(
    *, thing: Recording | LiveSession, administrator: User, reason: str
) -> OpenedContent:
    """Let `administrator` read what is somebody else's, for OPENED_FOR; its owner sees that.

    `administrator` must be one: see `selectors.access_administered_recording_by_id`. Raises
    InvalidInputError without a reason.
    """
    reason = one_line(reason)
    if not MIN_REASON_CHARACTERS <= len(reason) <= MAX_REASON_CHARACTERS:
        raise InvalidInputError("Say in a few words why you need to open it. The owner reads that.")
    now = timezone.now()
    with transaction.atomic():
        opening = thing.openings.create(
            administrator=administrator,
            reason=reason,
            opened_at=now,
            closes_at=now + OPENED_FOR,
        )
        record_act(act=Act.OPENED, actor=administrator, on=thing, detail={"reason": reason})
    return opening


def close_opened(*, thing: Recording | LiveSession, administrator: User) -> None:
    """They have seen enough. Harmless where nothing is open; the openings stay on record."""
    now = timezone.now()
    open_now = thing.openings.filter(administrator=administrator, closes_at__gt=now)
    if open_now.update(closes_at=now):
        rights_changed_on_commit(administrator.pk)
