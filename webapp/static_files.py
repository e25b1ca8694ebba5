"""WhiteNoise on the event loop.

WhiteNoise's own middleware is synchronous. Between the server and the views, it would hold a thread
for as long as an asynchronous view waits, and keep from that view that its client has gone.
"""

from __future__ import annotations

from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction, sync_to_async
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from whitenoise.middleware import WhiteNoiseMiddleware


class StaticFilesMiddleware(WhiteNoiseMiddleware):
    """The same files and headers; asynchronous where what it surrounds is."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Any) -> None:
        super().__init__(get_response)
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Any:
        if iscoroutinefunction(self):
            return self._answer(request)
        return super().__call__(request)

    async def _answer(self, request: HttpRequest) -> HttpResponseBase:
        if self.autorefresh:
            file = await sync_to_async(self.find_file)(request.path_info)
        else:
            file = self.files.get(request.path_info)
        if file is None:
            answer: HttpResponseBase = await self.get_response(request)
        else:
            answer = await sync_to_async(self.serve)(file, request)
        return answer
