"""HTTP and WebSocket entry of the web process."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
django_application = get_asgi_application()

# After Django is set up: these import models.
from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402

from transcription.realtime.origins import browser_origin_validator  # noqa: E402
from transcription.realtime.urls import websocket_urlpatterns  # noqa: E402
from webapp.accounts.middleware import acts_of_sockets  # noqa: E402
from webapp.celery import app as celery_app  # noqa: E402, F401  # send_task needs the current app

application = ProtocolTypeRouter(
    {
        "http": django_application,
        "websocket": browser_origin_validator(
            acts_of_sockets(AuthMiddlewareStack(URLRouter(websocket_urlpatterns)))
        ),
    }
)
