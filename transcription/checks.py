"""System checks: what would fail at run time is said at start, with the command that mends it."""

from __future__ import annotations
