"""What a job asks of the two passes: as its recording says, and the same after an interruption."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from asr_engine.backends.scripted import ScriptedBatchModel, ScriptedDetector
from asr_engine.batch import two_pass
from asr_engine.batch.two_pass import GroupResult, Pass, TwoPassOptions
from asr_engine.results import LanguageGuess
from asr_engine.tracks import ChannelMode, ChannelPlan, TrackSurvey
from tests.fakes.recordings import claim_of, make_job, segment
from transcription.models import GlossaryTerm, Job, Recording
from transcription.runners.slices import Models, work_on
from webapp.accounts.models import User

pytestmark = pytest.mark.django_db

CALL = TrackSurvey(
    index=1,
    channels=2,
    heard_ms=60_000,
    speech_ms=(20_000, 20_000),
    level_db=(-30, -30),
    are_channels_different=True,
)
MUSIC = TrackSurvey(index=0, channels=1, heard_ms=60_000, speech_ms=(0,), level_db=(-20,))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The named arguments of each call of `transcribe`, which hears one group out of two."""
    calls: list[dict[str, Any]] = []

    def transcribe(path: object, **named: Any) -> Iterator[GroupResult]:
        calls.append(named)
        first = GroupResult(
            pass_=Pass.DRAFT,
            segments=(segment("one"),),
            checkpoint={"resume_sample": 480_000},
            audio_done_ms=30_000,
            audio_total_ms=60_000,
            language=LanguageGuess("en", 0.9),
        )
        yield first
        if not named["options"].is_draft_only:
            yield replace(first, pass_=Pass.REFINED)

    monkeypatch.setattr(two_pass, "transcribe", transcribe)
    return calls


def work() -> None:
    claim = claim_of()
    models = Models(model=ScriptedBatchModel(), finder=ScriptedDetector())
    found = work_on(
        claim, models=models, load_diariser=lambda: None, slice_s=0.0, should_stop=lambda: False
    )
    assert found is None  # there is more to do


def again(job: Job) -> None:
    Job.objects.filter(id=job.id).update(state="queued", last_slice_at=None)


def test_nothing_asked_for_is_as_usual(alice: User, asked: list[dict[str, Any]]) -> None:
    make_job(alice)
    work()
    assert asked[0]["options"] == TwoPassOptions()
    assert asked[0]["checkpoint"] is None


def test_what_the_recording_says_is_asked_for(alice: User, asked: list[dict[str, Any]]) -> None:
    job = make_job(alice, mixes_languages=True, tracks=[MUSIC.as_json(), CALL.as_json()])
    Job.objects.update(language="de")
    GlossaryTerm.objects.create(recording=job.recording, phrase="Kubernetes")
    work()
    options = asked[0]["options"]
    assert (options.language, options.mixes_languages) == ("de", True)
    assert options.plan == ChannelPlan(1, ChannelMode.EACH)
    assert options.rescorer is not None


def test_a_draft_alone_is_not_rescored(alice: User, asked: list[dict[str, Any]]) -> None:
    make_job(alice)
    Job.objects.update(is_draft_only=True)
    GlossaryTerm.objects.create(phrase="Kubernetes")
    work()
    assert asked[0]["options"] == TwoPassOptions(is_draft_only=True)


def test_terms_saved_in_the_middle_count_for_the_rest(
    alice: User, asked: list[dict[str, Any]]
) -> None:
    job = make_job(alice)
    work()
    GlossaryTerm.objects.create(recording=job.recording, phrase="Kubernetes")
    again(job)
    work()
    first, second = [call["options"].rescorer for call in asked]
    assert first is None
    assert second is not None


def test_a_job_goes_on_with_the_track_that_it_began_with(
    alice: User, asked: list[dict[str, Any]]
) -> None:
    job = make_job(alice, tracks=[MUSIC.as_json(), CALL.as_json()])
    work()
    Recording.objects.update(track=0)
    again(job)
    work()
    first, second = asked
    assert second["checkpoint"] == {"resume_sample": 480_000}
    assert second["options"].plan == first["options"].plan
