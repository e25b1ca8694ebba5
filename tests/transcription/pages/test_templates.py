"""What holds for every page: nothing inline, the policy that enforces it, sprites that exist."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client

from webapp.accounts.models import User

ClientOf = Callable[[User | None], Client]

ROOT = Path(settings.BASE_DIR)
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
NAMES = [str(path.relative_to(ROOT / "templates")) for path in TEMPLATES]

FORBIDDEN = {
    "script with code in the page": re.compile(
        r"<script(?![^>]*\bsrc=)(?![^>]*type=\"application/json\")", re.IGNORECASE
    ),
    "style element": re.compile(r"<style\b", re.IGNORECASE),
    "style attribute": re.compile(r"\sstyle\s*=", re.IGNORECASE),
    "event attribute": re.compile(r"<[^>{%]*\s(hx-)?on[a-z:-]+\s*=", re.IGNORECASE),
    "address that runs": re.compile(r"javascript:", re.IGNORECASE),
    "other server": re.compile(r"(src|href|action)=[\"']?(https?:)?//", re.IGNORECASE),
    "text marked safe": re.compile(r"\|safe\b|autoescape off"),
}
# Help texts come from Django's password validators, not from people.
SAFE_HELP_TEXT = "includes/field.html"


@pytest.mark.parametrize("path", TEMPLATES, ids=NAMES)
def test_template_has_nothing_inline(path: Path) -> None:
    text = path.read_text()
    for what, pattern in FORBIDDEN.items():
        if what == "text marked safe" and str(path).endswith(SAFE_HELP_TEXT):
            continue
        assert not pattern.search(text), what


@pytest.mark.parametrize("path", TEMPLATES, ids=NAMES)
def test_icons_are_in_the_sprite(path: Path) -> None:
    sprite = (ROOT / "static" / "img" / "icons.svg").read_text()
    for name in re.findall(r'{% icon "([^"]+)"', path.read_text()):
        assert f'id="{name}"' in sprite


@pytest.mark.parametrize("path", ["/", "/profile/", "/accounts/password/change/", "/nowhere/"])
def test_policy_forbids_inline_code(alice: User, client_of: ClientOf, path: str) -> None:
    policy = client_of(alice).get(path)["Content-Security-Policy"]
    assert "unsafe-inline" not in policy
    assert "unsafe-eval" not in policy
    assert "default-src 'self'" in policy
    assert "object-src 'none'" in policy


@pytest.mark.parametrize(
    "path",
    [
        "/accounts/login/",
        "/accounts/signup/",
        "/accounts/password/reset/",
        "/accounts/password/reset/done/",
        "/accounts/password/reset/key/1-set-password/",
        "/accounts/inactive/",
    ],
)
def test_account_pages_of_the_anonymous_are_quiet_cards(
    client_of: ClientOf, db: None, path: str
) -> None:
    response = client_of(None).get(path)
    assert response.status_code == 200
    page = response.content.decode()
    assert "card-quiet" in page
    assert "Search recordings" not in page
    assert page.count("<h1") == 1


@pytest.mark.parametrize(
    "path",
    [
        "/accounts/login/",
        "/accounts/password/reset/",
        "/accounts/password/change/",
        "/accounts/reauthenticate/",
    ],
)
def test_account_forms_speak_our_words(alice: User, client_of: ClientOf, path: str) -> None:
    is_entrance = path in {"/accounts/login/", "/accounts/password/reset/"}
    page = client_of(None if is_entrance else alice).get(path).content.decode()
    form = page[page.index("<h1") : page.index("</main>")]
    assert "placeholder" not in form
    assert form.count("autofocus") == 1
    assert re.findall(r"<label[^>]*>([^<]*)</label>", form)
    assert not re.search(r"<label[^>]*>\w+ (Password|Address)|>Email<", form)


def test_administration_is_called_by_our_name(alice: User, client_of: ClientOf) -> None:
    alice.role = "administrator"
    alice.is_staff = alice.is_superuser = True
    alice.save()
    page = client_of(alice).get("/admin/").content.decode()
    assert "Administration of Transcription" in page
    assert "Django" not in page


@pytest.mark.parametrize(
    "path",
    [
        "/accounts/logout/",
        "/accounts/password/change/",
        "/accounts/reauthenticate/",
        "/accounts/2fa/",
    ],
)
def test_account_pages_of_a_person_are_quiet_cards(
    alice: User, client_of: ClientOf, path: str
) -> None:
    response = client_of(alice).get(path)
    assert response.status_code == 200
    assert "card-quiet" in response.content.decode()


def test_log_in_says_what_is_wrong_and_returns_where_the_person_was(
    alice: User, client_of: ClientOf
) -> None:
    client = client_of(None)
    address = "/accounts/login/?next=/profile/"
    wrong = client.post(address, {"login": alice.email, "password": "wrong"})
    assert "strip-danger" in wrong.content.decode()
    assert wrong.context["form"].fields["password"].widget.attrs["autofocus"]
    right = client.post(address, {"login": alice.email, "password": "correct horse battery staple"})
    assert right["Location"] == "/profile/"


@pytest.mark.parametrize(
    ("cookie", "expected"),
    [("dark", ' data-theme="dark"'), ("light", ' data-theme="light"'), ('"><b>', "")],
)
def test_theme_is_in_the_first_byte_of_the_page(
    client_of: ClientOf, db: None, cookie: str, expected: str
) -> None:
    client = client_of(None)
    client.cookies["theme"] = cookie
    page = client.get("/accounts/login/").content.decode()
    assert f'<html lang="en"{expected}>' in page


def test_htmx_may_evaluate_nothing(client_of: ClientOf, db: None) -> None:
    page = client_of(None).get("/accounts/login/").content.decode()
    assert '"allowEval": false' in page
    assert '"includeIndicatorStyles": false' in page
