"""An entry of the audit log as a sentence: who, did what, to which thing, and how."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.formats import date_format

from webapp.accounts.models import Act, AuditEntry

KINDS: Final = {
    "recording": "Recording",
    "livesession": "Live session",
    "user": "Person",
    "team": "Team",
    "apitoken": "Token",
    "webhook": "Webhook",
    "glossaryterm": "Name or term",
    "retentionpolicy": "Retention policy",
    "purgerun": "Purge",
    "upload": "Upload",
}
NAMELESS: Final = {
    "retentionpolicy": "the retention rules",
    "purgerun": "the purge",
    "upload": "an upload",
}
"""Kinds whose things are told by a number alone, which says nothing to people, and their words."""
SOMEBODY: Final = {Act.LOG_IN_FAILED, Act.VIEWED, Act.PLAYED, Act.EXPORTED}
"""Acts that nobody who is known may do: before a log-in, or by a link."""
OWN: Final = {
    Act.PASSWORD_CHANGED: "changed a password",
    Act.FACTOR_ADDED: "added a second factor",
    Act.FACTOR_REMOVED: "removed a second factor",
    Act.SESSIONS_ENDED: "ended their own sessions",
    Act.ADDRESS_CHANGED: "changed their own address",
}
"""What people do to themselves."""
SENTENCES: Final[Mapping[Act, str]] = {
    Act.LOG_IN_FAILED: "failed to log in as {thing}",
    Act.PASSWORD_CHANGED: "changed the password of {thing}",
    Act.FACTOR_ADDED: "added a second factor of {thing}",
    Act.FACTOR_REMOVED: "removed a second factor of {thing}",
    Act.SHARED: "shared {thing} with {with}",
    Act.UNSHARED: "stopped sharing {thing} with {with}",
    Act.OPENED: "opened {thing} as administrator",
    Act.TRASHED: "moved {thing} to the trash",
    Act.HELD: "put {thing} on hold",
    Act.RELEASED: "released {thing} from hold",
    Act.POLICY_CHANGED: "changed how long {thing} is kept",
    Act.PURGED: "deleted {thing} for ever, as the rules say",
    Act.TOKEN_MADE: "made the token {thing}",
    Act.TOKEN_REVOKED: "revoked the token {thing}",
    Act.TOKEN_USED: "used the token {thing}",
    Act.TEAM_CHANGED: "changed the team {thing}",
    Act.GLOSSARY_CHANGED: "changed {thing} in the glossary",
    Act.WEBHOOK_CHANGED: "changed the webhook {thing}",
    Act.ENGINE_ORDERED: "told the engine {engine} to {order}",
}
"""Of most acts; where none stands here, the thing follows upon the act's own words."""
WAYS: Final[Mapping[tuple[Act, str, object], str]] = {
    (Act.EDITED, "what", "title"): "renamed {thing}",
    (Act.EDITED, "what", "speakers"): "named the speakers of {thing}",
    (Act.EDITED, "what", "terms"): "changed the names and terms of {thing}",
    (Act.EXPORTED, "what", "audit log"): "downloaded the audit log",
    (Act.PURGED, "what", "recording"): "deleted {thing} for ever, as the rules say",
    (Act.PURGED, "what", "audio"): "deleted the audio of {thing}, as the rules say",
    (Act.PURGED, "what", "audit log"): "deleted old entries of the audit log",
    (Act.INVITED, "by", "link"): "made a link to choose a password for {thing}",
    (Act.TEAM_CHANGED, "change", "made"): "made the team {thing}",
    (Act.TEAM_CHANGED, "change", "renamed"): "renamed the team {thing}",
    (Act.TEAM_CHANGED, "change", "deleted"): "deleted the team {thing}",
    (Act.TEAM_CHANGED, "change", "joined"): "added {person} to the team {thing}",
    (Act.TEAM_CHANGED, "change", "left"): "removed {person} from the team {thing}",
    (Act.GLOSSARY_CHANGED, "removed", 1): "removed {thing} from the glossary",
    (Act.GLOSSARY_CHANGED, "changed", 1): "changed {thing} in the glossary",
    (Act.WEBHOOK_CHANGED, "how", "made"): "made the webhook {thing}",
    (Act.WEBHOOK_CHANGED, "how", "new secret"): "gave a new secret to the webhook {thing}",
    (Act.WEBHOOK_CHANGED, "how", "deleted"): "deleted the webhook {thing}",
    (Act.POLICY_CHANGED, "taken_back", True): "took back a change of {thing}",
}
"""Of acts that a detail makes another."""
OF_KINDS: Final[Mapping[tuple[Act, str], str]] = {
    (Act.POLICY_CHANGED, "retentionpolicy"): "changed {thing}",
    (Act.PURGED, "purgerun"): "ran {thing}",
    (Act.PURGED, "upload"): "forgot {thing}",
}
TIMES: Final = {"takes_effect_at", "until"}
THING: Final = "{thing}"
_PLACE: Final = re.compile(r"{(\w+)}")


