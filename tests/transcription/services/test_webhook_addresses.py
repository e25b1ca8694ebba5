"""Where webhooks may go: the list, and the one lookup."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from pydantic import ValidationError
from pytest_django.fixtures import Settings as DjangoSettings

from transcription.errors import InvalidInputError
from transcription.services import webhook_addresses
from transcription.services.webhook_addresses import AddressNotAllowedError, Target, target_of
from webapp.config import Settings


@pytest.fixture
def allow(settings: DjangoSettings) -> Any:
    def make(hosts: str) -> None:
        settings.SITE = settings.SITE.model_copy(update={"webhook_hosts": hosts})

    return make


@pytest.fixture
def lead(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`lead("10.0.0.5")`: what every name leads to; each lookup is counted."""
    lookups: list[str] = []

    def make(*addresses: str) -> list[str]:
        def getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
            lookups.append(host)
            return [(2, 1, 6, "", (address, port)) for address in addresses]

        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
        return lookups

    return make


@pytest.mark.parametrize(
    "url",
    [
        "ftp://hooks.example.org/",
        "//hooks.example.org/",
        "https://",
        "https://user:secret@hooks.example.org/",
        "https://hooks.example.org:99999/",
        "https://hooks.example.org/a b",
        "https://hooks.example.org/\r\nX: y",
        "https://hüks.example.org/",
        "file:///etc/passwd",
        "gopher://hooks.example.org/",
        "https://[fe80::1",
    ],
)
def test_what_is_no_address_of_the_web_is_refused(url: str, allow: Any) -> None:
    allow("hooks.example.org")
    with pytest.raises(InvalidInputError):
        target_of(url)


def test_the_list_is_empty_by_default(lead: Any) -> None:
    lead("10.1.2.3")
    with pytest.raises(AddressNotAllowedError):
        target_of("https://hooks.example.org/")
    with pytest.raises(AddressNotAllowedError):
        webhook_addresses.resolve(Target("hooks.example.org", 443))


def test_a_listed_name_leads_where_its_lookup_says(allow: Any, lead: Any) -> None:
    allow("hooks.example.org, *.tools.example.org")
    lead("10.1.2.3")
    for name in ("hooks.example.org", "HOOKS.example.org", "n8n.tools.example.org"):
        target = target_of(f"https://{name}/x")
        assert str(webhook_addresses.resolve(target)) == "10.1.2.3"


@pytest.mark.parametrize("name", ["tools.example.org", "eviltools.example.org", "example.org"])
def test_a_name_that_only_looks_like_a_listed_one_is_refused(
    name: str, allow: Any, lead: Any
) -> None:
    allow("*.tools.example.org")
    lead("10.1.2.3")
    with pytest.raises(AddressNotAllowedError):
        webhook_addresses.resolve(Target(name, 443))


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "::1",
        "0.0.0.0",  # noqa: S104  # nothing is bound
        "169.254.169.254",
        "fe80::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "224.0.0.1",
    ],
)
def test_a_listed_name_never_leads_to_this_machine_itself(
    address: str, allow: Any, lead: Any
) -> None:
    allow("hooks.example.org,10.0.0.0/8")
    lead(address)
    with pytest.raises(AddressNotAllowedError):
        webhook_addresses.resolve(Target("hooks.example.org", 443))


def test_any_name_may_lead_into_a_listed_network_and_nowhere_else(allow: Any, lead: Any) -> None:
    allow("10.1.0.0/16")
    lead("10.1.2.3")
    assert str(webhook_addresses.resolve(target_of("https://any.example.org/"))) == "10.1.2.3"
    lead("10.2.2.3")
    with pytest.raises(AddressNotAllowedError):
        webhook_addresses.resolve(Target("any.example.org", 443))


@pytest.mark.parametrize("host", ["10.2.0.1", "127.0.0.1", "[::1]", "[::ffff:10.2.0.1]"])
def test_an_address_outside_the_listed_networks_is_refused(host: str, allow: Any) -> None:
    allow("10.1.0.0/16,hooks.example.org")
    with pytest.raises(AddressNotAllowedError):
        target_of(f"http://{host}/")


@pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "0177.0.0.1"])
def test_an_address_written_in_another_way_is_judged_by_what_it_leads_to(
    host: str, allow: Any, lead: Any
) -> None:
    allow("10.1.0.0/16")
    lead("127.0.0.1")
    with pytest.raises(AddressNotAllowedError):
        webhook_addresses.resolve(target_of(f"http://{host}/"))


def test_a_listed_network_may_be_this_machine(allow: Any) -> None:
    allow("127.0.0.0/8")
    assert str(webhook_addresses.resolve(target_of("http://127.0.0.1:8080/"))) == "127.0.0.1"


def test_of_several_addresses_an_allowed_one_is_taken(allow: Any, lead: Any) -> None:
    allow("10.1.0.0/16")
    lead("192.0.2.1", "10.1.0.9")
    assert str(webhook_addresses.resolve(Target("any.example.org", 80))) == "10.1.0.9"


def test_a_mistyped_network_stops_the_start() -> None:
    with pytest.raises(ValidationError, match="webhook_hosts"):
        Settings(secret_key="x", webhook_hosts="10.1.0.0/64")
