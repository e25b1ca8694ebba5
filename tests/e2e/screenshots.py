"""Pictures of every page, to look at after a change of templates or styles. Not a test.

    python -m tests.e2e.screenshots FOLDER [--only NAME] [--width 390]

Starts the web process on a data directory of its own with made-up recordings in every state, and
writes `FOLDER/<page>-<width>-<theme>.png` at 390, 1280 and 1920 px, light and dark. No worker runs,
so that nothing moves.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from tests.e2e.conftest import CHROMIUM, CHROMIUM_FLAGS, ROOT, Server, log_in, make_server

WIDTHS = {390: 844, 1280: 800, 1920: 1080}
THEMES = ("light", "dark")
SAMPLE = ROOT / "static" / "audio" / "sample.ogg"

ENGLISH = [
    "Good morning, everybody, and thank you for coming at such short notice.",
    "We have three things to talk about: the move to the new building, the budget, and the trial.",
    "Let me begin with the move, since most of you will have questions about it.",
    "The lifts on the north side are not ready, so the first week will be the south entrance only.",
    "Does that mean the post room opens later?",
    "Yes, on the Wednesday; until then parcels go to Mrs Okonkwo-Fitzgerald at the front desk.",
    "Then the budget. We are four percent under, which is better than it sounds.",
    "And the trial: eleven teams have asked for captions, and every one of them still uses them.",
]
CHINESE = [
    "大家早上好，感谢各位在这么短的时间内赶来参加会议。",
    "今天我们主要讨论三件事：搬迁到新大楼、预算，以及字幕系统的试用情况。",
    "北侧的电梯还没有准备好，所以第一周只开放南门。",
    "字幕系统的试用很顺利，十一个团队都还在继续使用。",
]


@contextlib.contextmanager
def running_web() -> Iterator[Server]:
    """The embedded Valkeys and the web process, without engine and workers."""
    server = make_server()
    commands = ("webapp.valkey broker", "webapp.valkey audio", "webapp.serve")
    processes = []
    with server.log_path.open("ab") as log:
        for command in commands:
            module, *arguments = command.split()
            process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                cwd=ROOT,
                env=server.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            processes.append(process)
    try:
        deadline = time.monotonic() + 60
        while not server.is_up():
            if time.monotonic() > deadline:
                raise RuntimeError(server.log_tail())
            time.sleep(0.2)
        yield server
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait(timeout=20)
        shutil.rmtree(server.data_dir, ignore_errors=True)


def words_of(text: str, start_ms: int, step_ms: int) -> list[dict[str, Any]]:
    is_spaced = " " in text
    parts = text.split() if is_spaced else list(text)
    return [
        {
            "text": part,
            "start_ms": start_ms + index * step_ms,
            "end_ms": start_ms + (index + 1) * step_ms,
            "confidence": 0.3 if index % 9 == 5 else 0.93,
            "has_space_before": is_spaced,
        }
        for index, part in enumerate(parts)
    ]


def seed(server: Server) -> dict[str, str]:
    """Rows in every state; addresses of the pages to look at by name."""
    os.environ.update(server.environment, DJANGO_SETTINGS_MODULE="webapp.settings")
    import django

    django.setup()
    from django.utils import timezone

    from transcription.models import (
        Job,
        JobState,
        LiveMark,
        LiveMarkKind,
        LiveSession,
        LiveState,
        LiveUtterance,
        Recording,
        RecordingSource,
        RecordingState,
        RevisionKind,
        SegmentMark,
        TranscriptRevision,
        TranscriptSegment,
        Upload,
        UploadState,
        Visibility,
    )
    from webapp.accounts.models import User

    now = timezone.now()
    me = User.objects.get(email=server.email)
    User.objects.filter(pk=me.pk).update(name="Maren Albrecht", time_zone="Europe/Berlin")
    other = User.objects.create_user("jun@example.org", name="王俊")

    def recording(title: str, state: str, *, minutes_ago: int = 5, **fields: Any) -> Recording:
        made = Recording.objects.create(
            **{
                "owner": me,
                "title": title,
                "display_name": f"{title}.m4a",
                "source": RecordingSource.UPLOAD,
                "state": state,
                "duration_ms": 34_430,
                "size_bytes": 41_300_000,
                "container": "MP4",
                "codec": "AAC",
                "media_type": "audio/ogg",
                "created_at": now - timedelta(minutes=minutes_ago),
                "recorded_at": now - timedelta(minutes=minutes_ago),
                **fields,
            }
        )
        made.folder.mkdir(parents=True)
        shutil.copy(SAMPLE, made.folder / "source.bin")
        levels = [
            abs(round(90 * math.sin(i / 9) * math.sin(i / 53) * math.cos(i / 3)))
            for i in range(900)
        ]
        (made.folder / "peaks.json").write_text(json.dumps(levels))
        return made

    def write(made: Recording, texts: list[str], kind: str, **fields: Any) -> None:
        revision = TranscriptRevision.objects.create(
            **{
                "recording": made,
                "number": 1,
                "kind": kind,
                "model_name": "whisper-base",
                "is_complete": True,
                **fields,
            }
        )
        start = 300
        for index, text in enumerate(texts):
            step = 280 if " " in text else 140
            words = words_of(text, start, step)
            end = words[-1]["end_ms"]
            TranscriptSegment.objects.create(
                revision=revision, index=index, start_ms=start, end_ms=end, text=text, words=words
            )
            start = end + (2600 if index % 4 == 3 else 250)
        made.current_revision = revision
        made.save()

    meeting = recording(
        "Weekly meeting of the building committee",
        RecordingState.READY,
        minutes_ago=90,
        language="en",
        language_confidence=0.98,
        is_organisation_wide=True,
    )
    write(meeting, ENGLISH * 3, RevisionKind.REFINED)
    # Somebody asks in each round, and somebody else, without a name so far, answers.
    for place, label in ((4, "2"), (5, "3")):
        TranscriptSegment.objects.filter(
            revision=meeting.current_revision, index__in=(place, place + 8, place + 16)
        ).update(speaker=label)
    TranscriptSegment.objects.filter(revision=meeting.current_revision, speaker="").update(
        speaker="1"
    )
    from transcription.services.speakers import name_speakers

    names = {"1": "Ada Lovelace", "2": "Bola Adeyemi"}
    name_speakers(recording=meeting, names=names, named_by=me)
    chinese = recording(
        "2026年11月例会：搬迁、预算与字幕系统试用情况汇报",
        RecordingState.READY,
        minutes_ago=60 * 26,
        language="zh",
        requested_language="zh",
        owner=other,
        is_organisation_wide=True,
        source=RecordingSource.LIVE,
    )
    write(chinese, CHINESE * 2, RevisionKind.LIVE)
    running = recording(
        "Interview with the archivist, second half",
        RecordingState.TRANSCRIBING,
        minutes_ago=12,
        duration_ms=3_723_000,
        language="en",
    )
    job = Job.objects.create(
        recording=running,
        requested_by=me,
        state=JobState.RUNNING,
        audio_done_ms=1_560_000,
        audio_total_ms=3_723_000,
        work_seconds=140.0,
    )
    write(running, ENGLISH[:5], RevisionKind.DRAFT, job=job, is_complete=False)
    write(
        running,
        ENGLISH[:3],
        RevisionKind.REFINED,
        number=2,
        job=job,
        is_complete=False,
        replaced_segments=3,
    )
    running.current_revision.segments.filter(index=1).update(  # type: ignore[union-attr]
        text="", words=[], mark=SegmentMark.UNCLEAR
    )
    waiting = recording("Voice memo 17", RecordingState.QUEUED, minutes_ago=1, duration_ms=95_000)
    Job.objects.create(recording=waiting, requested_by=me, audio_total_ms=95_000)
    failed = recording(
        "Aufnahme_Besprechung_" + "Donaudampfschifffahrtsgesellschaft_" * 3 + "final_v2_neu",
        RecordingState.ATTENTION,
        minutes_ago=60 * 24 * 4,
        problem_code="worker_lost",
        problem="The transcription was interrupted several times at the same place, so it was "
        "stopped. Nothing was deleted; you can try it again.",
    )
    recording(
        "Hum of the server room",
        RecordingState.READY,
        minutes_ago=60 * 24 * 12,
        notice="No speech was found in this recording.",
    )
    for number in range(24):
        recording(
            f"Lecture {24 - number}", RecordingState.READY, minutes_ago=60 * 24 * (20 + number)
        )
    sessions = {}
    for owner, title, state, minutes in (
        (me, "Planning of the spring conference", LiveState.LIVE, 42),
        (other, "产品周会", LiveState.WAITING, 7),
        (me, "Reading hour of the Friends of the Municipal Library, 读书会", LiveState.ENDED, 95),
    ):
        started_at = now - timedelta(minutes=minutes)
        sessions[state] = session = LiveSession.objects.create(
            owner=owner,
            title=title,
            state=state,
            visibility=Visibility.ORGANISATION,
            started_at=started_at,
            clock=[[0, int(started_at.timestamp() * 1000)]],
            recording=chinese if state == LiveState.ENDED else None,
            last_seq=0 if state == LiveState.WAITING else 2 * len(ENGLISH) + 2,
        )
        if state == LiveState.WAITING:
            continue
        texts = [text for pair in zip(ENGLISH, CHINESE * 2, strict=True) for text in pair]
        for index, text in enumerate(texts):
            LiveUtterance.objects.create(
                session=session,
                utterance=index,
                seq=index + 1,
                start_ms=index * 12_000,
                end_ms=index * 12_000 + 9_000,
                text=text,
            )
        for kind, seq, start_ms, end_ms in (
            (LiveMarkKind.PAUSED, len(texts) + 1, 70_000, 70_000),
            (LiveMarkKind.GAP, len(texts) + 2, 130_000, 131_500),
        ):
            LiveMark.objects.create(
                session=session, kind=kind, seq=seq, start_ms=start_ms, end_ms=end_ms
            )
    from transcription.services.glossary import read_terms, write_terms
    from transcription.services.share_links import create_share_link, revoke_share_link

    names = ["Okonkwo-Fitzgerald, 5", "Donaudampfschifffahrtsgesellschaft", "王俊", "SharePoint"]
    people = [f"Participant {number:02}" for number in range(60)]
    write_terms(recording=None, terms=read_terms(names + people), written_by=me)
    write_terms(recording=meeting, terms=read_terms(names), written_by=me)

    live = sessions[LiveState.LIVE]
    revoke_share_link(link=create_share_link(thing=live, hours=4, made_by=me)[0], revoked_by=me)
    _, token = create_share_link(thing=live, hours=24, made_by=me)
    Upload.objects.create(
        owner=me,
        display_name="Board meeting.mp4",
        length_bytes=734_000_000,
        offset_bytes=308_000_000,
    )
    Upload.objects.create(
        owner=me,
        display_name="slides.mp4",
        length_bytes=9_100_000,
        offset_bytes=9_100_000,
        state=UploadState.REFUSED,
        problem="This video has no sound, so there is nothing to transcribe.",
    )
    private = recording("Talk with the works council", RecordingState.READY, owner=other)
    write(private, ENGLISH, RevisionKind.REFINED)
    opened = recording("Interview about the move", RecordingState.READY, owner=other)
    write(opened, ENGLISH, RevisionKind.REFINED)
    _, link = create_share_link(thing=meeting, hours=24, made_by=me)
    share_some(meeting, live, opened, me=me, other=other)
    return {
        "shared": f"/recordings/{meeting.id}/share/",
        "recording_opened": f"/recordings/{opened.id}/",
        "opening": f"/administration/open/recordings/{private.id}/",
        "recording_link": f"/r/{link}/",
        "recording": f"/recordings/{meeting.id}/",
        "recording_chinese": f"/recordings/{chinese.id}/",
        "recording_running": f"/recordings/{running.id}/",
        "recording_waiting": f"/recordings/{waiting.id}/",
        "recording_failed": f"/recordings/{failed.id}/",
        "live_captions": f"/live/{sessions[LiveState.LIVE].id}/",
        "live_waiting": f"/live/{sessions[LiveState.WAITING].id}/",
        "live_ended": f"/live/{sessions[LiveState.ENDED].id}/",
        "live_capture": f"/live/{sessions[LiveState.LIVE].id}/capture/",
        "live_links": f"/live/{live.id}/share/",
        "link": f"/s/{token}/",
        "link_refused": "/s/wrong/",
    }


def share_some(meeting: Any, live: Any, opened: Any, *, me: Any, other: Any) -> None:
    """With people and a team, to read and to edit; and what an administrator opened."""
    from transcription.services.sharing import open_as_administrator, share_with
    from webapp.accounts.models import Role, Team, User

    people = [
        User.objects.create_user(f"{name.split()[0].lower()}@example.org", name=name)
        for name in ("Adaeze Okonkwo-Fitzgerald", "Wang Fang", "Wolfgang Hinterberger-Schmidt")
    ]
    team = Team.objects.create(name="Building committee")
    team.members.add(me, *people)
    for thing in (meeting, live):
        share_with(thing=thing, sharer=me, with_=other, can_edit=True)
        share_with(thing=thing, sharer=me, with_=people[0], can_edit=False)
        share_with(thing=thing, sharer=me, with_=team, can_edit=False)
    administrator = User.objects.create_user(
        "root@example.org", name="Rika Ott", role=Role.ADMINISTRATOR
    )
    why = "Maren asked why the second half has no names"
    open_as_administrator(thing=meeting, administrator=administrator, reason=why)
    open_as_administrator(thing=opened, administrator=me, reason="王俊 asked why it is so short")


def open_menu(page: Any) -> None:
    page.locator(".site-header details.menu summary").click()


def open_again(page: Any) -> None:
    page.locator(".recording-tools .menu").last.locator("summary").click()
    page.get_by_role("link", name="Transcribe again").first.click()


def open_delete(page: Any) -> None:
    page.locator(".recording-tools .menu").last.locator("summary").click()
    page.get_by_role("link", name="Delete recording").first.click()


def open_terms(page: Any) -> None:
    page.locator(".recording-tools .menu").last.locator("summary").click()
    page.get_by_role("link", name="Names and terms").first.click()


def play(page: Any) -> None:
    page.evaluate("document.getElementById('audio').currentTime = 3.2")
    page.wait_for_timeout(300)


def settle(page: Any) -> None:
    page.wait_for_selector(".captions-list > li")
    page.wait_for_timeout(500)


def open_reading_tools(page: Any) -> None:
    settle(page)
    page.locator(".live-tools summary").click()


def enlarge(page: Any) -> None:
    settle(page)
    for _ in range(3):
        page.keyboard.press("+")
    page.wait_for_timeout(300)


def settle_room(page: Page) -> None:
    page.wait_for_selector(".room-lines > p:not(:empty)")
    page.wait_for_timeout(3500)  # until pointer and tools are gone


def room_as(*keys: str, contrast: str = "") -> Callable[[Any], None]:
    """A room's screen after these keys."""

    def act(page: Any) -> None:
        for key in keys:
            page.keyboard.press(key)
        if contrast:
            page.locator(f'[data-value="{contrast}"]').click()
            page.mouse.move(3, 3)
            page.evaluate("document.activeElement.blur()")
        settle_room(page)

    return act


