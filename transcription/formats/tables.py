"""Tables for spreadsheets: CSV whose cells are text and never formulas."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import Final

FORMULA_SIGNS: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""A cell that begins so is calculated by some spreadsheet, and may then ask other servers."""
MARK: Final = "\ufeff"
"""At the head of a table: without it some spreadsheets take UTF-8 for something else."""


def safe_cell(text: str) -> str:
    """`text` as it is, behind an apostrophe where a spreadsheet would calculate it."""
    return f"'{text}" if text.lstrip(" \0").startswith(FORMULA_SIGNS) else text


def write_lines(rows: Iterable[Iterable[str]]) -> str:
    """The rows as lines of CSV (RFC 4180)."""
    written = io.StringIO()
    csv.writer(written).writerows([safe_cell(cell) for cell in row] for row in rows)
    return written.getvalue()
