"""Django's admin: metadata only. What people said is not shown here."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest

from transcription.models import Job


@admin.register(Job)
class JobAdmin(admin.ModelAdmin[Job]):
    """The queue, to look at. Cancel and retry belong to the pages, which do them safely."""

    list_display = (
        "id",
        "state",
        "stage",
        "worker",
        "failures",
        "problem_code",
        "enqueued_at",
        "finished_at",
    )
    list_filter = ("state", "problem_code")
    ordering = ("-enqueued_at",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Job | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Job | None = None) -> bool:
        return False
