"""The pages of live captions: who may open them, what they offer, what starting one stores."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest
import redis
from django.conf import settings
from django.test import Client

from asr_engine.protocol import ENGINES_KEY, EngineStatus, encode, engine_key
from transcription.models import LiveSession, LiveState, Visibility
from transcription.pages.live import Offer
from webapp.accounts.models import User

ClientOf = Callable[[User | None], Client]

NEW = {"title": "Weekly meeting", "language": "en", "visibility": "organisation"}


def engine(**fields: object) -> EngineStatus:
    return EngineStatus(
        **{
            "engine": "engine-1",
            "model": "scripted",
            "languages": (),
            "can_detect_language": True,
            "modes_ms": (560,),
            "default_mode_ms": 560,
            "slots": 4,
            "free_slots": 4,
            "is_draining": False,
            "beat_at_s": time.time(),
            **fields,
        }  # type: ignore[arg-type]
    )


@pytest.fixture
def run_engine() -> Iterator[Callable[..., None]]:
    """`run_engine(modes_ms=…)`: a beat of an engine lies in the broker."""
    broker = redis.Redis.from_url(settings.SITE.broker_url)

    def run(**fields: object) -> None:
        status = engine(**fields)
        broker.sadd(ENGINES_KEY, status.engine)
        broker.set(engine_key(status.engine), encode(status), ex=60)

    yield run
    broker.delete(engine_key("engine-1"), ENGINES_KEY)
    broker.close()


def make_session(owner: User, **fields: object) -> LiveSession:
    return LiveSession.objects.create(
        **{"owner": owner, "title": "Planning", "visibility": Visibility.PRIVATE, **fields}
    )


# Starting -----------------------------------------------------------------------------------------


def test_new_session_belongs_to_its_maker_and_leads_to_its_capture_page(
    alice: User, client_of: ClientOf
) -> None:
    response = client_of(alice).post("/live/new/", NEW)
    session = LiveSession.objects.get()
    assert response["Location"] == f"/live/{session.id}/capture/"
    assert (session.owner, session.title, session.language) == (alice, "Weekly meeting", "en")
    assert session.visibility == Visibility.ORGANISATION
    assert session.state == LiveState.CREATED


def test_the_page_s_script_gets_the_addresses(alice: User, client_of: ClientOf) -> None:
    response = client_of(alice).post("/live/new/", NEW, headers={"accept": "application/json"})
    session = LiveSession.objects.get()
    assert response.status_code == 201
    assert response.json()["capture_socket"] == f"/ws/v1/live/{session.id}/capture"
    assert response.json()["share_address"] == f"http://testserver/live/{session.id}/"


def test_a_session_without_a_title_gets_one(alice: User, client_of: ClientOf) -> None:
    client_of(alice).post("/live/new/", {**NEW, "title": "  "})
    assert LiveSession.objects.get().title != ""


@pytest.mark.parametrize(
    "wrong",
    [{"visibility": "everybody"}, {"language": "tlh"}, {"title": "x" * 301}, {"visibility": ""}],
)
def test_bad_choices_make_no_session(
    alice: User, client_of: ClientOf, wrong: dict[str, str]
) -> None:
    client = client_of(alice)
    assert client.post("/live/new/", NEW | wrong).status_code == 400
    answer = client.post("/live/new/", NEW | wrong, headers={"accept": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["problems"]
    assert not LiveSession.objects.exists()


def test_pages_offer_only_what_the_engine_can_do(
    alice: User, client_of: ClientOf, run_engine: Callable[..., None]
) -> None:
    run_engine(languages=("en", "de"), can_detect_language=False, modes_ms=(160, 560))
    page = client_of(alice).get("/live/new/").content.decode()
    assert "German" in page
    assert "French" not in page
    assert "Detect the language" not in page
    assert "Fastest · 160 ms" in page
    assert "Most accurate · 560 ms" in page
    assert "No speech engine is running" not in page
    refused = client_of(alice).post("/live/new/", {**NEW, "language": "fr", "mode_ms": "160"})
    assert refused.status_code == 400
    client_of(alice).post("/live/new/", {**NEW, "mode_ms": "160"})
    assert LiveSession.objects.get().mode_ms == 160


def test_one_mode_is_no_choice(
    alice: User, client_of: ClientOf, run_engine: Callable[..., None]
) -> None:
    run_engine()
    client = client_of(alice)
    assert "mode_ms" not in client.get("/live/new/").context["form"].fields
    client.post("/live/new/", NEW)
    assert LiveSession.objects.get().mode_ms == 0  # the engine's own


def test_a_page_that_was_opened_before_the_engine_starts_in_the_engine_s_own_mode(
    alice: User, client_of: ClientOf, run_engine: Callable[..., None]
) -> None:
    run_engine(modes_ms=(160, 560))
    client_of(alice).post("/live/new/", NEW)
    assert LiveSession.objects.get().mode_ms == 0


def test_a_mode_that_no_engine_has_makes_no_session(
    alice: User, client_of: ClientOf, run_engine: Callable[..., None]
) -> None:
    run_engine(modes_ms=(160, 560))
    assert client_of(alice).post("/live/new/", {**NEW, "mode_ms": "80"}).status_code == 400
    assert not LiveSession.objects.exists()


def test_a_page_without_an_engine_says_so(alice: User, client_of: ClientOf) -> None:
    assert "No speech engine is running" in client_of(alice).get("/live/new/").content.decode()


def test_a_draining_engine_offers_nothing() -> None:
    assert not Offer.of([engine(is_draining=True)]).is_running


def test_engines_that_take_any_language_widen_the_offer() -> None:
    offer = Offer.of([engine(languages=("en",)), engine(languages=())])
    assert offer.languages is None


def test_the_language_chosen_last_is_proposed_before_the_browser_s(
    alice: User, client_of: ClientOf
) -> None:
    headers = {"accept-language": "fr-CH,fr;q=0.9"}
    page = client_of(alice).get("/live/new/", headers=headers)
    assert page.context["form"].initial["language"] == "fr"
    alice.speech_language = "zh"
    alice.save()
    page = client_of(alice).get("/live/new/", headers=headers)
    assert page.context["form"].initial["language"] == "zh"


# Rights -------------------------------------------------------------------------------------------

PATHS = ("", "room/", "capture/", "status/", "code.svg")


@pytest.mark.parametrize("path", PATHS)
def test_anonymous_is_sent_to_log_in(alice: User, client_of: ClientOf, path: str) -> None:
    session = make_session(alice)
    response = client_of(None).get(f"/live/{session.id}/{path}")
    assert response["Location"].startswith("/accounts/login/?next=/live/")


@pytest.mark.parametrize("path", PATHS)
def test_stranger_gets_404(alice: User, charlie: User, client_of: ClientOf, path: str) -> None:
    session = make_session(alice)
    client = client_of(charlie)
    assert client.get(f"/live/{session.id}/{path}").status_code == 404
    assert client.get(f"/live/{uuid4()}/{path}").status_code == 404


@pytest.mark.parametrize("path", PATHS)
def test_owner_opens_every_page(alice: User, client_of: ClientOf, path: str) -> None:
    session = make_session(alice)
    assert client_of(alice).get(f"/live/{session.id}/{path}").status_code == 200


@pytest.mark.parametrize("path", ["", "capture/"], ids=["captions", "capture"])
def test_pages_tell_their_script_the_zone_that_the_person_has_set(
    alice: User, client_of: ClientOf, path: str
) -> None:
    address = f"/live/{make_session(alice).id}/{path}"
    assert 'data-time-zone=""' in client_of(alice).get(address).content.decode()
    alice.time_zone = "Asia/Tokyo"
    alice.save()
    assert 'data-time-zone="Asia/Tokyo"' in client_of(alice).get(address).content.decode()


def test_reader_of_an_open_session_reads_but_neither_captures_nor_ends(
    alice: User, bob: User, client_of: ClientOf
) -> None:
    session = make_session(alice, visibility=Visibility.ORGANISATION, state=LiveState.LIVE)
    client = client_of(bob)
    page = client.get(f"/live/{session.id}/")
    assert page.status_code == 200
    assert f"/live/{session.id}/capture/" not in page.content.decode()
    assert client.get(f"/live/{session.id}/capture/").status_code == 404
    assert client.post(f"/live/{session.id}/end/").status_code == 404
    session.refresh_from_db()
    assert session.state == LiveState.LIVE


def test_owner_ends_a_session_without_its_microphone(alice: User, client_of: ClientOf) -> None:
    session = make_session(alice, state=LiveState.WAITING)
    response = client_of(alice).post(f"/live/{session.id}/end/")
    assert response["Location"] == f"/live/{session.id}/"
    session.refresh_from_db()
    assert session.state == LiveState.ENDING


def test_ending_takes_a_post(alice: User, client_of: ClientOf) -> None:
    session = make_session(alice)
    assert client_of(alice).get(f"/live/{session.id}/end/").status_code == 405


# What they show -----------------------------------------------------------------------------------


def test_the_microphone_of_an_ended_session_is_its_captions(
    alice: User, client_of: ClientOf
) -> None:
    session = make_session(alice, state=LiveState.ENDED)
    response = client_of(alice).get(f"/live/{session.id}/capture/")
    assert response["Location"] == f"/live/{session.id}/"


def test_status_gives_the_clock_in_milliseconds(alice: User, client_of: ClientOf) -> None:
    session = make_session(alice, clock=[[0, 1000], [32_000, 61_000]], state=LiveState.LIVE)
    answer = client_of(alice).get(f"/live/{session.id}/status/").json()
    assert answer == {"state": "live", "clock": [[0, 1000], [2000, 61_000]], "recording": None}


def test_a_title_is_text_in_every_place(alice: User, client_of: ClientOf) -> None:
    session = make_session(alice, title="</script><b>Bold</b>")
    for path in ("", "capture/"):
        page = client_of(alice).get(f"/live/{session.id}/{path}").content.decode()
        assert "<b>Bold" not in page


def test_the_room_view_over_a_broadcast_has_no_tools(alice: User, client_of: ClientOf) -> None:
    session = make_session(alice)
    page = client_of(alice).get(f"/live/{session.id}/room/").content.decode()
    assert "is-transparent" not in page
    page = client_of(alice).get(f"/live/{session.id}/room/?transparent=1").content.decode()
    assert "is-transparent" in page


def test_code_is_a_picture_without_script(alice: User, client_of: ClientOf) -> None:
    session = make_session(alice)
    response = client_of(alice).get(f"/live/{session.id}/code.svg")
    assert response["Content-Type"] == "image/svg+xml"
    assert response.content.startswith(b"<svg")


def test_pages_make_few_queries(
    alice: User, client_of: ClientOf, django_assert_max_num_queries: Callable[[int], object]
) -> None:
    session = make_session(alice)
    client = client_of(alice)
    for path in PATHS:
        client.get(f"/live/{session.id}/{path}")  # told to the audit log
        with django_assert_max_num_queries(6):  # type: ignore[attr-defined]
            client.get(f"/live/{session.id}/{path}")
