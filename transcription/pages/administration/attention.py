"""What an administrator should look at first: each a sentence, and where to go."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.urls import reverse
from django.utils import timezone

from transcription.models import (
    Job,
    JobState,
    PurgeRun,
    Recording,
    RecordingState,
    RetentionPolicy,
    Webhook,
)
from transcription.pages.administration.engines import LATE_MS
from transcription.services import machine
from transcription.templatetags.ui import size
from webapp.accounts.models import Act, AuditEntry
from webapp.health import findings

OLDEST_WAIT: Final = timedelta(hours=1)
FAILED_LOG_INS: Final = 20
"""Within an hour: more than people mistype."""


@dataclass(frozen=True, slots=True)
class Attention:
    """`tone` is `danger` where something does not work, `warning` where it soon may not."""

    tone: str
    title: str
    advice: str
    address: str
    where: str


def what_needs_attention() -> list[Attention]:
    """What does not work first."""
    parts, disk = machine.look_at_parts(), machine.look_at_disk()
    found = [
        *_of_health(),
        *_of_engines(parts),
        *_of_models(),
        *_of_disk(disk),
        *(item for look in _LOOKS for item in look()),
    ]
    return sorted(found, key=lambda item: item.tone != "danger")


def _of_health() -> Iterator[Attention]:
    for finding in findings():
        if not finding.is_well:
            yield Attention(
                "danger",
                finding.problem,
                "The log of that process says why it ended, or why it cannot be reached.",
                reverse("administration_engines"),
                "Engines",
            )


def _of_engines(parts: machine.Parts) -> Iterator[Attention]:
    serving = [status for status in parts.engines if not status.is_draining]
    address = reverse("administration_engines")
    for status in parts.engines:
        if status.is_draining:
            advice = "It takes no live session until it is told to serve again, or restarts."
            yield Attention("warning", f"{status.engine} is draining.", advice, address, "Engines")
        elif status.lag_ms >= LATE_MS:
            title = f"{status.engine} is {status.lag_ms / 1000:.1f} s late."
            advice = "It takes no new session until it has caught up. More engines share the work."
            yield Attention("warning", title, advice, address, "Engines")
    if serving and not any(status.free_slots for status in serving):
        advice = "The next live session is refused until one ends. More engines give more places."
        yield Attention("warning", "Every engine is full.", advice, address, "Engines")


def _of_models() -> Iterator[Attention]:
    for name in machine.missing_models():
        yield Attention(
            "danger",
            f"The model {name} is missing or damaged.",
            "What needs it does not work. The page of engines has the command that mends it.",
            reverse("administration_engines"),
            "Engines",
        )


def _of_disk(disk: machine.Disk) -> Iterator[Attention]:
    if disk.is_scarce:
        yield Attention(
            "warning",
            f"The disk has {size(disk.free_bytes)} left.",
            "Uploads are refused when it is full. A shorter retention, or fewer recordings, help.",
            reverse("administration_storage"),
            "Storage",
        )


def _of_jobs() -> Iterator[Attention]:
    address = reverse("administration_jobs")
    failed = Recording.objects.filter(
        state=RecordingState.ATTENTION, trashed_at=None, jobs__state=JobState.FAILED
    )
    if count := failed.distinct().count():
        title = "A transcription failed." if count == 1 else f"{count} transcriptions failed."
        advice = "Each says why, and can be tried again."
        yield Attention("warning", title, advice, f"{address}?show=failed", "Jobs")
    oldest = Job.objects.filter(state=JobState.QUEUED).order_by("enqueued_at").first()
    if oldest is not None and oldest.enqueued_at < timezone.now() - OLDEST_WAIT:
        hours = (timezone.now() - oldest.enqueued_at) // timedelta(hours=1)
        title = f"A recording has waited {hours} h for its transcription."
        advice = "More workers of the queue “batch” shorten the queue."
        yield Attention("warning", title, advice, address, "Jobs")


def _of_retention() -> Iterator[Attention]:
    address = reverse("administration_retention")
    last = PurgeRun.objects.first()
    if last is not None and last.problem:
        advice = "What was due is tried again the next night."
        yield Attention("danger", f"The last purge: {last.problem}", advice, address, "Retention")
    if RetentionPolicy.objects.filter(takes_effect_at__gt=timezone.now()).exists():
        advice = "The page shows what it will delete, and takes it back."
        title = "A changed retention is about to take effect."
        yield Attention("warning", title, advice, address, "Retention")


def _of_webhooks() -> Iterator[Attention]:
    if count := Webhook.objects.exclude(disabled_reason="").count():
        title = "A webhook was" if count == 1 else f"{count} webhooks were"
        yield Attention(
            "warning",
            f"{title} switched off after many failures.",
            "Their owners see why among their webhooks, and switch them on again.",
            f"{reverse('administration_audit')}?act={Act.WEBHOOK_CHANGED}",
            "Audit",
        )


def _of_log_ins() -> Iterator[Attention]:
    since = timezone.now() - timedelta(hours=1)
    failed = AuditEntry.objects.filter(act=Act.LOG_IN_FAILED, at__gt=since).count()
    if failed >= FAILED_LOG_INS:
        yield Attention(
            "warning",
            f"{failed} log-ins failed within an hour.",
            "Guessing is throttled. The log says for which accounts, and from where.",
            f"{reverse('administration_audit')}?act={Act.LOG_IN_FAILED}",
            "Audit",
        )


_LOOKS: Final[tuple[Callable[[], Iterator[Attention]], ...]] = (
    _of_jobs,
    _of_retention,
    _of_webhooks,
    _of_log_ins,
)
