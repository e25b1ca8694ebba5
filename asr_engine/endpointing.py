"""Endpoint rules as data, and one pure decision."""

from __future__ import annotations
