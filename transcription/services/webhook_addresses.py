"""Where webhooks may go: the administrator's list of names and networks, and the one lookup.

The server stands inside the network, so whoever could choose its requests freely could reach what a
browser outside cannot. A name is looked up once, by `resolve`, and the request goes to the address
that was judged: a second lookup might answer otherwise.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import urlsplit

from django.conf import settings

from transcription.errors import InvalidInputError

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

NOWHERE = (
    "An administrator has not allowed webhooks to this address. It must stand in "
    "TRANSCRIBE_WEBHOOK_HOSTS."
)


class AddressNotAllowedError(InvalidInputError):
    """The administrator's list does not have it."""

    sentence = NOWHERE


@dataclass(frozen=True, slots=True)
class Target:
    """A judged URL. `host` is as in the URL, without brackets, in small letters."""

    host: str
    port: int


def target_of(url: str) -> Target:
    """Judge `url` as far as that goes without a lookup, for who enters it.

    Raises InvalidInputError for what is no http address, AddressNotAllowedError.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise InvalidInputError("This is not an address of the web.") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise InvalidInputError("The address must begin with https:// or http:// and name a host.")
    if parts.username is not None or parts.password is not None:
        raise InvalidInputError("The address must hold no user name and no password.")
    if not url.isascii() or any(character <= " " or character == "\x7f" for character in url):
        raise InvalidInputError("The address must be of plain letters, without spaces.")
    target = Target(parts.hostname, port or (443 if parts.scheme == "https" else 80))
    literal = _literal(target.host)
    if literal is None:
        # A name that is not listed may still lead into a listed network: `resolve` will know.
        if not _is_named(target.host) and not settings.SITE.webhook_networks:
            raise AddressNotAllowedError
    elif not _is_allowed(literal, is_named=False):
        raise AddressNotAllowedError
    return target


def resolve(target: Target) -> Address:
    """The first allowed address of `target`. Raises AddressNotAllowedError, OSError."""
    literal = _literal(target.host)
    if literal is not None:
        addresses: Iterable[Address] = [literal]
    else:
        found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
        addresses = [ip_address(str(entry[4][0]).partition("%")[0]) for entry in found]
    is_named = literal is None and _is_named(target.host)
    for address in addresses:
        if _is_allowed(address, is_named=is_named):
            return address
    raise AddressNotAllowedError


def _literal(host: str) -> Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _is_named(host: str) -> bool:
    for name in settings.SITE.webhook_names:
        if host == name or (name.startswith("*.") and host.endswith(name[1:])):
            return True
    return False


def _is_allowed(address: Address, *, is_named: bool) -> bool:
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if any(address in network for network in settings.SITE.webhook_networks):
        return True
    # Of a listed name any address is meant, but none by which a machine speaks to itself or to its
    # cloud: who answers for the name in the DNS is not who wrote the list.
    is_special = (
        address.is_loopback
        or address.is_link_local
        or address.is_unspecified
        or address.is_multicast
        or address.is_reserved
    )
    return is_named and not is_special
