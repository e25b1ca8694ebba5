"""Who comes to a recording and a live session of Alice's, and every road that they try."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, Literal

from asgiref.sync import sync_to_async
from django.utils import timezone

from tests.fakes.live import final, make_session
from tests.fakes.pages import write_transcript
from tests.fakes.people import make_administrator, make_person
from tests.fakes.recordings import make_recording
from tests.fakes.shares import make_team, open_for, share
from tests.fakes.visitors import Visitor
from transcription.models import (
    Job,
    JobState,
    LiveSession,
    Recording,
    RecordingState,
    Share,
    ShareLink,
)
from transcription.services import live_sessions, share_links, sharing
from webapp.accounts.models import ApiToken, User

TITLE, WORDS, SAID = "Quarterly figures", "The margin fell.", "We begin with the rent."


class Right(IntEnum):
    """What a road asks for. NOBODY: it leads nowhere as long as the recording is not in the
    trash."""

    NONE = 0
    READ = 1
    EDIT = 2
    OWN = 3
    ADMINISTER = 4
    NOBODY = 5


@dataclass(frozen=True)
class Road:
    """`form` (pages) or `said` (REST) is refused whoever may, so that the next one finds the same
    world. What would end something all the same is tried only by those who may not."""

    method: str
    path: str
    right: Right
    form: dict[str, str] = field(default_factory=dict)
    said: object = None
    is_end: bool = False
    is_endless: bool = False

    @property
    def is_rest(self) -> bool:
        return self.path.startswith("/api/")


R, L, A = "/recordings/{recording}/", "/live/{session}/", "/administration/"
AR, AL = "/api/v1/recordings/{recording}", "/api/v1/live-sessions/{session}"
HOLDS = "/api/v1/retention/holds/{recording}"
UNKNOWN = "nobody@example.org"

PAGES = [
    *(Road("GET", R + part, Right.READ) for part in ("", "status/", "transcript/")),
    *(Road("GET", R + part, Right.READ) for part in ("media", "peaks.json", "export.txt")),
    *(Road("GET", R + "versions/1/" + part, Right.READ) for part in ("", "text/", "export.txt")),
    Road("POST", R + "rename/", Right.EDIT, {"title": ""}),
    Road("POST", R + "track/", Right.EDIT, {"track": "none"}),
    Road("POST", R + "speakers/", Right.EDIT, {"label": "A"}),
    Road("POST", R + "terms/", Right.EDIT, {"terms": ""}),
    Road("POST", R + "cancel/", Right.EDIT),
    Road("POST", R + "retry/", Right.EDIT, {"language": "none"}),
    Road("GET", R + "share/", Right.OWN),
    Road("POST", R + "share/", Right.OWN, {"hours": "0"}),
    Road("POST", R + "share/audience/", Right.OWN, {"audience": "none"}),
    Road("POST", R + "share/add/", Right.OWN, {"with": "none"}),
    Road("POST", R + "keep/", Right.OWN, {"until": "none"}),
    Road("POST", R + "delete/", Right.OWN, is_end=True),
    Road("POST", "/trash/{recording}/restore/", Right.NOBODY),
    Road("POST", "/trash/{recording}/delete/", Right.NOBODY),
    *(Road("GET", L + part, Right.READ) for part in ("", "room/", "status/", "code.svg")),
    *(Road("GET", L + part, Right.READ) for part in ("captions.txt", "captions.vtt")),
    Road("GET", L + "capture/", Right.OWN),
    Road("POST", L + "end/", Right.OWN, is_end=True),
    Road("GET", L + "share/", Right.OWN),
    Road("POST", L + "share/", Right.OWN, {"hours": "0"}),
    Road("POST", L + "share/audience/", Right.OWN, {"audience": "none"}),
    Road("POST", L + "share/add/", Right.OWN, {"with": "none"}),
    Road("POST", "/shares/{share}/", Right.OWN, {"right": "none"}),
    Road("POST", "/shares/{share}/stop/", Right.OWN, is_end=True),
    Road("POST", "/links/{link}/revoke/", Right.OWN, is_end=True),
    Road("GET", A + "open/recordings/{recording}/", Right.ADMINISTER),
    Road("GET", A + "open/live/{session}/", Right.ADMINISTER),
    Road("POST", A + "open/recordings/{recording}/close/", Right.ADMINISTER, is_end=True),
    Road("POST", A + "open/live/{session}/close/", Right.ADMINISTER, is_end=True),
    Road("POST", A + "retention/{recording}/release/", Right.ADMINISTER),
    Road("POST", A + "retention/{recording}/forget-date/", Right.ADMINISTER),
    Road("POST", A + "jobs/{job}/cancel/", Right.ADMINISTER, is_end=True),
    Road("POST", A + "jobs/{job}/retry/", Right.ADMINISTER, is_end=True),
]
REST = [
    Road("GET", AR, Right.READ),
    Road("PATCH", AR, Right.EDIT, said={"title": "Mine"}),
    Road("PATCH", AR, Right.OWN, said={"is_organisation_wide": True}),
    Road("DELETE", AR, Right.OWN),
    Road("POST", AR + "/restore", Right.NOBODY),
    Road("GET", AR + "/media", Right.READ),
    Road("HEAD", AR + "/media", Right.READ),
    Road("GET", AR + "/shares", Right.OWN),
    Road("POST", AR + "/shares", Right.OWN, said={"person": UNKNOWN}),
    Road("DELETE", AR + "/shares/{share}", Right.OWN, is_end=True),
    Road("GET", AR + "/transcript.txt", Right.READ),
    Road("GET", AR + "/revisions", Right.READ),
    Road("GET", AR + "/revisions/1", Right.READ),
    Road("GET", AR + "/revisions/1/segments", Right.READ),
    Road("GET", AR + "/revisions/1/transcript.txt", Right.READ),
    Road("GET", AR + "/speakers", Right.READ),
    Road("PATCH", AR + "/speakers", Right.EDIT, said={"names": {}}),
    Road("GET", AR + "/terms", Right.READ),
    Road("PUT", AR + "/terms", Right.EDIT, said={"terms": []}),
    Road("POST", AR + "/jobs", Right.EDIT, said={"track": 999}),
    Road("GET", "/api/v1/jobs/{job}", Right.READ),
    Road("POST", "/api/v1/jobs/{job}/cancel", Right.EDIT),
    Road("PUT", HOLDS, Right.ADMINISTER, said={"reason": "A lawsuit"}, is_end=True),
    Road("DELETE", HOLDS, Right.ADMINISTER, is_end=True),
    Road("GET", AL, Right.READ),
    Road("PATCH", AL, Right.OWN, said={"visibility": "organisation"}),
    Road("POST", AL + "/end", Right.OWN, is_end=True),
    Road("GET", AL + "/captions", Right.READ),
    Road("GET", AL + "/captions.txt", Right.READ),
    Road("GET", AL + "/captions/events", Right.READ, is_endless=True),
    Road("GET", AL + "/shares", Right.OWN),
    Road("POST", AL + "/shares", Right.OWN, said={"person": UNKNOWN}),
    Road("DELETE", AL + "/shares/{session_share}", Right.OWN, is_end=True),
]
BEHIND_LINKS: Final = {
    "recording": tuple(
        f"/r/{{token}}/{part}" for part in ("", "media", "peaks.json", "export.txt")
    ),
    "captions": tuple(
        f"/s/{{token}}/{part}" for part in ("", "room/", "status/", "captions.txt", "captions.vtt")
    ),
}
OF_ANOTHER_STATE = {"If-Match": '"another"'}
"""So that nobody's edit by REST goes through."""


