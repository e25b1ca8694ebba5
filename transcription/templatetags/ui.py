"""Small things that many templates show: icons, times, lengths, sizes, initials."""

from __future__ import annotations

from datetime import datetime, timedelta

from django import template
from django.forms import BoundField, Select
from django.templatetags.static import static
from django.utils import formats, timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


@register.simple_tag
def icon(name: str, label: str = "", size: str = "") -> SafeString:
    """One symbol of `static/img/icons.svg`; with a `label` it is heard, else it is decoration."""
    return format_html(
        '<svg class="icon{}" aria-hidden="true"><use href="{}#{}"></use></svg>{}',
        f" icon-{size}" if size else "",
        static("img/icons.svg"),
        name,
        format_html('<span class="only-heard">{}</span>', label) if label else "",
    )


@register.filter
def when(moment: datetime | None) -> SafeString | str:
    """A relative time; the exact one, in the person's zone, appears on hover."""
    if moment is None:
        return ""
    local = timezone.localtime(moment)
    exact = formats.date_format(local, "j F Y, H:i")
    return format_html(
        '<time datetime="{}" title="{}" data-relative>{}</time>',
        moment.isoformat(),
        f"{exact} ({local.tzname()})",
        relative_time(moment, timezone.now()),
    )


def relative_time(moment: datetime, now: datetime) -> str:
    """Words for the distance from `moment` to `now`; `static/js/site.js` keeps them fresh."""
    age = now - moment
    if age < MINUTE:
        return "just now"
    if age < HOUR:
        return f"{age // MINUTE} min ago"
    if age < DAY:
        return f"{age // HOUR} h ago"
    local, today = timezone.localtime(moment).date(), timezone.localtime(now).date()
    if (today - local).days == 1:
        return "yesterday"
    if (today - local).days < 7:
        return formats.date_format(local, "l")
    return formats.date_format(local, "j F" if local.year == today.year else "j F Y")


@register.filter
def clock(position_ms: int | None) -> str:
    """A position or length as `m:ss` or `h:mm:ss`."""
    seconds = (position_ms or 0) // 1000
    hours, rest = divmod(seconds, 3600)
    minutes, seconds = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


@register.filter
def about(seconds: float | None) -> str:
    """How long something takes, as a person would say it."""
    if seconds is None:
        return ""
    if seconds < 50:
        return "less than a minute"
    if seconds < 90 * 60:
        return f"about {max(1, round(seconds / 60))} min"
    return f"about {round(seconds / 3600)} h"


@register.filter
def size(length_bytes: int) -> str:
    """Bytes in units of 1024, as the limits of this server are counted and Windows shows them."""
    for unit, factor in (("GB", 1024**3), ("MB", 1024**2), ("kB", 1024)):
        if length_bytes >= factor:
            value = length_bytes / factor
            return (
                f"{value:.1f}".removesuffix(".0") + f" {unit}"
                if value < 10
                else f"{value:.0f} {unit}"
            )
    return f"{length_bytes} bytes"


@register.filter
def initial(person: object) -> str:
    """The letter on a person's disc."""
    return str(person)[:1]


@register.filter
def marked(text: str, query: str) -> SafeString | str:
    """`text` with what was searched for marked; both stay text."""
    at = text.lower().find(query.lower()) if query else -1
    # Lower case may differ in length ("İ"); then the place is unknown and nothing is marked.
    if at < 0 or len(text.lower()) != len(text):
        return text
    end = at + len(query)
    return format_html("{}<mark>{}</mark>{}", text[:at], text[at:end], text[end:])


@register.simple_tag
def styled_field(field: BoundField) -> SafeString:
    """A form's field with the class that its widget has in the design system."""
    is_select = isinstance(field.field.widget, Select)
    return field.as_widget(attrs={"class": "select" if is_select else "input"})
