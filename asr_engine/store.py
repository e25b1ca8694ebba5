"""The model store: what is installed, fetched, verified."""

from __future__ import annotations