@dataclass(frozen=True)
class Link:
    """A link to the recording (`/r/`) or to the captions of the session (`/s/`)."""

    to: Literal["recording", "captions"]
    token: str
    is_open: bool = True

    def roads(self) -> Iterator[tuple[str, bool]]:
        """Every address behind links, with this token, and whether it is open."""
        for to, paths in BEHIND_LINKS.items():
            for path in paths:
                yield path.format(token=self.token), self.is_open and to == self.to


@dataclass(frozen=True)
class Somebody:
    """Who comes, and what they may; `user` None: nobody has logged in.

    Who holds a `link` may nothing by any other road.
    """

    name: str
    user: User | None
    right: Right
    is_administrator: bool = False
    link: Link | None = None

    @property
    def is_signed_in(self) -> bool:
        return self.user is not None and self.name != "disabled"

    def may(self, right: Right) -> bool:
        if right in {Right.ADMINISTER, Right.NOBODY}:
            return right is Right.ADMINISTER and self.is_administrator
        return self.right >= right


@dataclass(frozen=True)
class World:
    """A recording and a live session of Alice's, and everybody who comes to them."""

    people: list[Somebody]
    links: dict[str, Link]
    names: dict[str, str]

    def at(self, path: str) -> str:
        return path.format(**self.names)


