"""Who gets what by which road: each person, at each address and socket of a recording and of a live
session, through the real application and a real log-in.

An address that names one of them and stands in no road here fails the last test.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import httpx
import pytest
from asgiref.sync import sync_to_async
from django.urls import URLPattern, URLResolver, get_resolver, resolve

from tests.fakes.asgi import Exchange
from tests.fakes.live import Page, engine_by_hand, final, hello, make_session
from tests.fakes.pages import write_transcript
from tests.fakes.people import make_administrator, make_person
from tests.fakes.recordings import make_recording
from tests.fakes.shares import make_team, open_for, share
from tests.fakes.visitors import Visitor
from transcription.api.v1 import api
from transcription.models import Job, JobState, RecordingState, Share
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
OF_ANOTHER_STATE = {"If-Match": '"another"'}
"""So that nobody's edit by REST goes through."""


@dataclass(frozen=True)
class Somebody:
    """Who comes, and what they may; `user` None: nobody has logged in."""

    name: str
    user: User | None
    right: Right
    is_administrator: bool = False

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
    names: dict[str, str]

    def at(self, path: str) -> str:
        return path.format(**self.names)


def make_world() -> World:
    alice = make_person("Alice")
    recording = make_recording(alice, title=TITLE, state=RecordingState.READY)
    (recording.folder / "peaks.json").write_text("[1]")
    write_transcript(recording, WORDS)
    session = make_session(alice, title=TITLE)
    live_sessions.record_final(event=final(session, 0, SAID))
    link, _ = share_links.create_share_link(thing=recording, hours=24, made_by=alice)
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
    ]
    names = {
        "recording": str(recording.id),
        "session": str(session.id),
        "share": str(shares[0].pk),
        "session_share": str(shares[1].pk),
        "link": str(link.id),
        "job": str(job.pk),
    }
    return World(people, names)


@pytest.fixture
def world(transactional_db: None) -> World:
    return make_world()


@asynccontextmanager
async def visitors(world: World) -> AsyncIterator[dict[str, Visitor]]:
    """All of them, logged in; then one of them is disabled."""
    async with AsyncExitStack() as stack:
        came = {}
        for somebody in world.people:
            came[somebody.name] = await stack.enter_async_context(Visitor())
            if somebody.user is None:
                await came[somebody.name].ask("GET", "/accounts/login/")  # for its CSRF token
            else:
                await came[somebody.name].log_in(somebody.user)
        await User.objects.filter(email="dora@example.org").aupdate(is_active=False)
        yield came


@asynccontextmanager
async def tools(world: World) -> AsyncIterator[dict[str, tuple[Visitor, str]]]:
    """A tool of each, with a token for everything."""
    async with AsyncExitStack() as stack:
        came = {}
        for somebody in world.people:
            secret = ""
            if somebody.user is not None:
                _, secret = await sync_to_async(ApiToken.issue)(user=somebody.user, name="Tool")
            came[somebody.name] = await stack.enter_async_context(Visitor(secret)), secret
        await User.objects.filter(email="dora@example.org").aupdate(is_active=False)
        yield came


def fault(somebody: Somebody, road: Road, answer: httpx.Response) -> str:
    """Empty where the answer is right."""
    status, to = answer.status_code, answer.headers.get("location", "")
    asks_why = to.startswith("/administration/open/")
    if somebody.may(road.right):
        if status in {401, 403, 404} or status >= 500 or to.startswith("/accounts/") or asks_why:
            return f"refused with {status} {to}"
        return ""
    if status < 300 or any(word in answer.text for word in (TITLE, WORDS, SAID)):
        return f"let in with {status}"
    if not somebody.is_signed_in:
        is_right = status == 401 or to.startswith("/accounts/login/")
    elif somebody.is_administrator and road.path in {R, L} and road.method == "GET":
        is_right = asks_why
    else:
        is_right = status == 404
    return "" if is_right else f"refused with {status} {to}"


LIKE_ANOTHER = frozenset({"reader by a team", "former reader"})
"""Who read like a reader and a stranger: what changes things need not be tried by both."""


def is_tried(somebody: Somebody, road: Road) -> bool:
    if somebody.name in LIKE_ANOTHER and road.right is not Right.READ:
        return False
    return not (road.is_end and somebody.may(road.right))


async def test_pages_media_and_exports(world: World) -> None:
    faults = []
    async with visitors(world) as came:
        for somebody in world.people:
            for road in (road for road in PAGES if is_tried(somebody, road)):
                answer = await came[somebody.name].ask(
                    road.method, world.at(road.path), road.form or None
                )
                if said := fault(somebody, road, answer):
                    faults.append(f"{somebody.name}: {road.method} {road.path}: {said}")
    assert not faults, "\n".join(faults)


