#!/usr/bin/env python
"""Django's command line."""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    from django.core.management import execute_from_command_line

    import webapp.celery  # noqa: F401  # commands send tasks by the current Celery application

    execute_from_command_line(sys.argv)
