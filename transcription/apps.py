"""The product's one Django app."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.contrib.auth.signals import user_logged_out
from django.db.models.signals import post_delete, post_save, pre_delete


class TranscriptionConfig(AppConfig):
    name = "transcription"
    verbose_name = "Transcription"

    def ready(self) -> None:
        from transcription import checks, deploy_checks  # noqa: F401  # registers them
        from transcription.broadcast import rights_changed_on_commit
        from transcription.services.retention import keep_team_with_rules
        from webapp.accounts.models import ApiToken, Team, User
        from webapp.accounts.signals import rights_changed

        def tell_sockets(user: User | None, **_: Any) -> None:
            if user is not None:
                rights_changed_on_commit(user.pk)

        def tell_sockets_of_saved(
            instance: User, created: bool, update_fields: Any, **_: Any
        ) -> None:
            # Each log-in saves `last_login`, which takes no right away.
            if not created and (update_fields is None or set(update_fields) - {"last_login"}):
                rights_changed_on_commit(instance.pk)

        def tell_sockets_of_token(instance: ApiToken, **_: Any) -> None:
            rights_changed_on_commit(instance.user_id)

        def tell_sockets_of_id(user_id: int, **_: Any) -> None:
            rights_changed_on_commit(user_id)

        pre_delete.connect(keep_team_with_rules, sender=Team, dispatch_uid="keep_team_with_rules")
        rights_changed.connect(tell_sockets_of_id, weak=False, dispatch_uid="tell_sockets_of_id")
        user_logged_out.connect(tell_sockets, weak=False, dispatch_uid="tell_sockets")
        post_save.connect(
            tell_sockets_of_saved, sender=User, weak=False, dispatch_uid="tell_sockets_of_saved"
        )
        post_delete.connect(
            tell_sockets_of_token,
            sender=ApiToken,
            weak=False,
            dispatch_uid="tell_sockets_of_token",
        )
