"""What a request is surrounded by: the person's time zone, and where their acts come from.

The zone is the person's own setting, else the browser's, which the page's script keeps in the
`time_zone` cookie; an unknown name is ignored.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.decorators import sync_and_async_middleware
from django.utils.deprecation import MiddlewareMixin

from webapp.accounts.audit import acts_from

Answer = Callable[[HttpRequest], HttpResponseBase]
AsyncAnswer = Callable[[HttpRequest], Awaitable[HttpResponseBase]]


class PersonTimeZoneMiddleware(MiddlewareMixin):
    """Activates the zone for the length of one request."""

    def process_request(self, request: HttpRequest) -> None:
        own = getattr(request.user, "time_zone", "") if hasattr(request, "user") else ""
        name = own or request.COOKIES.get("time_zone", "")
        if name in zoneinfo.available_timezones():
            timezone.activate(zoneinfo.ZoneInfo(name))
        else:
            timezone.deactivate()


@sync_and_async_middleware
def acts_of_requests(get_response: Answer | AsyncAnswer) -> Answer | AsyncAnswer:
    """Tells the audit log the address that a request came from."""
    if iscoroutinefunction(get_response):
        answer_later: AsyncAnswer = get_response

        async def answer_async(request: HttpRequest) -> HttpResponseBase:
            with acts_from(request.META.get("REMOTE_ADDR")):
                return await answer_later(request)

        return answer_async
    answer: Answer = get_response  # type: ignore[assignment]  # the other of the two

    def answer_sync(request: HttpRequest) -> HttpResponseBase:
        with acts_from(request.META.get("REMOTE_ADDR")):
            return answer(request)

    return answer_sync


def acts_of_sockets(application: Any) -> Any:
    """The same around the sockets' ASGI application."""

    async def surrounded(scope: dict[str, Any], receive: Any, send: Any) -> None:
        with acts_from((scope.get("client") or [None])[0]):
            await application(scope, receive, send)

    return surrounded
