"""Which characters Chinese is written in: the site's, unless somebody chose others."""

from __future__ import annotations

from typing import cast

from django.conf import settings

from asr_engine.scripts import ChineseScript
from transcription.models import Recording


def script_of(recording: Recording) -> ChineseScript:
    """The script for the transcripts of `recording`, as `asr_engine.scripts.written` takes it."""
    return cast("ChineseScript", recording.chinese_script or settings.SITE.chinese_script)