def room_tools(page: Any) -> None:
    page.wait_for_selector(".room-lines > p:not(:empty)")
    page.mouse.move(30, 30)


def make_link(page: Any) -> None:
    page.get_by_role("button", name="Make a link").click()
    page.wait_for_selector(".links-made")


def search_people(page: Any) -> None:
    page.get_by_role("searchbox", name="Find a person").fill("wa")
    page.get_by_role("list", name="Found").wait_for()
    page.get_by_role("list", name="Found").scroll_into_view_if_needed()


def choose_yellow(page: Any) -> None:
    open_reading_tools(page)
    page.locator('[data-value="yellow"]').click()


@dataclass(frozen=True, slots=True)
class Shot:
    """A page to look at; `act` is done before the picture, which then shows only the window."""

    name: str
    path: str
    act: Callable[[Any], None] | None = None
    is_logged_in: bool = True


BEFORE_SEED = [
    Shot("login", "/accounts/login/", is_logged_in=False),
    Shot("reset", "/accounts/password/reset/", is_logged_in=False),
    Shot("reset_done", "/accounts/password/reset/done/", is_logged_in=False),
    Shot("not_found_anonymous", "/nowhere/", is_logged_in=False),
    Shot("home_empty", "/"),
    Shot("profile", "/profile/"),
    Shot("password", "/accounts/password/change/"),
    Shot("logout", "/accounts/logout/"),
    Shot("account_switched_off", "/accounts/inactive/", is_logged_in=False),
    Shot("single_sign_on_failed", "/accounts/3rdparty/login/error/", is_logged_in=False),
    Shot("mfa", "/accounts/2fa/"),
    Shot("mfa_keys", "/accounts/2fa/webauthn/"),
    Shot("people", "/administration/people/"),
    Shot("person", "/administration/people/1/"),
    Shot("teams", "/administration/teams/"),
    Shot("not_found", "/recordings/00000000-0000-0000-0000-000000000000/"),
    Shot("live_new", "/live/new/"),
]


