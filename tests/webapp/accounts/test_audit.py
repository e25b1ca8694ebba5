"""The audit log: what one entry says, how often an act is told, and that nothing changes it."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import Group
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.utils import timezone
from pytest_django.asserts import assertNumQueries

from tests.fakes.people import PASSWORD
from webapp.accounts import audit
from webapp.accounts.audit import (
    acts_from,
    forget_entries,
    forget_expired_entries,
    note_token,
    record_act,
)
from webapp.accounts.models import Act, AuditEntry, User

pytestmark = pytest.mark.django_db


def acts() -> list[str]:
    return list(AuditEntry.objects.order_by("id").values_list("act", flat=True))


# One entry ----------------------------------------------------------------------------------------


def test_an_entry_says_who_did_what_to_which_thing_from_where(alice: User, bob: User) -> None:
    with acts_from("10.0.0.7"):
        note_token("Editor's plug-in")
        record_act(act=Act.DISABLED, actor=alice, on=bob, detail={"why": "left"})
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.actor_name, entry.act) == (alice, "alice@example.org", "disabled")
    assert (entry.subject_kind, entry.subject_id) == ("user", str(bob.pk))
    assert (entry.subject_name, entry.detail) == ("Bob", {"why": "left"})
    assert (entry.address, entry.token_name) == ("10.0.0.7", "Editor's plug-in")


def test_the_servers_own_act_has_no_person_and_no_origin(alice: User) -> None:
    record_act(act=Act.PURGED, actor=None, on=alice)
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.actor_name) == (None, "")
    assert (entry.address, entry.token_name) == (None, "")


@pytest.mark.parametrize(
    ("said", "kept"),
    [("fe80::1%eth0", "fe80::1"), ("testclient", None), ("", None), (None, None)],
)
def test_an_odd_address_does_not_stop_the_act(said: str | None, kept: str | None) -> None:
    with acts_from(said):
        record_act(act=Act.LOGGED_OUT, actor=None)
    assert AuditEntry.objects.get().address == kept


def test_an_entry_outlives_the_person(bob: User) -> None:
    record_act(act=Act.LOGGED_IN, actor=bob)
    with transaction.atomic():
        bob.delete()
    assert AuditEntry.objects.get().actor_name == "bob@example.org"


def test_an_act_that_is_undone_leaves_no_entry(alice: User) -> None:
    with transaction.atomic():
        record_act(act=Act.DELETED, actor=alice)
        transaction.set_rollback(True)
    assert acts() == []


# How often ----------------------------------------------------------------------------------------


def test_viewing_is_told_once_for_a_person_and_a_thing_in_ten_minutes(
    alice: User, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = timezone.now()

    def at(minutes: float, *, actor: User = alice, on: User = bob, act: Act = Act.VIEWED) -> int:
        now = start + timedelta(minutes=minutes)
        monkeypatch.setattr(timezone, "now", lambda: now)
        record_act(act=act, actor=actor, on=on)
        return AuditEntry.objects.count()

    assert [at(0), at(1), at(9.9)] == [1, 1, 1]
    assert at(5, actor=bob) == 2
    assert at(5, on=alice) == 3
    assert at(5, act=Act.PLAYED) == 4
    assert [at(10.1), at(12), at(20.2)] == [5, 5, 6]


def test_two_who_look_at_once_leave_one_entry(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    class Blind:
        """As the one sees it who looks before the other has written."""

        def filter(self, **_: object) -> Blind:
            return self

        def exists(self) -> bool:
            return False

    record_act(act=Act.VIEWED, actor=alice, on=alice)
    monkeypatch.setattr(AuditEntry.objects, "filter", Blind().filter)
    record_act(act=Act.VIEWED, actor=alice, on=alice)
    monkeypatch.undo()
    assert acts() == ["viewed"]


def test_what_is_told_already_costs_one_query(alice: User) -> None:
    record_act(act=Act.VIEWED, actor=alice, on=alice)
    with assertNumQueries(1):
        record_act(act=Act.VIEWED, actor=alice, on=alice)


def test_deleting_is_told_each_time(alice: User) -> None:
    for _ in range(2):
        record_act(act=Act.DELETED, actor=alice, on=alice)
    assert acts() == ["deleted", "deleted"]


# Append-only --------------------------------------------------------------------------------------


def test_the_database_refuses_to_change_an_entry(alice: User) -> None:
    record_act(act=Act.DELETED, actor=alice)
    entry = AuditEntry.objects.get()
    entry.act = Act.VIEWED
    for change in (
        entry.save,
        lambda: AuditEntry.objects.update(actor_name="nobody"),
        lambda: connection.cursor().execute("UPDATE accounts_auditentry SET act = 'viewed'"),
    ):
        with pytest.raises(DatabaseError, match="never changed"), transaction.atomic():
            change()
    assert acts() == ["deleted"]


def test_old_entries_go_in_batches_and_younger_ones_stay(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "BATCH", 2)
    limit = datetime(2026, 3, 1, tzinfo=timezone.get_current_timezone())
    ages = [timedelta(days=1), timedelta(microseconds=1), timedelta(0), -timedelta(days=1)]
    for age in [timedelta(days=2)] * 3 + ages:
        AuditEntry.objects.create(act=Act.LOGGED_IN, actor=alice, at=limit - age)
    assert forget_entries(before=limit) == 5
    assert sorted(AuditEntry.objects.values_list("at", flat=True)) == [
        limit,
        limit + timedelta(days=1),
    ]


def test_the_log_forgets_what_is_too_old_and_says_so(alice: User) -> None:
    for days in (364, 366):
        at = timezone.now() - timedelta(days=days)
        AuditEntry.objects.create(act=Act.LOGGED_IN, actor=alice, at=at)
    assert forget_expired_entries() == 1
    assert forget_expired_entries() == 0
    assert acts() == ["logged_in", "purged"]
    assert AuditEntry.objects.get(act=Act.PURGED).detail["count"] == 1


# Where acts come from -----------------------------------------------------------------------------


def test_a_request_tells_its_address_and_leaves_nothing_behind(client: Client, alice: User) -> None:
    data = {"login": "alice@example.org", "password": PASSWORD}
    client.post("/accounts/login/", data, REMOTE_ADDR="10.1.2.3")
    record_act(act=Act.PURGED, actor=None)
    told = AuditEntry.objects.order_by("id").values_list("act", "address", "actor_name")
    assert list(told) == [("logged_in", "10.1.2.3", "alice@example.org"), ("purged", None, "")]


# Log-ins ------------------------------------------------------------------------------------------


def test_a_failed_log_in_names_the_account_and_never_what_was_typed(
    client: Client, alice: User
) -> None:
    client.post("/accounts/login/", {"login": "Alice@example.org", "password": "my secret"})
    client.post("/accounts/login/", {"login": "secret@example.org", "password": "my secret"})
    first, second = AuditEntry.objects.order_by("id")
    assert (first.act, first.actor, first.subject_name) == ("log_in_failed", None, "Alice")
    assert (second.act, second.subject_name, second.detail) == ("log_in_failed", "", {})
    assert not any("secret" in str(vars(entry)) for entry in (first, second))


def test_what_is_done_under_the_tables_is_told(client: Client, administrator: User) -> None:
    client.force_login(administrator)
    client.post("/admin/auth/group/add/", {"name": "Left over"})
    group = Group.objects.get()
    client.post(f"/admin/auth/group/{group.pk}/change/", {"name": "Renamed"})
    client.post(f"/admin/auth/group/{group.pk}/delete/", {"post": "yes"})
    assert acts() == ["logged_in", "created", "edited", "deleted"]
    entry = AuditEntry.objects.get(act=Act.DELETED)
    assert (entry.actor, entry.subject_kind, entry.subject_name) == (
        administrator,
        "group",
        "Renamed",
    )


def test_log_out_and_a_new_password_are_told(client: Client, alice: User) -> None:
    client.force_login(alice)
    client.post(
        "/accounts/password/change/",
        {
            "oldpassword": PASSWORD,
            "password1": "another one of mine",
            "password2": "another one of mine",
        },
    )
    client.post("/accounts/logout/")
    assert acts() == ["logged_in", "password_changed", "logged_out"]
    assert set(AuditEntry.objects.values_list("actor", flat=True)) == {alice.pk}
