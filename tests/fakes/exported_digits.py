"""The small model of `digits.py`, exported for ONNX Runtime once for all tests."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from tests.fakes.digits import digits_model

_FOLDERS = tempfile.TemporaryDirectory(prefix="transcribe-tests-onnx-")


def exported_digits(decoder: str, *, is_int8: bool = False) -> Path:
    """The folder that `OnnxNetwork` loads; `decoder` is rnnt or ctc."""
    return _exported(decoder, is_int8)


@cache
def _exported(decoder: str, is_int8: bool) -> Path:
    from asr_engine.backends.cache_aware.export import export_model

    folder = Path(_FOLDERS.name) / f"{decoder}{'-int8' if is_int8 else ''}"
    folder.mkdir()
    export_model(digits_model(), folder, is_int8=is_int8, decoder=decoder)
    return folder
