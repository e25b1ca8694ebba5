"""Subtitles: cues as SubRip and as WebVTT.

What could not be understood is left out: a viewer hears it.
"""

from __future__ import annotations

from typing import Final

from webvtt import Caption, WebVTT

from transcription.formats.cues import Cue, make_cues
from transcription.formats.transcript import Transcript

MARKUP: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def write_srt(transcript: Transcript) -> str:
    """SubRip: the format has no place for a title, no escapes, and speakers only as text.

    Written here: docs/decisions/0014-subtitles-by-a-library.md.
    """
    cues = make_cues(
        transcript.segments, duration_ms=transcript.duration_ms, name_of=transcript.name_of
    )
    blocks = []
    for number, cue in enumerate(cues, start=1):
        times = f"{_clock(cue.start_ms, ',')} --> {_clock(cue.end_ms, ',')}"
        # An arrow in the text would be read as a line of times.
        lines = "\n".join(line.replace("-->", "->") for line in cue.lines)
        blocks.append(f"{number}\n{times}\n{lines}\n")
    return "\n".join(blocks)


def write_vtt(transcript: Transcript) -> str:
    """WebVTT with escaped text and a voice for each speaker; the title stands on the first line, as
    the format allows."""
    cues = make_cues(transcript.segments, duration_ms=transcript.duration_ms)
    title = transcript.title.replace("-->", "->")
    file = WebVTT(
        captions=[_caption(cue, transcript) for cue in cues],
        header_text=f"- {title}" if title else "",
    )
    return file.content


def _caption(cue: Cue, transcript: Transcript) -> Caption:
    lines = [line.translate(MARKUP) for line in cue.lines]
    if cue.speaker:
        lines[0] = f"<v {transcript.name_of(cue.speaker).translate(MARKUP)}>{lines[0]}"
    return Caption(_clock(cue.start_ms, "."), _clock(cue.end_ms, "."), lines)


def _clock(position_ms: int, point: str) -> str:
    seconds, milliseconds = divmod(position_ms, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{seconds:02}{point}{milliseconds:03}"