def shots_of(places: dict[str, str]) -> list[Shot]:
    """What needs the seeded rows."""
    return [
        Shot("home", "/"),
        Shot("home_menu", "/", open_menu),
        Shot("home_search", "/?q=north"),
        Shot("home_nothing", "/?q=zebra"),
        Shot("recording_whole", places["recording"]),
        Shot("recording_playing", places["recording"], play),
        Shot("recording_delete", places["recording"], open_delete),
        Shot("recording_again", places["recording"], open_again),
        Shot("recording_terms", places["recording"], open_terms),
        Shot("recording_keys", places["recording"], lambda page: page.keyboard.press("?")),
        Shot("recording_chinese", places["recording_chinese"]),
        Shot("recording_running", places["recording_running"]),
        Shot("recording_waiting", places["recording_waiting"]),
        Shot("recording_failed", places["recording_failed"]),
        Shot("glossary", "/glossary/"),
        Shot("glossary_found", "/glossary/?q=o"),
        Shot("administration", "/administration/"),
        Shot("administration_engines", "/administration/engines/"),
        Shot("administration_jobs", "/administration/jobs/?show=open"),
        Shot("administration_storage", "/administration/storage/"),
        Shot("administration_audit", "/administration/audit/"),
        Shot("administration_retention", "/administration/retention/"),
        Shot("administration_retention_change", "/administration/retention/change/"),
        Shot("administration_retention_preview", "/administration/retention/preview/?audio_days=1"),
        Shot("trash", "/trash/"),
        Shot("live_captions", places["live_captions"], settle),
        Shot("live_tools", places["live_captions"], open_reading_tools),
        Shot("live_large", places["live_captions"], enlarge),
        Shot("live_waiting", places["live_waiting"]),
        Shot("live_ended", places["live_ended"], settle),
        Shot("live_capture", places["live_capture"]),
        Shot("live_yellow", places["live_captions"], choose_yellow),
        Shot("shared", places["shared"]),
        Shot("shared_made", places["shared"], make_link),
        Shot("shared_search", places["shared"], search_people),
        Shot("opening", places["opening"]),
        Shot("recording_opened", places["recording_opened"]),
        Shot("recording_link", places["recording_link"], is_logged_in=False),
        Shot("live_links", places["live_links"]),
        Shot("live_links_made", places["live_links"], make_link),
        Shot("room", places["live_captions"] + "room/", settle_room),
        Shot("room_light", places["live_captions"] + "room/", room_as("d")),
        Shot("room_large", places["live_captions"] + "room/", room_as("+", "+")),
        Shot("room_small", places["live_captions"] + "room/", room_as("-", "-")),
        Shot("room_yellow", places["live_captions"] + "room/", room_as(contrast="yellow")),
        Shot("room_tools", places["live_captions"] + "room/", room_tools),
        Shot("room_waiting", places["live_waiting"] + "room/"),
        Shot("room_ended", places["live_ended"] + "room/", settle_room),
        Shot("room_over_picture", places["live_captions"] + "room/?transparent=1", settle_room),
        Shot("link", places["link"], settle, is_logged_in=False),
        Shot("link_room", places["link"] + "room/", settle_room, is_logged_in=False),
        Shot("link_refused", places["link_refused"], is_logged_in=False),
    ]


