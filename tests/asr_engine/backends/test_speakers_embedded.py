"""The embedded diariser tells two recorded voices apart, and goes on where it stopped."""

from __future__ import annotations

import numpy as np
import pytest

from asr_engine.audio import SAMPLE_RATE
from asr_engine.backends.speakers import features
from asr_engine.backends.speakers.embedded import EmbeddedDiariser, create
from asr_engine.config import engine_settings
from asr_engine.diarisation.port import Hearing
from tests.fakes.speech import ACCOUNT, PHONES, silence


@pytest.fixture(scope="module")
def diariser() -> EmbeddedDiariser:
    return create(engine_settings())


@pytest.mark.models
def test_two_people_have_two_labels_also_after_a_pause_of_the_work(
    diariser: EmbeddedDiariser,
) -> None:
    first, second = ACCOUNT.samples(), PHONES.samples()
    parts = (first, silence(1), second, silence(1), first, second)
    samples = np.concatenate(parts)
    hearing = Hearing()
    next(diariser.listen(hearing, [samples]))
    hearing = Hearing.from_json(hearing.as_json())
    assert 0 < hearing.next_sample < len(samples)
    assert list(diariser.listen(hearing, [samples[hearing.next_sample :]]))[-1] == len(samples)
    turns = diariser.turns(hearing, speakers=None)
    middles_ms = [
        (sum(map(len, parts[:place])) + len(parts[place]) // 2) * 1000 // SAMPLE_RATE
        for place in (0, 2, 4, 5)
    ]
    heard = [
        {turn.speaker for turn in turns if turn.start_ms <= middle_ms < turn.end_ms}
        for middle_ms in middles_ms
    ]
    assert heard == [{"1"}, {"2"}, {"1"}, {"2"}]


@pytest.mark.models
def test_silence_holds_nobody(diariser: EmbeddedDiariser) -> None:
    hearing = Hearing()
    list(diariser.listen(hearing, [silence(3)]))
    assert diariser.turns(hearing, speakers=2) == []


def test_a_tone_is_loudest_in_the_band_around_it() -> None:
    """1000 Hz is 1000 mel; the bands are even from 20 to 8000 Hz, 31.7 to 2840 mel."""
    seconds = np.arange(SAMPLE_RATE) / SAMPLE_RATE
    tone = np.sin(2 * np.pi * 1000 * seconds).astype(np.float32)
    heard = features.log_mel(tone)
    assert heard.shape == (98, 80)
    assert set(heard.argmax(axis=1)) == {round((1000 - 31.7) / (2840 - 31.7) * 81) - 1}
