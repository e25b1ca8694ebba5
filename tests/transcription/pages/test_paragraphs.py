"""A transcript as paragraphs."""

from __future__ import annotations

from asr_engine.results import Word
from transcription.models import SegmentMark, TranscriptSegment
from transcription.pages.paragraphs import LONGEST_CHARACTERS, UNCLEAR, Line, paragraphs_of


def segment(
    text: str, start_ms: int, words: tuple[Word, ...] = (), speaker: str = ""
) -> TranscriptSegment:
    return TranscriptSegment(
        index=start_ms // 1000,
        start_ms=start_ms,
        end_ms=start_ms + 900,
        text=text,
        words=[word.as_json() for word in words],
        speaker=speaker,
    )


def lines_of(*segments: TranscriptSegment) -> list[Line]:
    return [line for paragraph in paragraphs_of(segments) for line in paragraph.lines]


def test_no_segments_are_no_paragraphs() -> None:
    assert list(paragraphs_of([])) == []


def test_segments_in_one_breath_are_one_paragraph() -> None:
    (paragraph,) = paragraphs_of([segment("One.", 0), segment("Two.", 1000)])
    assert [line.has_space_before for line in paragraph.lines] == [False, True]


def test_a_space_stands_between_what_is_unclear_and_the_next_sentence() -> None:
    unclear = segment("", 0)
    unclear.mark = SegmentMark.UNCLEAR
    first, second = lines_of(unclear, segment("Two.", 1000))
    assert first.is_unclear
    assert [piece.text for piece in first.pieces] == [UNCLEAR]
    assert second.has_space_before


def test_pause_and_another_speaker_begin_a_paragraph() -> None:
    found = list(
        paragraphs_of(
            [
                segment("One.", 0, speaker="A"),
                segment("Two.", 1000, speaker="B"),
                segment("Three.", 5000, speaker="B"),
            ]
        )
    )
    assert [(paragraph.start_ms, paragraph.speaker) for paragraph in found] == [
        (0, "Speaker A"),
        (1000, "Speaker B"),
        (5000, "Speaker B"),
    ]


def test_long_paragraph_ends_with_a_sentence() -> None:
    long = "word " * (LONGEST_CHARACTERS // 4)
    found = list(paragraphs_of([segment(long, 0), segment("End.", 1000), segment("New.", 2000)]))
    assert [len(paragraph.lines) for paragraph in found] == [2, 1]


def test_chinese_lines_join_without_a_space() -> None:
    assert [
        line.has_space_before for line in lines_of(segment("你好。", 0), segment("再见。", 1000))
    ] == [
        False,
        False,
    ]


def test_words_tell_where_they_stand_in_utf16_units() -> None:
    words = (Word("🎤", 100, 200), Word("very", 200, 300), Word("very", 300, 400))
    (line,) = lines_of(segment("🎤 very very", 0, words))
    assert line.words == "100:0:2 200:3:4 300:8:4"


def test_chinese_without_punctuation_is_parted_where_the_speaker_breathes() -> None:
    first, second, third = lines_of(
        segment("六十是安全连接点", 0), segment("从今年开始。", 1800), segment("人口", 3600)
    )
    assert [line.has_space_before for line in (first, second, third)] == [False, True, False]


def test_punctuation_by_itself_is_not_marked_unsure() -> None:
    words = (Word("好", 0, 1, 0.9), Word("。", 1, 2, 0.1), Word("吗", 2, 3, 0.1))
    (line,) = lines_of(segment("好。吗", 0, words))
    assert [piece.text for piece in line.pieces if piece.is_unsure] == ["吗"]


def test_unsure_words_are_pieces_of_their_own_and_the_text_is_whole() -> None:
    words = (
        Word("Good", 0, 1, 0.9),
        Word("morrow", 1, 2, 0.2),
        Word("all", 2, 3, None),
    )
    (line,) = lines_of(segment(" Good morrow all. ", 0, words))
    assert "".join(piece.text for piece in line.pieces) == "Good morrow all."
    assert [piece.text for piece in line.pieces if piece.is_unsure] == ["morrow"]


def test_word_that_the_text_does_not_have_is_passed_over() -> None:
    (line,) = lines_of(segment("An edit", 0, (Word("Another", 0, 1), Word("edit", 1, 2))))
    assert line.words == "1:3:4"
    assert "".join(piece.text for piece in line.pieces) == "An edit"
