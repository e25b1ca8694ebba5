"""Storage: how much lies here, by person and by age."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests.fakes.recordings import make_recording, make_upload
from transcription.models import Recording
from transcription.services import machine
from webapp.accounts.models import User

ADDRESS = "/administration/storage/"
MB = 1024**2


def shown(client: Client) -> str:
    response = client.get(ADDRESS)
    assert response.status_code == 200
    return re.sub(r"\s+", " ", response.content.decode())


def share_of(page: str, name: str) -> str:
    """The words behind the bar of one line."""
    found = re.search(rf"<li class=\"share\"><span>{name}.*?</li>", page)
    assert found is not None
    return re.sub(r"<[^>]+>", "", found[0].partition("</progress>")[2])


def test_people_are_listed_with_what_they_keep_the_largest_first(
    client: Client, alice: User, bob: User
) -> None:
    make_recording(alice, size_bytes=3 * MB)
    make_recording(bob, size_bytes=5 * MB)
    make_recording(bob, size_bytes=4 * MB, trashed_at=timezone.now())
    make_recording(alice, size_bytes=90 * MB, audio_removed_at=timezone.now())
    page = shown(client)
    assert share_of(page, "Bob") == "9 MB · 2 recordings, 1 in the trash"
    assert share_of(page, "Alice") == "3 MB · 2 recordings"
    assert page.index(">Bob ") < page.index(">Alice ")
    assert '<dd class="figures">4 · 12 MB · 4:00</dd>' in page
    assert '<dd class="figures">1 · 4 MB</dd>' in page


def test_each_recording_is_counted_once_in_its_age(client: Client, alice: User) -> None:
    for days in (0, 6, 8, 29, 31, 100, 364, 366):
        recording = make_recording(alice, size_bytes=MB)
        at = timezone.now() - timedelta(days=days)
        Recording.objects.filter(id=recording.id).update(created_at=at)
    page = shown(client)
    ages = ("Less than a week", "Up to a month", "Up to three months", "Up to a year", "Older")
    counted = [share_of(page, age) for age in ages]
    assert counted == [
        "2 MB · 2 recordings",
        "2 MB · 2 recordings",
        "1 MB · 1 recording",
        "2 MB · 2 recordings",
        "1 MB · 1 recording",
    ]


@pytest.mark.usefixtures("sent")
def test_what_is_on_its_way_in_counts_apart(client: Client, alice: User) -> None:
    make_upload(alice, content=b"x" * 2048)
    page = shown(client)
    assert "1 upload · 2 kB" in page
    assert "Nothing is stored yet." in page


def test_a_full_disk_is_marked(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = machine.Disk(total_bytes=100 * MB, free_bytes=5 * MB)
    monkeypatch.setattr(machine, "look_at_disk", lambda: disk)
    page = shown(client)
    assert "figures danger-text" in page
    assert "5 MB free of 100 MB · 95 % used" in page


def test_the_number_of_queries_does_not_grow(
    client: Client, alice: User, bob: User, django_assert_max_num_queries: Callable[[int], Any]
) -> None:
    for person in (alice, bob) * 3:
        make_recording(person)
    # session, person, totals, uploads, number of people, people, ages
    with django_assert_max_num_queries(7):
        shown(client)
