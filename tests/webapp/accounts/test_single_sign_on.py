"""Single sign-on with a real OpenID provider: who comes in, as whom, and who does not."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.core.cache import cache
from django.test import Client
from pydantic import SecretStr, ValidationError
from pytest_django.fixtures import Settings

from tests.fakes.openid_provider import OpenIdProvider, running_openid_provider
from tests.fakes.people import PASSWORD
from webapp.accounts import people
from webapp.accounts.models import Act, AuditEntry, Role, User
from webapp.config import Settings as Site

pytestmark = pytest.mark.django_db
BEGIN = "/accounts/oidc/sso/login/"


@pytest.fixture(scope="module")
def provider() -> Iterator[OpenIdProvider]:
    with running_openid_provider() as provider:
        yield provider


@pytest.fixture(autouse=True)
def switched_on(provider: OpenIdProvider, settings: Settings) -> None:
    cache.clear()
    switch_on(settings, provider.url)


def switch_on(settings: Settings, url: str, **more: Any) -> None:
    app = {
        "provider_id": "sso",
        "name": "Example login",
        "client_id": "transcription",
        "secret": "secret",
        "settings": {"server_url": url, "verified_email": False, **more},
    }
    changed = copy.deepcopy(settings.SOCIALACCOUNT_PROVIDERS)
    changed["openid_connect"]["APPS"] = [app]
    settings.SOCIALACCOUNT_PROVIDERS = changed


def open_domains(settings: Settings, domains: str) -> None:
    settings.SITE = settings.SITE.model_copy(update={"sign_up_domains": domains})


def come_in(provider: OpenIdProvider, subject: str, client: Client | None = None) -> Client:
    """The whole road of a browser: our page, the provider's, and back."""
    client = client or Client()
    to_provider = client.get(BEGIN)
    assert to_provider.status_code == 302
    back = provider.agrees(to_provider["Location"], subject)
    client.last_answer = client.get(back, follow=True)  # type: ignore[attr-defined]
    return client


def words_of(client: Client) -> str:
    text: str = client.last_answer.content.decode()  # type: ignore[attr-defined]
    return text


def person_of(client: Client) -> User | None:
    key = client.session.get("_auth_user_id")
    return User.objects.get(pk=key) if key else None


def test_known_address_comes_in_as_its_person(provider: OpenIdProvider, alice: User) -> None:
    provider.knows("a-1", email="Alice@example.org", email_verified=True, name="Alice A.")
    assert person_of(come_in(provider, "a-1")) == alice
    alice.refresh_from_db()
    assert alice.name == "Alice"
    assert alice.check_password(PASSWORD), "a first log-in by the provider keeps the password"


def test_person_is_known_again_by_subject_after_the_address_changed(
    provider: OpenIdProvider, alice: User
) -> None:
    provider.knows("a-2", email="alice@example.org", email_verified=True)
    come_in(provider, "a-2")
    provider.knows("a-2", email="alice.new@example.org", email_verified=False)
    assert person_of(come_in(provider, "a-2")) == alice


def test_request_carries_state_and_pkce(provider: OpenIdProvider) -> None:
    query = parse_qs(urlsplit(Client().get(BEGIN)["Location"]).query)
    assert query["code_challenge_method"] == ["S256"]
    assert query["state"][0]
    assert set(query["scope"][0].split()) == {"openid", "profile", "email"}
    assert query["redirect_uri"] == ["http://testserver/accounts/oidc/sso/login/callback/"]


def test_address_that_nobody_vouches_for_opens_nothing(
    provider: OpenIdProvider, alice: User
) -> None:
    provider.knows("eve", email="alice@example.org", email_verified=False)
    client = come_in(provider, "eve")
    assert person_of(client) is None
    assert "Your address is not confirmed" in words_of(client)


def test_trusted_provider_need_not_vouch(
    provider: OpenIdProvider, alice: User, settings: Settings
) -> None:
    switch_on(settings, provider.url, verified_email=True)
    provider.knows("a-3", email="alice@example.org")
    assert person_of(come_in(provider, "a-3")) == alice


def test_unknown_address_is_turned_away(provider: OpenIdProvider) -> None:
    provider.knows("dan", email="dan@example.org", email_verified=True)
    client = come_in(provider, "dan")
    assert person_of(client) is None
    assert "Accounts are made by an administrator" in words_of(client)
    assert not User.objects.exists()


