"""Words that an organisation, or one recording, expects to hear."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

DEFAULT_WEIGHT = 3.0


class GlossaryTerm(models.Model):
    """A phrase as it should be written. Without a recording it counts for the whole organisation.

    `weight` (0 to 10) is how much the phrase is preferred where the sound leaves a choice.
    """

    recording = models.ForeignKey(
        "transcription.Recording",
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="glossary_terms",
    )
    phrase = models.CharField(max_length=100)
    weight = models.FloatField(default=DEFAULT_WEIGHT)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ("phrase",)
        constraints = (
            models.UniqueConstraint(
                fields=("phrase",),
                condition=models.Q(recording=None),
                name="glossary_phrase_once",
            ),
            models.UniqueConstraint(fields=("recording", "phrase"), name="recording_phrase_once"),
            models.CheckConstraint(
                condition=models.Q(weight__gte=0) & models.Q(weight__lte=10),
                name="glossary_weight_in_range",
            ),
        )

    def __str__(self) -> str:
        return self.phrase
