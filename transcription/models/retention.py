"""How long things are kept, and what each purge did."""

from __future__ import annotations

import uuid

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
    """One purge, from its claim to its report. `lease_expires_at` is empty when it has ended.

    `counts` says how many of each kind went and how many bytes; `problem` why it ended early.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    started_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    fence = models.PositiveIntegerField(default=0)
    counts = models.JSONField(default=dict, blank=True)
    problem = models.CharField(max_length=300, blank=True)

    class Meta:
        ordering = ("-started_at",)

    def __str__(self) -> str:
        return f"purge {self.id}"
