"""Who gets what by which road: each person, at each address and socket of a recording and of a live
session, through the real application and a real log-in.

An address that names one of them and stands in no road here fails the last test.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import httpx
import pytest
from django.core.cache import cache
from django.urls import URLPattern, URLResolver, get_resolver, resolve
from pytest_django.fixtures import Settings

from tests.fakes.asgi import Exchange
from tests.fakes.live import Page, engine_by_hand, hello
from tests.fakes.rights import (
    BEHIND_LINKS,
    OF_ANOTHER_STATE,
    PAGES,
    REST,
    SAID,
    TITLE,
    WORDS,
    L,
    Link,
    R,
    Right,
    Road,
    Somebody,
    World,
    make_world,
    tools,
    visitors,
)
from tests.fakes.visitors import Visitor
from transcription.api.v1 import api
from transcription.services import rate_limits, share_links


@pytest.fixture
def world(transactional_db: None) -> World:
    return make_world()


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


async def test_rest(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    faults = []
    monkeypatch.setattr(rate_limits, "REFUSED_TOKENS", 10_000)
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


# Links --------------------------------------------------------------------------------------------


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Wrong links slow nobody down."""
    monkeypatch.setattr(share_links, "MAX_WRONG_TOKENS", 10_000)
    yield
    cache.delete("wrong-links:127.0.0.1")


async def faults_of_links(links: dict[str, Link]) -> list[str]:
    """What is wrong where each is tried at every address behind links, and at the socket of
    captions."""
    faults = []
    async with Visitor() as guest:
        for name, link in links.items():
            for path, is_open in link.roads():
                answer = await guest.ask("GET", path)
                tells = any(word in answer.text for word in (TITLE, WORDS, SAID))
                if answer.status_code != (200 if is_open else 404) or (tells and not is_open):
                    faults.append(f"{name}: {path}: {answer.status_code}")
    return faults


async def faults_of_captions(world: World, links: dict[str, Link]) -> list[str]:
    faults = []
    for name, link in links.items():
        page = Page(world.at("/ws/v1/live/{session}/captions?by=link"), None)
        assert await page.connect()
        await page.say(type="link", token=link.token)
        if link.is_open and link.to == "captions":
            await page.hear("head")
        else:
            code, error = await page.closing()
            if code != 4404:
                faults.append(f"{name}: {code} {error}")
        await page.leave()
    return faults


async def test_a_link_opens_what_it_is_for_while_it_is_open(world: World, patient: None) -> None:
    faults = await faults_of_links(world.links)
    async with engine_by_hand():
        faults += await faults_of_captions(world, world.links)
    assert not faults, "\n".join(faults)


async def test_where_links_are_switched_off_none_opens_anything(
    world: World, patient: None, settings: Settings
) -> None:
    settings.SITE = settings.SITE.model_copy(update={"share_links": False})
    closed = {name: replace(link, is_open=False) for name, link in world.links.items()}
    faults = await faults_of_links(closed)
    async with engine_by_hand():
        faults += await faults_of_captions(world, closed)
    assert not faults, "\n".join(faults)


# Nothing is left out ------------------------------------------------------------------------------

OF_A_THING = ("recording_id>", "thing_id>", "uuid:session_id>", "share_id>", "link_id>", "job_id>")


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
    behind_links = {route for route in all_routes if "<slug:token>" in route}
    paths = (path for paths in BEHIND_LINKS.values() for path in paths)
    assert behind_links - {resolve(path.format(token="a")).route for path in paths} == set()

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
