"""What people download is what players and programs read."""

from __future__ import annotations

import io
import json

import pysubs2
import pytest
import webvtt

from asr_engine.results import Segment, Word
from transcription.errors import InvalidInputError
from transcription.formats import FORMATS, export

WORDS = (Word("Good", 500, 800, 0.9), Word("morning.", 800, 1300, 0.8))
SEGMENTS = (
    Segment(500, 1300, "Good morning.", WORDS),
    Segment(3_661_001, 3_662_500, "Is 1 < 2 & <b>bold</b> --> yes?"),
)


def test_srt_numbers_cues_and_uses_commas() -> None:
    assert export("srt", "Title", SEGMENTS) == (
        "1\n00:00:00,500 --> 00:00:01,500\nGood morning.\n\n"
        "2\n01:01:01,001 --> 01:01:02,500\nIs 1 < 2 & <b>bold</b> -> yes?\n"
    )


def test_vtt_escapes_what_would_be_markup() -> None:
    text = export("vtt", "Talk --> one", SEGMENTS)
    assert text.startswith("WEBVTT - Talk -> one\n\n00:00:00.500 --> 00:00:01.500\n")
    assert "Is 1 &lt; 2 &amp; &lt;b&gt;bold&lt;/b&gt; --&gt; yes?" in text


def test_vtt_is_read_by_another_program() -> None:
    captions = list(webvtt.from_buffer(io.StringIO(export("vtt", "Talk", SEGMENTS))))
    assert [(one.start, one.end) for one in captions] == [
        ("00:00:00.500", "00:00:01.500"),
        ("01:01:01.001", "01:01:02.500"),
    ]
    assert captions[0].text == "Good morning."


def test_srt_is_read_by_another_program() -> None:
    captions = list(webvtt.from_buffer(io.StringIO(export("srt", "Talk", SEGMENTS)), format="srt"))
    assert len(captions) == 2


def test_text_has_paragraphs_where_people_paused() -> None:
    segments = [
        Segment(0, 1000, "One."),
        Segment(1200, 2000, "Two."),
        Segment(9000, 9500, "Three."),
    ]
    assert export("txt", "My talk", segments) == "My talk\n\nOne. Two.\n\nThree.\n"


def test_chinese_sentences_are_joined_without_spaces() -> None:
    segments = [Segment(0, 1000, "今天开会。"), Segment(1200, 2000, "请坐。")]
    assert export("txt", "", segments) == "今天开会。请坐。\n"


def test_a_breath_shows_where_a_chinese_sentence_without_a_sign_ends() -> None:
    segments = [Segment(0, 1000, "今天开会"), Segment(1400, 2000, "请坐")]
    assert export("txt", "", segments) == "今天开会 请坐\n"


def test_json_keeps_words_times_and_confidences() -> None:
    data = json.loads(export("json", "Title", SEGMENTS, language="en"))
    assert data["title"] == "Title"
    assert data["language"] == "en"
    assert data["segments"][0]["words"][1] == {
        "text": "morning.",
        "start_ms": 800,
        "end_ms": 1300,
        "confidence": 0.8,
        "has_space_before": True,
    }


@pytest.mark.parametrize("extension", list(FORMATS))
def test_an_empty_transcript_is_a_valid_file(extension: str) -> None:
    text = export(extension, "", [])
    expected = {"txt": "", "srt": "", "vtt": "WEBVTT\n"}
    if extension == "json":
        assert json.loads(text)["segments"] == []
    else:
        assert text == expected[extension]


@pytest.mark.parametrize("extension", ["txt", "srt", "vtt"])
def test_a_title_or_text_with_line_breaks_cannot_forge_a_cue(extension: str) -> None:
    forged = "x\n\n00:00:00.000 --> 00:00:09.000\nforged"
    text = export(extension, forged, [Segment(0, 1000, forged)])
    assert "\n00:00:00.000 --> 00:00:09.000\nforged" not in text
    assert sum(" --> " in line for line in text.splitlines()) <= 1 + (extension == "txt")


TURNS = (
    Segment(0, 1500, "Good morning.", speaker="1"),
    Segment(1600, 3000, "Shall we begin?", speaker="1"),
    Segment(3200, 5000, "Yes.", speaker="2", language="en"),
    Segment(5200, 6000, "", speaker="2", mark="unclear"),
    Segment(9000, 9900, "Then <begin>.", speaker="2"),
)
NAMES = {"2": "Bob & <Co>"}


def test_text_has_a_paragraph_for_each_speaker_and_says_what_was_unclear() -> None:
    assert export("txt", "Talk", TURNS, names=NAMES) == (
        "Talk\n\nSpeaker 1: Good morning. Shall we begin?\n\n"
        "Bob & <Co>: Yes. [unclear]\n\nThen <begin>.\n"
    )


def test_the_channels_of_a_call_are_called_by_their_sides() -> None:
    segments = [
        Segment(0, 900, "Hello?", speaker="left"),
        Segment(900, 1800, "Yes.", speaker="right"),
    ]
    assert export("txt", "", segments) == "Left: Hello?\n\nRight: Yes.\n"


def test_vtt_has_a_voice_for_each_cue_of_a_speaker() -> None:
    text = export("vtt", "", TURNS, names=NAMES)
    assert "\n<v Speaker 1>Shall we begin?\n" in text
    assert "\n<v Bob &amp; &lt;Co&gt;>Yes.\n" in text
    assert "unclear" not in text
    voices = [one.voice for one in webvtt.from_string(text)]
    assert voices == ["Speaker 1", "Speaker 1", "Bob &amp; &lt;Co&gt;", "Bob &amp; &lt;Co&gt;"]


def test_srt_names_who_speaks_where_that_changes() -> None:
    subtitles = pysubs2.SSAFile.from_string(export("srt", "", TURNS, names={"2": "Bob"}), "srt")
    assert [one.plaintext for one in subtitles] == [
        "Speaker 1: Good morning.",
        "Shall we begin?",
        "Bob: Yes.",
        "Then .",  # SubRip has no escapes: readers take it for markup
    ]


def test_json_tells_speakers_languages_and_marks() -> None:
    data = json.loads(export("json", "", TURNS, language="zh", names=NAMES))
    assert [
        (one["speaker"], one["speaker_name"], one["language"], one["mark"], one["text"])
        for one in data["segments"][1:4]
    ] == [
        ("1", "Speaker 1", "zh", None, "Shall we begin?"),
        ("2", "Bob & <Co>", "en", None, "Yes."),
        ("2", "Bob & <Co>", "zh", "unclear", ""),
    ]


def test_a_subtitle_ends_with_the_recording() -> None:
    segments = [Segment(0, 900, "One."), Segment(4000, 4500, "Two.")]
    assert "00:00:04.000 --> 00:00:04.700" in export("vtt", "", segments, duration_ms=4700)


def test_an_unknown_format_is_refused_with_those_that_exist() -> None:
    with pytest.raises(InvalidInputError, match="txt, srt, vtt, json"):
        export("docx", "Title", SEGMENTS)


def test_every_format_has_a_media_type_and_a_name_for_people() -> None:
    for extension, entry in FORMATS.items():
        assert entry.extension == extension
        assert "/" in entry.media_type
        assert entry.label
