"""The navigation of the administration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from django import template
from django.urls import reverse

register = template.Library()

PAGES: Final = (
    ("administration", "Overview", "gauge"),
    ("administration_people", "People", "user"),
    ("administration_teams", "Teams", "users"),
    ("administration_tools", "Tools", "key-round"),
    ("administration_retention", "Retention", "clock"),
    ("glossary", "Names and terms", "list"),
    ("administration_engines", "Engines", "radio"),
    ("administration_storage", "Storage", "file-audio"),
    ("administration_jobs", "Jobs", "captions"),
    ("administration_audit", "Audit", "eye"),
)
"""Name of the address, words, icon. A page's further addresses begin with its name and `_`."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the navigation."""

    address: str
    label: str
    icon: str
    is_current: bool


@register.inclusion_tag("administration/navigation.html", takes_context=True)
def administration_navigation(context: dict[str, Any]) -> dict[str, list[Entry]]:
    """The pages, with the one marked that is shown."""
    match = context["request"].resolver_match
    here = match.url_name if match else ""
    entries = []
    for name, label, icon in PAGES:
        is_below = name != "administration" and here.startswith(f"{name}_")
        entries.append(Entry(reverse(name), label, icon, here == name or is_below))
    return {"entries": entries}
