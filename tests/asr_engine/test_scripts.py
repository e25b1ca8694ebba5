"""Chinese comes in one script, with spaces at its borders; nothing else is touched."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asr_engine.results import Segment, Word, join_words
from asr_engine.scripts import (
    ChineseScript,
    is_apart,
    prepare,
    spaced,
    to_script,
    written,
    written_text,
    written_words,
)


def heard(*texts: str, language: str | None = "zh") -> Segment:
    """A word of 100 ms for each text, as a model of Chinese gives them."""
    words = tuple(
        Word(text.strip(), 100 * i, 100 * i + 100, 0.5, has_space_before=text.startswith(" "))
        for i, text in enumerate(texts)
    )
    return Segment(0, 100 * len(texts), join_words(words), words, language=language)


def text_of(segments: list[Segment]) -> str:
    (segment,) = segments
    return segment.text


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("hans", "我们后来发现头发在台湾"),
        ("hant", "我們後來發現頭髮在臺灣"),
        ("heard", "我們后来發現头髮在台灣"),
    ],
)
def test_a_text_in_both_scripts_comes_out_in_one(script: ChineseScript, text: str) -> None:
    assert text_of(to_script([heard(*"我們后来發現头髮在台灣")], script)) == text


def test_words_stay_as_many_and_at_their_times() -> None:
    before = heard(*"頭髮乾了")
    (after,) = to_script([before], "hans")
    assert [word.text for word in after.words] == list("头发干了")
    for old, new in zip(before.words, after.words, strict=True):
        assert (old.start_ms, old.end_ms, old.confidence) == (
            new.start_ms,
            new.end_ms,
            new.confidence,
        )


def test_a_character_is_written_as_those_beside_it_ask() -> None:
    """发 is 髮 in hair and 發 in discovery, which no single word tells."""
    assert (
        text_of(
            to_script(
                [
                    heard(*"头发"),
                ],
                "hant",
            )
        )
        == "頭髮"
    )
    assert text_of(to_script([heard(*"发现")], "hant")) == "發現"


@pytest.mark.parametrize("script", ["hans", "hant"])
@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("東京都に行きます", "ja"),
        ("東京都", "ja"),
        ("東京都に行きます", "zh"),
        ("漢字를 씁니다", "ko"),
        ("東京都に行きます", None),
        ("Good morning.", "zh"),
    ],
)
def test_what_is_not_chinese_is_left_alone(
    text: str, language: str | None, script: ChineseScript
) -> None:
    segment = heard(text, language=language)
    assert written([segment], script) == [segment]


@pytest.mark.parametrize("language", ["zh", "zh-TW", "yue", "en", None])
def test_chinese_is_chinese_whatever_else_is_spoken(language: str | None) -> None:
    assert text_of(to_script([heard(*"開會", language=language)], "hans")) == "开会"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("我们用Python写", "我们用 Python 写"),
        ("我们用 Python 写", "我们用 Python 写"),
        ("5G网络的GPT4模型", "5G 网络的 GPT4 模型"),
        ("用C++语言", "用 C++ 语言"),
        ("打开Wi-Fi。然后", "打开 Wi-Fi。然后"),
        ("2024年3月5日,百分之6", "2024年3月5日,百分之6"),
        ("“OK”他说", "“OK”他说"),
        ("去café喝", "去 café 喝"),
    ],
)
def test_a_space_stands_where_chinese_and_latin_words_meet(text: str, expected: str) -> None:
    assert written_text(text, language="zh", script="heard") == expected
    assert text_of(spaced([heard(text)])) == expected


def test_pieces_of_a_latin_word_stay_together() -> None:
    (segment,) = spaced([heard("用", "Py", "thon", "写")])
    assert segment.text == "用 Python 写"
    assert [word.has_space_before for word in segment.words] == [False, True, False, True]


def test_edited_text_is_rewritten_although_its_words_are_older() -> None:
    segment = Segment(0, 1000, "開會用Zoom", heard(*"開會").words, language="zh")
    (after,) = written([segment], "hans")
    assert after.text == "开会用 Zoom"
    assert join_words(after.words) == "开会"


@settings(deadline=None)
@given(
    st.lists(st.text(alphabet="我們发髮后後里裡a3%. ，", min_size=1, max_size=4), max_size=12),
    st.sampled_from(["heard", "hans", "hant"]),
)
def test_words_and_text_are_rewritten_alike(texts: list[str], script: ChineseScript) -> None:
    words = heard(*(text for text in texts if text.strip())).words
    rewritten = written_words(words, language="zh", script=script)
    assert len(rewritten) == len(words)
    assert join_words(rewritten) == written_text(join_words(words), language="zh", script=script)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("会议", "Zoom", True),
        ("Zoom", "会议", True),
        ("会议", "3点", False),
        ("会议。", "Zoom", False),
        ("会议", "结束", False),
        ("สวัสดี", "ครับ", False),
        ("안녕", "하세요", True),
        ("one.", "Two", True),
        ("", "会议", False),
        ("One", "", False),
    ],
)
def test_a_space_between_two_texts(before: str, after: str, expected: bool) -> None:
    assert is_apart(before, after) is expected


def test_what_was_prepared_is_used_again() -> None:
    prepare("heard")
    prepare("hans")
    assert written_text("開會", language="zh", script="hans") == "开会"
