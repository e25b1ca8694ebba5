"""How a web process speaks to engines: admission, status. No models."""

from __future__ import annotations