async def beginning_of(path: str, token: str) -> httpx.Response:
    """Of an answer that does not end."""
    async with Exchange(path, headers={"Authorization": f"Bearer {token}"}) as exchange:
        return httpx.Response(exchange.status)


async def test_rest(world: World) -> None:
    faults = []
    async with tools(world) as came:
        for somebody in world.people:
            visitor, secret = came[somebody.name]
            for road in (road for road in REST if is_tried(somebody, road)):
                if road.is_endless:
                    answer = await beginning_of(world.at(road.path), secret)
                else:
                    answer = await visitor.ask(
                        road.method, world.at(road.path), said=road.said, headers=OF_ANOTHER_STATE
                    )
                if said := fault(somebody, road, answer):
                    faults.append(f"{somebody.name}: {road.method} {road.path}: {said}")
    assert not faults, "\n".join(faults)


# Sockets ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SocketRoad:
    """A socket that says `welcome` to those who may."""

    path: str
    right: Right
    welcome: str
    says_hello: bool = False


SOCKETS = [
    SocketRoad("/ws/v1/recordings/{recording}", Right.READ, "changed"),
    SocketRoad("/ws/v1/live/{session}/captions", Right.READ, "head"),
    SocketRoad("/ws/v1/live/{session}/capture", Right.OWN, "ready", says_hello=True),
]


async def test_sockets(world: World) -> None:
    faults = []
    async with visitors(world) as came, engine_by_hand():
        for somebody in world.people:
            client = came[somebody.name].as_client() if somebody.user else None
            for road in SOCKETS:
                page = Page(world.at(road.path), client)
                assert await page.connect()
                if road.says_hello:
                    await page.socket.send_json_to(hello())
                if somebody.may(road.right):
                    await page.hear(road.welcome)
                else:
                    code, error = await page.closing()
                    if code != (4404 if somebody.is_signed_in else 4401):
                        faults.append(f"{somebody.name}: {road.path}: {code} {error}")
                await page.leave()
    assert not faults, "\n".join(faults)


async def test_the_tools_socket_into_a_session_is_its_owner_s(world: World) -> None:
    faults = []
    async with tools(world) as came, engine_by_hand():
        for somebody in world.people:
            _, secret = came[somebody.name]
            page = Page("/ws/v1/stream", None, origin="")
            assert await page.connect()
            await page.socket.send_json_to(hello(token=secret, session=world.names["session"]))
            if somebody.may(Right.OWN):
                await page.hear("ready")
            else:
                code, error = await page.closing()
                if code != (4404 if somebody.is_signed_in else 4401):
                    faults.append(f"{somebody.name}: {code} {error}")
            await page.leave()
    assert not faults, "\n".join(faults)


# Nothing is left out ------------------------------------------------------------------------------

OF_A_THING = ("recording_id>", "thing_id>", "uuid:session_id>", "share_id>", "link_id>", "job_id>")
BEHIND_LINKS = ("s/<slug:token>", "r/<slug:token>")
"""Held by `pages.test_linked_captions` and `pages.test_linked_recordings`."""


def routes(resolver: URLResolver, before: str = "") -> Iterator[str]:
    for entry in resolver.url_patterns:
        route = before + str(entry.pattern)
        if isinstance(entry, URLPattern):
            yield route
        else:
            yield from routes(entry, route)


def test_every_address_of_a_recording_or_session_stands_in_a_road() -> None:
    anything = dict.fromkeys(
        ("recording", "session", "link", "job"), "0" * 8 + "-0000" * 4 + "0" * 8
    )
    anything |= {"share": "1", "session_share": "1"}

    def route_of(road: Road) -> str:
        return resolve(road.path.format(**anything)).route

    known = {route_of(road) for road in (*PAGES, *REST)}
    all_routes = {route for route in routes(get_resolver()) if not route.startswith("admin/")}
    of_a_thing = {route for route in all_routes if any(name in route for name in OF_A_THING)}
    assert of_a_thing - known == set()

    schema: dict[str, Any] = api.get_openapi_schema()["paths"]
    operations = {
        (method.upper(), path.lstrip("/").replace("{", "<").replace("}", ">"))
        for path, methods in schema.items()
        for method in methods
    }
    of_a_thing_by_rest = {
        (method, route)
        for method, route in operations
        if any(f"<{name}_id>" in route for name in ("recording", "session", "share", "job"))
    }
    assert of_a_thing_by_rest - {(road.method, route_of(road)) for road in REST} == set()
