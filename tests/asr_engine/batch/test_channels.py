"""A survey tells voices from copies of a voice, and never listens to more than a few places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest

from asr_engine.audio import SAMPLE_RATE, FloatSamples
from asr_engine.backends.scripted import ScriptedDetector
from asr_engine.batch.channels import MAX_TRACKS, SPOT_S, SPOTS, decode_planned, survey
from asr_engine.batch.decode import open_audio
from asr_engine.errors import NotAudioError
from asr_engine.tracks import ChannelMode, ChannelPlan, TrackSurvey, plan_of
from tests.fakes.audio import wav_bytes
from tests.fakes.containers import tone, voice, write_container, write_tracks


class CountingDetector(ScriptedDetector):
    """Remembers how much it was given to hear."""

    def __init__(self) -> None:
        self.heard_samples = 0

    def speech_probabilities(self, samples: Iterable[FloatSamples]) -> Iterator[float]:
        held = list(samples)
        self.heard_samples += sum(map(len, held))
        return super().speech_probabilities(held)


def silence(seconds: float) -> FloatSamples:
    return np.zeros(round(seconds * SAMPLE_RATE), np.float32)


def turns(seconds: float, *, first: int) -> FloatSamples:
    """Two seconds of a voice of its own, two of silence, in turn; `first` 0 or 1."""
    place = np.arange(round(seconds * SAMPLE_RATE)) // (2 * SAMPLE_RATE) % 2
    return voice(seconds, seed=first) * (place == first)


def melody(seconds: float, *, seed: int, level: float = 0.1) -> FloatSamples:
    """A voice of few frequencies at a time, eight notes a second, as vowels are: two of them seldom
    meet in one."""
    rng = np.random.default_rng(seed)
    note = SAMPLE_RATE // 8
    hertz = rng.uniform(250, 3_000, (round(seconds * 8), 4)).repeat(note, axis=0)
    phase = 2 * np.pi * np.cumsum(hertz, axis=0) / SAMPLE_RATE
    return (level * np.sin(phase).sum(axis=1) / 2).astype(np.float32)


def leaking(left: FloatSamples, right: FloatSamples, leak_db: float) -> FloatSamples:
    """[2, n]: each side five milliseconds later in the other."""
    sides = np.stack((left, right))
    leak = np.float32(10 ** (leak_db / 20))
    return (sides + leak * np.roll(sides[::-1], 80, axis=1)).astype(np.float32)


def echoing(sound: FloatSamples, *, seed: int, echo_db: float) -> FloatSamples:
    """As a room's microphone hears it, whose echoes are so much louder than the voice itself."""
    tail = np.random.default_rng(seed).standard_normal(4_000) * np.exp(-np.arange(4_000) / 1_000)
    tail *= 10 ** (echo_db / 20) / np.linalg.norm(tail)
    size = len(sound) + len(tail)
    echoes = np.fft.irfft(np.fft.rfft(sound, size) * np.fft.rfft(tail, size), size)
    return (sound + echoes[: len(sound)]).astype(np.float32)


def stereo(path: Path, left: FloatSamples, right: FloatSamples) -> Path:
    sound = np.stack((left, right)).astype(np.float32)
    return write_container(path, sound, container="flac", codec="flac", layout="stereo")


def survey_of(path: Path) -> TrackSurvey:
    (found,) = survey(path, finder=ScriptedDetector())
    return found


def planned(path: Path, plan: ChannelPlan) -> FloatSamples:
    with open_audio(path, track=plan.track) as source:
        return np.concatenate(list(decode_planned(source, plan)), axis=-1)


