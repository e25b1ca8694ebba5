"""People, teams, the tokens of their tools, and the audit log.

Who may see what is decided in the product's selectors.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection
from datetime import datetime
from enum import StrEnum
from typing import ClassVar

from django.contrib.auth.models import AbstractUser, BaseUserManager
from django.db import models
from django.utils import timezone
from django.utils.crypto import salted_hmac


class Role(models.TextChoices):
    """What a person may do beside their own things."""

    STAFF = "staff", "Staff"
    ADMINISTRATOR = "administrator", "Administrator"
    SERVICE = "service", "Service account"
    """A tool of the organisation: it has tokens and cannot log in."""


class UserManager(BaseUserManager["User"]):
    """Makes people by e-mail address, which is written small: allauth looks it up so."""

    @classmethod
    def normalize_email(cls, email: str | None) -> str:
        return (email or "").strip().lower()

    def create_user(self, email: str, password: str | None = None, **fields: object) -> User:
        user = self.model(email=self.normalize_email(email), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: object) -> User:
        return self.create_user(
            email,
            password,
            **{"role": Role.ADMINISTRATOR, "is_staff": True, "is_superuser": True, **fields},
        )


class User(AbstractUser):
    """A person, who logs in with an e-mail address."""

    username = None  # type: ignore[assignment]  # people log in with their e-mail address
    first_name = None  # type: ignore[assignment]  # one field, since names differ in their parts
    last_name = None  # type: ignore[assignment]
    email = models.EmailField("e-mail address", unique=True)
    name = models.CharField(max_length=150, blank=True)
    role = models.CharField(max_length=20, choices=Role.choices, default=Role.STAFF)
    time_zone = models.CharField(max_length=64, blank=True, help_text="Empty: the browser's.")
    speech_language = models.CharField(
        max_length=16, blank=True, help_text="Language chosen last for captions or a recording."
    )
    session_epoch = models.PositiveIntegerField(
        default=0, editable=False, help_text="Raised to end every session at once."
    )

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    objects: ClassVar[UserManager] = UserManager()  # type: ignore[assignment]

    def __str__(self) -> str:
        return self.name or self.email

    @property
    def is_administrator(self) -> bool:
        return self.role == Role.ADMINISTRATOR

    def _get_session_auth_hash(self, secret: str | None = None) -> str:
        """What each session carries and every request compares: the password, as in Django, and
        `session_epoch`."""
        return salted_hmac(
            "webapp.accounts.models.User.session",
            f"{self.session_epoch} {self.password}",
            secret=secret,
            algorithm="sha256",
        ).hexdigest()

    def get_full_name(self) -> str:
        return str(self)

    def get_short_name(self) -> str:
        return str(self)


class Team(models.Model):
    """People who share recordings, perhaps with a retention policy of their own."""

    name = models.CharField(max_length=100, unique=True)
    members = models.ManyToManyField(User, related_name="teams", blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class Scope(models.TextChoices):
    """What a token may be used for, within the rights of the person or service account."""

    RECORDINGS_READ = "recordings:read", "Read recordings, transcripts and audio"
    RECORDINGS_WRITE = "recordings:write", "Upload, change, transcribe and delete recordings"
    LIVE_READ = "live:read", "Read live captions"
    LIVE_WRITE = "live:write", "Start, speak into and end live sessions"
    TRANSCRIBE = "transcribe", "Transcribe a file at once (OpenAI-compatible)"
    WEBHOOKS = "webhooks", "Manage webhooks"
    MONITOR = "monitor", "Read metrics and the details of readiness"
    ADMINISTRATION = "administration", "Manage people, glossary and retention (administrators)"


class TokenState(StrEnum):
    """Whether a token opens anything."""

    VALID = "valid"
    EXPIRED = "expired"
    REVOKED = "revoked"


class ApiToken(models.Model):
    """A tool's key to its owner's things. Stored as a hash; shown once, when it is made.

    Format: `tr_` and 43 URL-safe characters (256 random bits). It travels in a header or in the
    first message of a socket, never in a URL.
    """

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=8, help_text="First characters, to recognise it by.")
    sha256 = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    @property
    def state(self) -> TokenState:
        if self.revoked_at is not None:
            return TokenState.REVOKED
        if self.expires_at is not None and self.expires_at <= timezone.now():
            return TokenState.EXPIRED
        return TokenState.VALID

    @property
    def scope_labels(self) -> list[str]:
        return [str(scope.label) for scope in Scope if scope in self.scopes]

    def allows(self, scope: Scope) -> bool:
        return scope in self.scopes

    @staticmethod
    def hash_secret(secret: str) -> str:
        return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()

    @classmethod
    def issue(
        cls,
        *,
        user: User,
        name: str,
        scopes: Collection[str] = tuple(Scope),
        expires_at: datetime | None = None,
    ) -> tuple[ApiToken, str]:
        """Make a token; the second value is the secret, which is stored nowhere."""
        secret = f"tr_{secrets.token_urlsafe(32)}"
        token = cls.objects.create(
            user=user,
            name=name,
            prefix=secret[:8],
            sha256=cls.hash_secret(secret),
            scopes=sorted(scopes),
            expires_at=expires_at,
        )
        return token, secret


class Act(models.TextChoices):
    """What the audit log knows."""

    LOGGED_IN = "logged_in", "logged in"
    LOG_IN_FAILED = "log_in_failed", "failed to log in"
    LOGGED_OUT = "logged_out", "logged out"
    PASSWORD_CHANGED = "password_changed", "changed a password"
    FACTOR_ADDED = "factor_added", "added a second factor"
    FACTOR_REMOVED = "factor_removed", "removed a second factor"
    CREATED = "created", "created"
    VIEWED = "viewed", "viewed"
    PLAYED = "played", "played"
    EXPORTED = "exported", "exported"
    EDITED = "edited", "edited"
    SHARED = "shared", "shared"
    UNSHARED = "unshared", "stopped sharing"
    LINK_MADE = "link_made", "made a link to"
    LINK_WITHDRAWN = "link_withdrawn", "withdrew a link to"
    OPENED = "opened", "opened as administrator"
    TRASHED = "trashed", "moved to the trash"
    RESTORED = "restored", "restored"
    DELETED = "deleted", "deleted"
    HELD = "held", "put on hold"
    RELEASED = "released", "released from hold"
    POLICY_CHANGED = "policy_changed", "changed the retention of"
    PURGED = "purged", "purged"
    INVITED = "invited", "invited"
    DISABLED = "disabled", "disabled"
    ENABLED = "enabled", "enabled"
    ROLE_CHANGED = "role_changed", "changed the role of"
    ADDRESS_CHANGED = "address_changed", "changed the address of"
    FACTORS_RESET = "factors_reset", "reset the second factors of"
    SESSIONS_ENDED = "sessions_ended", "ended the sessions of"
    TEAM_CHANGED = "team_changed", "changed the team"
    TOKEN_MADE = "token_made", "made a token"
    TOKEN_REVOKED = "token_revoked", "revoked a token"
    TOKEN_USED = "token_used", "used a token"
    GLOSSARY_CHANGED = "glossary_changed", "changed the glossary"
    JOB_ENDED = "job_ended", "stopped the transcription of"
    JOB_ASKED = "job_asked", "asked for a transcription of"
    WEBHOOK_CHANGED = "webhook_changed", "changed a webhook"
    ENGINE_ORDERED = "engine_ordered", "gave an order to an engine"


class AuditEntry(models.Model):
    """Who did what to which thing. Rows are only added, and removed by age.

    Names stand beside the keys, for people and things that are gone by then.
    `window` is the ten minutes of an act that is told once in that time (see `accounts.audit`).
    """

    at = models.DateTimeField(default=timezone.now, db_index=True)
    actor = models.ForeignKey(
        User, null=True, on_delete=models.DO_NOTHING, db_constraint=False, related_name="+"
    )
    actor_name = models.CharField(max_length=254, blank=True)
    token_name = models.CharField(max_length=100, blank=True)
    address = models.GenericIPAddressField(null=True)
    act = models.CharField(max_length=20, choices=Act)
    subject_kind = models.CharField(max_length=40, blank=True)
    subject_id = models.CharField(max_length=40, blank=True)
    subject_name = models.CharField(max_length=300, blank=True)
    detail = models.JSONField(default=dict, blank=True)
    window = models.PositiveBigIntegerField(null=True)

    class Meta:
        ordering = ("-at", "-id")
        indexes = (
            models.Index(fields=("subject_kind", "subject_id", "-at")),
            models.Index(fields=("actor", "-at")),
        )
        constraints = (
            models.UniqueConstraint(
                fields=("actor", "act", "subject_kind", "subject_id", "window"),
                name="audit_once_in_ten_minutes",
            ),
        )

    def __str__(self) -> str:
        return f"audit {self.pk}"