@pytest.mark.parametrize(
    ("address", "is_let_in"),
    [
        ("dan@example.org", True),
        ("dan@EXAMPLE.ORG", True),
        ("dan@sub.example.org", False),
        ("dan@notexample.org", False),
        ("dan@example.org.evil.net", False),
    ],
)
def test_open_domain_needs_no_invitation(
    provider: OpenIdProvider, settings: Settings, address: str, is_let_in: bool
) -> None:
    open_domains(settings, "example.org, example.net")
    provider.knows("d-1", email=address, email_verified=True, name="Dan <D>")
    person = person_of(come_in(provider, "d-1"))
    if not is_let_in:
        assert person is None
        assert not User.objects.exists()
        return
    assert person is not None
    assert (person.name, person.role, person.has_usable_password()) == ("Dan <D>", "staff", False)
    assert AuditEntry.objects.filter(act=Act.INVITED, detail={"by": "single sign-on"}).exists()


def test_open_domain_without_a_vouched_address_stays_shut(
    provider: OpenIdProvider, settings: Settings
) -> None:
    open_domains(settings, "example.org")
    provider.knows("d-2", email="boss@example.org", email_verified=False)
    assert person_of(come_in(provider, "d-2")) is None
    assert not User.objects.exists()


def test_disabled_person_is_refused_the_first_time_and_later(
    provider: OpenIdProvider, alice: User, administrator: User
) -> None:
    provider.knows("a-4", email="alice@example.org", email_verified=True)
    people.disable_person(person=alice, disabled_by=administrator)
    client = come_in(provider, "a-4")
    assert person_of(client) is None
    assert "This account is disabled" in words_of(client)
    people.enable_person(person=alice, enabled_by=administrator)
    come_in(provider, "a-4")
    people.disable_person(person=alice, disabled_by=administrator)
    assert person_of(come_in(provider, "a-4")) is None


def test_service_account_is_refused(provider: OpenIdProvider) -> None:
    User.objects.create_user("tool@example.org", None, role=Role.SERVICE)
    provider.knows("t-1", email="tool@example.org", email_verified=True)
    assert person_of(come_in(provider, "t-1")) is None


def test_who_is_logged_in_ties_no_other_identity_to_themselves(
    provider: OpenIdProvider, alice: User, bob: User
) -> None:
    provider.knows("b-1", email="bob@example.org", email_verified=True)
    client = Client()
    client.force_login(alice)
    to_provider = client.get(f"{BEGIN}?process=connect")
    client.get(provider.agrees(to_provider["Location"], "b-1"))
    assert person_of(come_in(provider, "b-1")) == bob


def test_cancelled_and_forged_answers_log_nobody_in(provider: OpenIdProvider, alice: User) -> None:
    client = Client()
    to_provider = client.get(BEGIN)["Location"]
    answer = client.get(provider.is_denied(to_provider), follow=True).content.decode()
    assert "You are not logged in" in answer
    forged = Client().get(f"{BEGIN}callback/?code=x&state=y")
    assert "Single sign-on did not work" in forged.content.decode()
    provider.knows("a-5", email="alice@example.org", email_verified=True)
    stolen = provider.agrees(client.get(BEGIN)["Location"], "a-5")
    other_browser = Client()
    other_browser.get(stolen)
    assert person_of(other_browser) is None


def test_a_provider_that_is_away_is_said_in_words(settings: Settings) -> None:
    switch_on(settings, "http://127.0.0.1:9")
    answer = Client().get(BEGIN)
    assert answer.status_code == 503
    assert "Single sign-on did not work" in answer.content.decode()


def test_log_in_page_offers_it_by_its_name_only_when_switched_on(settings: Settings) -> None:
    page = Client().get("/accounts/login/?next=/glossary/").content.decode()
    assert "Log in by Example login" in page
    assert "next=%2Fglossary%2F" in page
    changed = copy.deepcopy(settings.SOCIALACCOUNT_PROVIDERS)
    changed["openid_connect"]["APPS"] = []
    settings.SOCIALACCOUNT_PROVIDERS = changed
    assert "Log in by Example login" not in Client().get("/accounts/login/").content.decode()
    assert Client().get(BEGIN).status_code == 404


@pytest.mark.parametrize("url", ["http://login.example.org", "ftp://localhost", "login"])
def test_provider_without_tls_is_refused_at_start(url: str) -> None:
    with pytest.raises(ValidationError, match="https"):
        Site(secret_key=SecretStr("x"), oidc_url=url)


def test_single_sign_on_without_a_client_is_refused_at_start() -> None:
    with pytest.raises(ValidationError, match="OIDC_CLIENT_ID"):
        Site(secret_key=SecretStr("x"), oidc_url="https://login.example.org")