def test_one_track_with_one_channel_leaves_nothing_to_choose(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(wav_bytes(tone(1.0)))
    finder = CountingDetector()
    assert survey(path, finder=finder) == []
    assert finder.heard_samples == 0


@pytest.mark.parametrize("delay", [0, 40, 200])
@pytest.mark.parametrize("level", [1.0, 0.4, -0.7])
def test_one_voice_in_both_channels_is_one_voice(tmp_path: Path, delay: int, level: float) -> None:
    one = voice(6.0)
    found = survey_of(stereo(tmp_path / "a", one, level * np.roll(one, delay)))
    assert not found.are_channels_different
    assert found.is_antiphase == (delay == 0 and level < 0)


def test_one_voice_is_known_in_an_echoing_room(tmp_path: Path) -> None:
    """Two microphones far apart: each hears the voice with echoes of its own."""
    one = voice(6.0)
    echoes = [np.random.default_rng(seed).standard_normal(4_000) for seed in (1, 2)]
    decay = np.exp(-np.arange(4_000) / 1_000)
    left, right = (
        one + np.convolve(one, echo * decay / np.linalg.norm(echo * decay))[: len(one)]
        for echo in echoes
    )
    assert not survey_of(stereo(tmp_path / "a", left / 4, right / 4)).are_channels_different


def test_two_voices_at_once_are_different(tmp_path: Path) -> None:
    found = survey_of(stereo(tmp_path / "a", voice(6.0, seed=1), voice(6.0, seed=2)))
    assert found.are_channels_different
    assert found.speech_ms == pytest.approx((6_000, 6_000), abs=100)


@pytest.mark.parametrize("leak", [0.0, 0.01, 0.1])
def test_two_voices_in_turn_are_different_though_each_leaks_into_the_other(
    tmp_path: Path, leak: float
) -> None:
    left, right = turns(16.0, first=0), turns(16.0, first=1)
    found = survey_of(stereo(tmp_path / "a", left + leak * right, right + leak * left))
    assert found.are_channels_different


@pytest.mark.parametrize("leak_db", [-30, -18, -15])
@pytest.mark.parametrize("seed", [1, 5])
def test_two_voices_at_once_are_different_though_each_leaks_into_the_other(
    tmp_path: Path, leak_db: float, seed: int
) -> None:
    both = leaking(melody(12.0, seed=seed), melody(12.0, seed=seed + 1), leak_db)
    assert survey_of(stereo(tmp_path / "a", *both)).are_channels_different


@pytest.mark.parametrize("echo_db", [-20, 0, 12], ids=["dry", "echo", "loud echo"])
@pytest.mark.parametrize("far_db", [0, -9])
def test_two_voices_at_once_in_a_room_are_not_a_call(
    tmp_path: Path, echo_db: float, far_db: float
) -> None:
    """Each is nearer to one microphone, as a panned voice of a produced recording is."""
    near, far = melody(12.0, seed=1), melody(12.0, seed=2)
    far_gain = 10 ** (far_db / 20)
    left = echoing(near, seed=1, echo_db=echo_db) + echoing(
        far_gain * far, seed=2, echo_db=echo_db - far_db
    )
    right = echoing(far, seed=3, echo_db=echo_db) + echoing(
        far_gain * near, seed=4, echo_db=echo_db - far_db
    )
    assert not survey_of(stereo(tmp_path / "a", left / 4, right / 4)).are_channels_different


@pytest.mark.parametrize("bed_db", [-20, -10, -3])
def test_a_voice_over_wide_music_is_one_voice(tmp_path: Path, bed_db: float) -> None:
    gain = 10 ** (bed_db / 20)
    left, right = (voice(8.0, seed=3) + gain * melody(8.0, seed=seed) for seed in (1, 2))
    assert not survey_of(stereo(tmp_path / "a", left, right)).are_channels_different


def test_two_microphones_on_one_table_are_not_a_call(tmp_path: Path) -> None:
    left, right = turns(16.0, first=0), turns(16.0, first=1)
    found = survey_of(stereo(tmp_path / "a", left + 0.5 * right, right + 0.5 * left))
    assert not found.are_channels_different


def test_a_silent_channel_makes_no_call(tmp_path: Path) -> None:
    found = survey_of(stereo(tmp_path / "a", silence(3.0), voice(3.0)))
    assert (found.are_channels_different, found.is_silent) == (False, False)
    assert found.level_db[0] == -120
    assert survey_of(stereo(tmp_path / "b", silence(3.0), silence(3.0))).is_silent


def test_every_track_is_described(tmp_path: Path) -> None:
    path = write_tracks(
        tmp_path / "a",
        silence(4.0),
        voice(4.0),
        np.stack((voice(4.0, seed=1), voice(4.0, seed=2))),
        titles=("Video", "Room", "Call"),
    )
    found = survey(path, finder=ScriptedDetector())
    assert [track.title for track in found] == ["Video", "Room", "Call"]
    assert [track.channels for track in found] == [1, 1, 2]
    assert [track.is_default for track in found] == [True, False, False]
    assert [track.has_speech for track in found] == [False, True, True]
    assert [track.are_channels_different for track in found] == [False, False, True]


def test_surround_is_heard_as_the_models_hear_it(tmp_path: Path) -> None:
    sound = np.repeat(voice(2.0)[None], 6, axis=0)
    found = survey_of(
        write_container(tmp_path / "a", sound, container="wav", codec="pcm_s16le", layout="5.1")
    )
    assert (found.channels, len(found.speech_ms), found.has_speech) == (6, 1, True)


def test_a_long_recording_is_heard_in_a_few_places_from_its_start_to_its_end(
    tmp_path: Path,
) -> None:
    seconds = 400.0
    late = np.concatenate((silence(seconds - 9), voice(9.0)))
    path = stereo(tmp_path / "a", late, silence(seconds))
    finder = CountingDetector()
    (found,) = survey(path, finder=finder)
    assert found.has_speech
    assert found.heard_ms <= SPOTS * (SPOT_S + 1) * 1000
    assert finder.heard_samples <= 2 * SPOTS * (SPOT_S + 1) * SAMPLE_RATE


@pytest.mark.parametrize(
    ("seconds", "is_whole"),
    [
        pytest.param(20.0, True, id="short"),
        pytest.param(SPOTS * SPOT_S - 1, True, id="as long as the places"),
        pytest.param(SPOTS * SPOT_S + 40, False, id="longer"),
    ],
)
def test_a_track_is_heard_whole_only_where_the_places_cover_it(
    tmp_path: Path, seconds: float, is_whole: bool
) -> None:
    found = survey_of(stereo(tmp_path / "a", voice(seconds), silence(seconds)))
    assert found.is_heard_whole == is_whole


class NoiseProof(ScriptedDetector):
    """Hears no speech in what is a little quieter than a voice."""

    def _probability(self, samples: FloatSamples) -> float:
        return float(np.sqrt(np.mean(np.square(samples))) > 0.05)


def test_who_speaks_between_the_places_is_heard(tmp_path: Path) -> None:
    """One side talks, the other one is noise and a sentence that no place of the survey holds."""
    seconds = 200.0
    noise = np.random.default_rng(9).standard_normal(round(seconds * SAMPLE_RATE)) * 0.03
    sentence = slice(30 * SAMPLE_RATE, 33 * SAMPLE_RATE)
    noise[sentence] += voice(3.0, seed=2, level=0.2)
    path = stereo(tmp_path / "a", voice(seconds, seed=1, level=0.1), noise.astype(np.float32))
    (found,) = survey(path, finder=NoiseProof())
    assert (found.speech_ms[1], found.seldom_channel) == (0, 1)
    plan = plan_of([found])
    assert plan.mode is ChannelMode.EACH
    heard = planned(path, plan)[1, sentence]
    assert np.allclose(heard, noise[sentence], atol=1e-3)


def test_no_more_than_a_few_tracks_are_heard(tmp_path: Path) -> None:
    path = write_tracks(tmp_path / "a", *[voice(0.3, seed=seed) for seed in range(MAX_TRACKS + 2)])
    assert len(survey(path, finder=ScriptedDetector())) == MAX_TRACKS


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("words " * 100)
    with pytest.raises(NotAudioError):
        survey(path, finder=ScriptedDetector())


def test_the_chosen_track_is_read(tmp_path: Path) -> None:
    path = write_tracks(tmp_path / "a", silence(1.0), tone(1.5))
    assert len(planned(path, ChannelPlan(None))) == SAMPLE_RATE
    assert np.allclose(planned(path, ChannelPlan(1)), tone(1.5), atol=1e-3)


def test_channels_are_read_alone_or_each_on_its_own(tmp_path: Path) -> None:
    left, right = voice(2.5, seed=1), tone(2.5)
    path = stereo(tmp_path / "a", left, right)
    each = planned(path, ChannelPlan(0, ChannelMode.EACH))
    assert np.allclose(each, np.stack((left, right)), atol=1e-3)
    assert np.allclose(planned(path, ChannelPlan(0, ChannelMode.LEFT)), left, atol=1e-3)
    assert np.allclose(planned(path, ChannelPlan(0, ChannelMode.RIGHT)), right, atol=1e-3)


def test_a_voice_that_leaks_into_the_other_channel_is_not_heard_there(tmp_path: Path) -> None:
    left, right = turns(8.0, first=0), turns(8.0, first=1)
    path = stereo(tmp_path / "a", left + 0.03 * right, right + 0.03 * left)
    heard = planned(path, ChannelPlan(0, ChannelMode.EACH))
    assert not heard[1, : 2 * SAMPLE_RATE].any()
    assert not heard[0, 2 * SAMPLE_RATE : 4 * SAMPLE_RATE].any()
    assert np.allclose(heard[0, : 2 * SAMPLE_RATE], left[: 2 * SAMPLE_RATE], atol=1e-3)


def test_a_quiet_voice_beside_a_loud_one_is_kept(tmp_path: Path) -> None:
    path = stereo(tmp_path / "a", voice(4.0, seed=1, level=0.2), voice(4.0, seed=2, level=0.01))
    heard = planned(path, ChannelPlan(0, ChannelMode.EACH))
    assert np.allclose(heard[1], voice(4.0, seed=2, level=0.01), atol=1e-3)
