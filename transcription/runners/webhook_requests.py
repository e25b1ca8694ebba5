"""One request of a webhook, to an address that was judged, with an end to everything.

Follows no redirection and no proxy, reads no more of the answer than its head, and takes ten
seconds at the most, however slowly the other side speaks.
"""

from __future__ import annotations

import asyncio
import functools
import ssl
from collections.abc import Iterable
from typing import Any, Final

import httpcore
import structlog

from transcription.errors import InvalidInputError
from transcription.services.webhook_addresses import resolve, target_of
from transcription.services.webhook_deliveries import Dispatch, Outcome

log = structlog.get_logger(__name__)

TIMEOUT_S: Final = 10.0


class _JudgedAddress(httpcore.AnyIOBackend):
    """Connects to one address, whatever name the request has for it."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self._address = address

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  # httpcore's own signature
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        return await super().connect_tcp(
            self._address, port, timeout, local_address, socket_options
        )


def post(dispatch: Dispatch) -> Outcome:
    """Send, and say what came of it in a sentence. Raises nothing."""
    try:
        return asyncio.run(_post_in_time(dispatch))
    except TimeoutError:
        return Outcome(None, f"The address did not answer within {TIMEOUT_S:.0f} seconds.")
    except InvalidInputError as error:
        return Outcome(None, error.text)
    except httpcore.ConnectError as error:
        if isinstance(error.__cause__, ssl.SSLError) or "CERTIFICATE" in str(error):
            return Outcome(None, "The certificate of the address is not trusted here.")
        return Outcome(None, "The address could not be reached.")
    except OSError:
        return Outcome(None, "The name in the address is not known, or it could not be reached.")
    except Exception as error:  # noqa: BLE001 - whatever a stranger's answer is made of
        log.info("webhook_not_sent", error=type(error).__name__)
        return Outcome(None, "The address did not answer as a web server does.")


async def _post_in_time(dispatch: Dispatch) -> Outcome:
    async with asyncio.timeout(TIMEOUT_S):
        return await _post(dispatch)


async def _post(dispatch: Dispatch) -> Outcome:
    address = await asyncio.to_thread(resolve, target_of(dispatch.url))
    async with (
        httpcore.AsyncConnectionPool(
            ssl_context=_certificates(), network_backend=_JudgedAddress(str(address))
        ) as pool,
        pool.stream(
            "POST", dispatch.url, headers=list(dispatch.headers.items()), content=dispatch.body
        ) as answer,
    ):
        status = answer.status
    if 200 <= status < 300:
        return Outcome(status)
    if 300 <= status < 400:
        return Outcome(status, f"The address sends elsewhere (status {status}), which is refused.")
    return Outcome(status, f"The address answered with status {status}.")


@functools.cache
def _certificates() -> ssl.SSLContext:
    """Those that the machine trusts, with `SSL_CERT_FILE` where it is set."""
    return ssl.create_default_context()