def make_links(recording: Recording, session: LiveSession) -> dict[str, Link]:
    """To each of them one that is open, one that was withdrawn and one that has expired."""
    links = {}
    things: tuple[tuple[Literal["recording", "captions"], Recording | LiveSession], ...]
    things = (("recording", recording), ("captions", session))
    for to, thing in things:
        for fate in ("open", "withdrawn", "expired"):
            row, token = share_links.create_share_link(thing=thing, hours=24, made_by=thing.owner)
            links[f"the {fate} link to the {to}"] = Link(to, token, is_open=fate == "open")
            if fate == "withdrawn":
                share_links.revoke_share_link(link=row, revoked_by=thing.owner)
            elif fate == "expired":
                ShareLink.objects.filter(id=row.id).update(expires_at=timezone.now())
    return links


def make_world() -> World:
    alice = make_person("Alice")
    recording = make_recording(alice, title=TITLE, state=RecordingState.READY)
    (recording.folder / "peaks.json").write_text("[1]")
    write_transcript(recording, WORDS)
    session = make_session(alice, title=TITLE)
    live_sessions.record_final(event=final(session, 0, SAID))
    links = make_links(recording, session)
    job = Job.objects.create(recording=recording, state=JobState.DONE)
    reader, member, editor = (make_person(name) for name in ("Bob", "Mia", "Eve"))
    former, disabled = make_person("Fred"), make_person("Dora")
    administrator, opener = make_administrator(), make_person("Olga")
    User.objects.filter(pk=opener.pk).update(role=administrator.role)
    opener.refresh_from_db()
    team = make_team("Sales", member)
    shares: list[Share] = []
    for thing in (recording, session):
        shares.append(share(thing, with_=reader))
        share(thing, with_=team)
        share(thing, with_=editor, can_edit=True)
        share(thing, with_=disabled, can_edit=True)
        sharing.stop_sharing(share=share(thing, with_=former, can_edit=True), stopped_by=alice)
        open_for(opener, thing)
    people = [
        Somebody("anonymous", None, Right.NONE),
        Somebody("stranger", make_person("Charlie"), Right.NONE),
        Somebody("reader", reader, Right.READ),
        Somebody("reader by a team", member, Right.READ),
        Somebody("editor", editor, Right.EDIT),
        Somebody("former reader", former, Right.NONE),
        Somebody("disabled", disabled, Right.NONE),
        Somebody("administrator", administrator, Right.NONE, is_administrator=True),
        Somebody("administrator who opened it", opener, Right.READ, is_administrator=True),
        Somebody("owner", alice, Right.OWN),
        *(
            Somebody(f"holder of {name}", None, Right.NONE, link=link)
            for name, link in links.items()
            if link.is_open
        ),
    ]
    names = {
        "recording": str(recording.id),
        "session": str(session.id),
        "share": str(shares[0].pk),
        "session_share": str(shares[1].pk),
        "link": str(recording.links.earliest("created_at").id),
        "job": str(job.pk),
    }
    return World(people, links, names)


@asynccontextmanager
async def visitors(world: World) -> AsyncIterator[dict[str, Visitor]]:
    """All of them, logged in or with their link opened; then one of them is disabled."""
    async with AsyncExitStack() as stack:
        came = {}
        for somebody in world.people:
            came[somebody.name] = await stack.enter_async_context(Visitor())
            if somebody.link is not None:
                path = BEHIND_LINKS[somebody.link.to][0].format(token=somebody.link.token)
                assert (await came[somebody.name].ask("GET", path)).status_code == 200
            if somebody.user is None:
                await came[somebody.name].ask("GET", "/accounts/login/")  # for its CSRF token
            else:
                await came[somebody.name].log_in(somebody.user)
        await User.objects.filter(email="dora@example.org").aupdate(is_active=False)
        yield came


@asynccontextmanager
async def tools(world: World) -> AsyncIterator[dict[str, tuple[Visitor, str]]]:
    """A tool of each, with a token for everything; a link's is none of them."""
    async with AsyncExitStack() as stack:
        came = {}
        for somebody in world.people:
            secret = somebody.link.token if somebody.link else ""
            if somebody.user is not None:
                _, secret = await sync_to_async(ApiToken.issue)(user=somebody.user, name="Tool")
            came[somebody.name] = await stack.enter_async_context(Visitor(secret)), secret
        await User.objects.filter(email="dora@example.org").aupdate(is_active=False)
        yield came
