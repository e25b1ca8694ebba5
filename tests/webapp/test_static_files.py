"""Nothing between the server and a view holds a thread while the view waits."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from asgiref.testing import ApplicationCommunicator
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.test import AsyncClient, Client, override_settings
from django.urls import path
from django.utils.module_loading import import_string

from webapp.asgi import application

CONTENT = b"p { color: black }"


@pytest.mark.parametrize("name", settings.MIDDLEWARE)
def test_each_middleware_is_asynchronous(name: str) -> None:
    """One that is not holds a thread for each client that waits for a transcript."""
    assert import_string(name).async_capable


class Waiting:
    """What the view that waits has met."""

    begun = asyncio.Event()
    is_cancelled = False


async def wait(request: HttpRequest) -> HttpResponse:
    Waiting.begun.set()
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        Waiting.is_cancelled = True
        raise
    return HttpResponse()


urlpatterns = [path("wait", wait)]


@pytest.mark.django_db(transaction=True)
async def test_a_view_that_waits_hears_that_its_client_has_gone() -> None:
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "path": "/wait",
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
    }
    with override_settings(ROOT_URLCONF=__name__):
        communicator = ApplicationCommunicator(application, scope)
        await communicator.send_input({"type": "http.request", "body": b""})
        async with asyncio.timeout(20):
            await Waiting.begun.wait()
        await communicator.send_input({"type": "http.disconnect"})
        await communicator.wait(timeout=20)
    assert Waiting.is_cancelled


@pytest.fixture
def static_file() -> str:
    (Path(settings.STATIC_ROOT) / "a.css").write_bytes(CONTENT)
    return "/static/a.css"


@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume synchronous iterators")
@override_settings(WHITENOISE_AUTOREFRESH=True)
async def test_a_static_file_is_sent_by_an_asynchronous_server(static_file: str) -> None:
    answer = await AsyncClient().get(static_file)
    body = b"".join([part async for part in answer])  # type: ignore[attr-defined]  # it streams
    assert (answer.status_code, body) == (200, CONTENT)


@override_settings(WHITENOISE_AUTOREFRESH=True)
def test_a_static_file_is_sent_by_a_synchronous_one(static_file: str) -> None:
    assert Client().get(static_file).getvalue() == CONTENT
