"""People and the tokens of their tools. Who may see what is decided in the product's selectors."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime
from typing import ClassVar

from django.contrib.auth.models import AbstractUser, BaseUserManager
from django.db import models
from django.utils import timezone


class Role(models.TextChoices):
    """What a person may do beside their own things."""

    STAFF = "staff", "Staff"
    ADMINISTRATOR = "administrator", "Administrator"


class UserManager(BaseUserManager["User"]):
    """Makes people by e-mail address."""

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

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    objects: ClassVar[UserManager] = UserManager()  # type: ignore[assignment]

    def __str__(self) -> str:
        return self.name or self.email

    @property
    def is_administrator(self) -> bool:
        return self.role == Role.ADMINISTRATOR

    def get_full_name(self) -> str:
        return str(self)

    def get_short_name(self) -> str:
        return str(self)


class ApiToken(models.Model):
    """A tool's key to its owner's things. Stored as a hash; shown once, when it is made.

    Format: `tr_` and 43 URL-safe characters (256 random bits). It travels in a header or in the
    first message of a socket, never in a URL.
    """

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=8, help_text="First characters, to recognise it by.")
    sha256 = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    @staticmethod
    def hash_secret(secret: str) -> str:
        return hashlib.sha256(secret.encode()).hexdigest()

    @classmethod
    def issue(
        cls, *, user: User, name: str, expires_at: datetime | None = None
    ) -> tuple[ApiToken, str]:
        """Make a token; the second value is the secret, which is stored nowhere."""
        secret = f"tr_{secrets.token_urlsafe(32)}"
        token = cls.objects.create(
            user=user,
            name=name,
            prefix=secret[:8],
            sha256=cls.hash_secret(secret),
            expires_at=expires_at,
        )
        return token, secret