@dataclass(frozen=True, slots=True)
class Line:
    """One entry in words: `thing` stands between `act` and `rest`. `about` leads to all entries
    about the same thing."""

    entry: AuditEntry
    who: str
    act: str
    thing: str
    rest: str
    kind: str
    about: str
    detail: str


def line_of(entry: AuditEntry) -> Line:
    act, detail = Act(entry.act), dict(entry.detail)
    who, thing = _who(entry, act, detail), _thing(entry, detail)
    sentence = _sentence(entry, act, detail, thing)
    for name in [name for name in detail if f"{{{name}}}" in sentence]:
        sentence = sentence.replace(f"{{{name}}}", str(detail.pop(name)))
    before, place, rest = sentence.partition(THING)
    has_kind = place and entry.subject_kind not in NAMELESS
    return Line(
        entry=entry,
        who=who,
        act=before.strip(),
        thing=thing if place else "",
        rest=rest,
        kind=KINDS.get(entry.subject_kind, "") if has_kind else "",
        about=f"{entry.subject_kind}:{entry.subject_id}" if entry.subject_kind else "",
        detail=" · ".join(
            _words(name, value) for name, value in detail.items() if _says_something(value)
        ),
    )


def _who(entry: AuditEntry, act: Act, detail: dict[str, object]) -> str:
    if entry.actor is not None and entry.actor.name:
        return f"{entry.actor.name} ({entry.actor_name})"
    if entry.actor_name:
        return entry.actor_name
    if act in SOMEBODY and detail.get("by") == "link":
        del detail["by"]
        return "A guest with a link"
    return "Somebody" if act in SOMEBODY else "The server"


def _thing(entry: AuditEntry, detail: dict[str, object]) -> str:
    if entry.subject_kind == "retentionpolicy":
        team = detail.pop("team", "")
        return f"the retention rules of {f'the team {team}' if team else 'the organisation'}"
    return NAMELESS.get(entry.subject_kind, entry.subject_name)


def _sentence(entry: AuditEntry, act: Act, detail: dict[str, object], thing: str) -> str:
    """The most telling sentence whose places can all be filled. What it says of the details is
    taken from them."""
    is_own = entry.subject_kind == "user" and entry.subject_id == str(entry.actor_id)
    if is_own and act in OWN:
        return OWN[act]
    known = {*detail, "thing"} if thing else set(detail)
    for (told, name, value), words in WAYS.items():
        if told == act and detail.get(name) == value and known.issuperset(_PLACE.findall(words)):
            del detail[name]
            return words
    label = str(act.label)
    choices = (OF_KINDS.get((act, entry.subject_kind)), SENTENCES.get(act), f"{label} {THING}")
    for choice in choices:
        if choice and known.issuperset(_PLACE.findall(choice)):
            return choice
    return label


def _says_something(value: object) -> bool:
    return isinstance(value, bool) or value not in ("", 0)


def _words(name: str, value: object) -> str:
    if isinstance(value, bool):
        value = "yes" if value else "no"
    elif value is None:
        value = "no limit" if name.endswith("_days") else "none"
    elif name in TIMES and (moment := parse_datetime(str(value))):
        value = date_format(timezone.localtime(moment), "j F Y, H:i")
    return f"{name.replace('_', ' ')}: {value}"
