"""How long things are kept, and what each purge did."""

from __future__ import annotations

from django.conf import settings
from django.core.validators import MinValueValidator
from django.db import models
from django.utils import timezone

AT_LEAST_A_DAY = MinValueValidator(1)


class RetentionPolicy(models.Model):
    """How long what one team records is kept; without a team, the organisation's.

    Days are whole days of 24 hours. An empty field of the organisation's policy keeps for ever; an
    empty field of a team's policy follows the organisation's. A changed policy is a new row: the
    one in force is the newest whose `takes_effect_at` has passed, so that its effect can be seen,
    and the change taken back, before anything is deleted.
    """

    team = models.ForeignKey(
        "accounts.Team",
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="retention_policies",
    )
    audio_days = models.PositiveIntegerField(null=True, blank=True, validators=[AT_LEAST_A_DAY])
    live_audio_days = models.PositiveIntegerField(
        null=True, blank=True, validators=[AT_LEAST_A_DAY]
    )
    transcript_days = models.PositiveIntegerField(
        null=True, blank=True, validators=[AT_LEAST_A_DAY]
    )
    failed_days = models.PositiveIntegerField(null=True, blank=True, validators=[AT_LEAST_A_DAY])
    trash_days = models.PositiveIntegerField(null=True, blank=True, validators=[AT_LEAST_A_DAY])
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now)
    takes_effect_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ("-created_at",)
        indexes = (models.Index(fields=("team", "-takes_effect_at")),)
        constraints = tuple(
            models.CheckConstraint(
                condition=models.Q(**{name: None}) | models.Q(**{f"{name}__gte": 1}),
                name=f"policy_{name}_at_least_one",
            )
            for name in (
                "audio_days",
                "live_audio_days",
                "transcript_days",
                "failed_days",
                "trash_days",
            )
        )

    def __str__(self) -> str:
        return f"retention policy {self.pk}"


class PurgeRun(models.Model):
    """One purge, from its claim to its report.

    At most one is open. Its worker holds it by a lease and a fence: each of its writes says `WHERE
    fence = mine AND is_open`, and another worker takes it on by raising the fence once the lease
    has run out. `counts` says how many of each kind went, and how many bytes, and is written
    together with what went; `problem` is a sentence for administrators on why nothing (more) did.
    The numbers of runs rise, whatever the clock says.
    """

    started_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)
    is_open = models.BooleanField(default=True)
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    fence = models.PositiveIntegerField(default=1)
    counts = models.JSONField(default=dict, blank=True)
    problem = models.CharField(max_length=300, blank=True)

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.UniqueConstraint(
                fields=("is_open",), condition=models.Q(is_open=True), name="one_open_purge"
            ),
        )

    def __str__(self) -> str:
        return f"purge {self.pk}"


class Remains(models.Model):
    """Bytes and keys of a thing that are still to be removed; `id` is what the thing had.

    Written in the transaction that ends the thing, and deleted when nothing is left of it: a
    process killed in between leaves the rest to the next look.
    """

    id = models.UUIDField(primary_key=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ("created_at",)
        verbose_name_plural = "remains"

    def __str__(self) -> str:
        return f"remains of {self.id}"
