"""Scores: WER, CER, RTF."""

from __future__ import annotations