def take(server: Server, shots: list[Shot], folder: Path, widths: list[int]) -> None:
    """Write the pictures; what a page says on its console, or is too wide, is printed."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(CHROMIUM_FLAGS))
        context = browser.new_context(base_url=server.base_url)
        log_in(context.new_page(), server)
        session = context.storage_state()
        context.close()
        for width in widths:
            for theme in THEMES:
                for shot in shots:
                    context = browser.new_context(
                        base_url=server.base_url,
                        storage_state=session if shot.is_logged_in else None,
                        viewport={"width": width, "height": WIDTHS[width]},
                        color_scheme=theme,
                        reduced_motion="reduce",
                    )
                    take_one(context.new_page(), shot, folder / f"{shot.name}-{width}-{theme}.png")
                    context.close()
        browser.close()


def take_one(page: Page, shot: Shot, path: Path) -> None:
    def say(text: str) -> None:
        sys.stdout.write(f"{path.stem}: {text}\n")

    page.on(
        "console",
        lambda message: say(message.text) if message.type in {"error", "warning"} else None,
    )
    page.on("pageerror", lambda error: say(str(error)))
    page.goto(shot.path)
    page.wait_for_timeout(250)
    if shot.act:
        shot.act(page)
        page.wait_for_timeout(150)
    too_wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    if too_wide > 0:
        say(f"{too_wide} px too wide")
    page.screenshot(path=path, full_page=shot.act is None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="part of a page's name")
    parser.add_argument("--width", type=int, action="append", choices=list(WIDTHS))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    widths = options.width or list(WIDTHS)

    def wanted(shots: list[Shot]) -> list[Shot]:
        return [shot for shot in shots if options.only in shot.name]

    with running_web() as server:
        if early := wanted(BEFORE_SEED):
            take(server, early, options.folder, widths)
        if late := wanted(shots_of(seed(server))):
            take(server, late, options.folder, widths)


if __name__ == "__main__":
    main()
