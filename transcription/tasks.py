"""Thin Celery tasks: each has the verb of the service or runner that it calls."""

from __future__ import annotations
