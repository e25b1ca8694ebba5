"""Backend names to dotted paths, imported on use."""

from __future__ import annotations
