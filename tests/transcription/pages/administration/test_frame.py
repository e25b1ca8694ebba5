"""The frame of the administration: who gets in, and where its navigation leads."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import URLPattern, reverse

from transcription.pages.administration.urls import urlpatterns
from transcription.templatetags.administration import PAGES
from webapp.accounts.models import Role, User

ClientOf = Callable[[User | None], Client]
FRONT = "/administration/"


@pytest.mark.parametrize("pattern", urlpatterns, ids=lambda pattern: str(pattern.pattern) or "/")
def test_every_page_hides_from_others_than_administrators(
    alice: User, client_of: ClientOf, pattern: URLPattern
) -> None:
    values = {
        name: "00000000-0000-4000-8000-000000000000"
        if type(converter).__name__ == "UUIDConverter"
        else 1
        for name, converter in pattern.pattern.converters.items()
    }
    address = reverse(str(pattern.name), kwargs=values)
    for verb in ("get", "post"):
        assert getattr(client_of(alice), verb)(address).status_code == 404
        assert getattr(client_of(None), verb)(address)["Location"].startswith("/accounts/login/")


def test_the_front_page_is_reached_by_the_menu(admin: User, client_of: ClientOf) -> None:
    assert f'href="{FRONT}"' in client_of(admin).get("/").content.decode()
    assert client_of(admin).get(FRONT).status_code == 200


def test_the_menu_of_others_does_not_lead_there(alice: User, client_of: ClientOf) -> None:
    assert f'href="{FRONT}"' not in client_of(alice).get("/").content.decode()


def test_who_is_no_administrator_any_more_is_out_at_once(admin: User, client_of: ClientOf) -> None:
    client = client_of(admin)
    assert client.get(FRONT).status_code == 200
    User.objects.filter(pk=admin.pk).update(role=Role.STAFF)
    assert client.get(FRONT).status_code == 404


def test_the_navigation_marks_the_page_that_is_shown(admin: User, client_of: ClientOf) -> None:
    for name in ("administration", "glossary"):
        page = client_of(admin).get(reverse(name)).content.decode()
        marked = re.findall(r'href="([^"]+)" aria-current="page"', page)
        assert marked == [reverse(name)]


def test_djangos_tables_stay_within_reach(admin: User, client_of: ClientOf) -> None:
    assert 'href="/admin/"' in client_of(admin).get(FRONT).content.decode()
    assert client_of(admin).get("/admin/").status_code == 200


def test_an_entry_of_the_navigation_has_an_icon_of_the_sprite() -> None:
    from django.conf import settings

    sprite = (settings.BASE_DIR / "static/img/icons.svg").read_text()
    for _, _, icon in PAGES:
        assert f'id="{icon}"' in sprite
