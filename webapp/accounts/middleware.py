"""Shows times in the zone of the person who reads.

The zone is the person's own setting, else the browser's, which the page's script keeps in the
`time_zone` cookie; an unknown name is ignored.
"""

from __future__ import annotations

import zoneinfo

from django.http import HttpRequest
from django.utils import timezone
from django.utils.deprecation import MiddlewareMixin


class PersonTimeZoneMiddleware(MiddlewareMixin):
    """Activates the zone for the length of one request."""

    def process_request(self, request: HttpRequest) -> None:
        own = getattr(request.user, "time_zone", "") if hasattr(request, "user") else ""
        name = own or request.COOKIES.get("time_zone", "")
        if name in zoneinfo.available_timezones():
            timezone.activate(zoneinfo.ZoneInfo(name))
        else:
            timezone.deactivate()
