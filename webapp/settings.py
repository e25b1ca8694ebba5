"""Django's settings, derived from `webapp.config`. Reads no environment of its own."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urlsplit

import dj_database_url
import django_stubs_ext
from csp.constants import NONE, SELF

from webapp.config import BASE_DIR, share_with_engine, site_settings
from webapp.logs import configure_structlog, logging_settings

django_stubs_ext.monkeypatch()  # lets generic Django classes be subscripted at run time

SITE = site_settings()
share_with_engine(SITE)

configure_structlog()
LOGGING = logging_settings(level=SITE.log_level, log_format=SITE.log_format)

SECRET_KEY = SITE.secret_key.get_secret_value()
DEBUG = SITE.debug
ALLOWED_HOSTS = SITE.hosts
CSRF_TRUSTED_ORIGINS = SITE.origins
ROOT_URLCONF = "webapp.urls"
ASGI_APPLICATION = "webapp.asgi.application"

INSTALLED_APPS = [
    "daphne",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.humanize",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "allauth.usersessions",
    "channels",
    "csp",
    "ninja",
    "webapp.accounts",
    "transcription",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "webapp.static_files.StaticFilesMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "webapp.accounts.middleware.acts_of_requests",
    "allauth.account.middleware.AccountMiddleware",
    "webapp.accounts.middleware.PersonTimeZoneMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "transcription.pages.errors.ProductErrorMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]

# Database ----------------------------------------------------------------------------------------

DATABASES: dict[str, Any] = {
    "default": dj_database_url.parse(
        SITE.database_url or f"sqlite:///{SITE.data_dir / 'database.sqlite3'}"
    )
}
if "sqlite3" in DATABASES["default"]["ENGINE"]:
    # Six processes write. IMMEDIATE takes the write lock at BEGIN, where the timeout applies to it
    # (a deferred transaction that upgrades fails at once); WAL lets readers go on.
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }
    # A file: threads of one test process must see one database.
    DATABASES["default"]["TEST"] = {"NAME": str(SITE.data_dir / "test.sqlite3")}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Channels, cache, Celery -------------------------------------------------------------------------

# The pub/sub layer carries rare messages only (job progress, rights revoked).
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {
            "hosts": [{"address": SITE.broker_url, "socket_timeout": 30}],
            "prefix": "layer",
        },
    }
}
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": SITE.broker_url,
        "KEY_PREFIX": "cache",
        "OPTIONS": {"socket_timeout": 30},
    }
}

# People ------------------------------------------------------------------------------------------

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["webapp.accounts.backends.PeopleBackend"]
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 10},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "account_login"
ACCOUNT_ADAPTER = "webapp.accounts.adapter.AccountAdapter"
ACCOUNT_FORMS = {
    "login": "webapp.accounts.forms.LoginForm",
    "change_password": "webapp.accounts.forms.ChangePasswordForm",
    "reset_password": "webapp.accounts.forms.ResetPasswordForm",
    "reset_password_from_key": "webapp.accounts.forms.ResetPasswordKeyForm",
    "set_password": "webapp.accounts.forms.SetPasswordForm",
    "reauthenticate": "webapp.accounts.forms.ReauthenticateForm",
}
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*", "password2*"]
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_SESSION_REMEMBER = True
# allauth's defaults throttle log-in by address and by account; kept, and named here to be seen.
ACCOUNT_RATE_LIMITS = {"login_failed": "10/m/ip,5/5m/key", "reset_password": "20/m/ip,5/m/key"}

# Second factors: an app, passkeys and security keys (which may replace the password), and codes.
MFA_ADAPTER = "webapp.accounts.factors.FactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_ALLOW_UNVERIFIED_EMAIL = True  # whoever invited a person stands for the address
MFA_TOTP_ISSUER = "Transcription"
MFA_TOTP_TOLERANCE = 1  # half a minute early or late: telephones' clocks differ
# Plain http is `localhost`, which browsers trust, or nothing that gives out a key at all.
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not SITE.is_https
MFA_FORMS = {
    "authenticate": "webapp.accounts.factors.AuthenticateForm",
    "reauthenticate": "webapp.accounts.factors.ReauthenticateForm",
    "activate_totp": "webapp.accounts.factors.ActivateAppForm",
    "add_webauthn": "webapp.accounts.factors.AddKeyForm",
    "edit_webauthn": "webapp.accounts.factors.EditKeyForm",
}

# Single sign-on by an OpenID provider.
SOCIALACCOUNT_ADAPTER = "webapp.accounts.single_sign_on.SingleSignOnAdapter"
# By a link: browsers hold a form to `form-action` through its redirects, whoever they lead to.
SOCIALACCOUNT_LOGIN_ON_GET = True
SOCIALACCOUNT_PROVIDERS = {
    "openid_connect": {
        "OAUTH_PKCE_ENABLED": True,
        "APPS": [
            {
                "provider_id": "sso",
                "name": SITE.oidc_name,
                "client_id": SITE.oidc_client_id,
                "secret": SITE.oidc_client_secret.get_secret_value(),
                "settings": {
                    "server_url": SITE.oidc_url,
                    "verified_email": SITE.oidc_trusts_addresses,
                },
            }
        ]
        if SITE.oidc_url
        else [],
    }
}

ACCOUNT_EMAIL_SUBJECT_PREFIX = ""
ACCOUNT_EMAIL_UNKNOWN_ACCOUNTS = False  # nobody makes this server write to strangers
ACCOUNT_DEFAULT_HTTP_PROTOCOL = "https" if SITE.is_https else "http"

# Without a mail server nothing is sent: an administrator hands out links (`manage.py invite`).
_MAIL = urlsplit(SITE.email_url)
EMAIL_BACKEND = f"django.core.mail.backends.{'smtp' if _MAIL.hostname else 'dummy'}.EmailBackend"
EMAIL_HOST = _MAIL.hostname or ""
EMAIL_PORT = _MAIL.port or (465 if _MAIL.scheme == "smtps" else 587)
EMAIL_HOST_USER = unquote(_MAIL.username or "")
EMAIL_HOST_PASSWORD = unquote(_MAIL.password or "")
EMAIL_USE_SSL = _MAIL.scheme == "smtps"
EMAIL_USE_TLS = not EMAIL_USE_SSL and bool(EMAIL_HOST_USER)
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = SITE.email_from

SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SITE.is_https
# Not with an authority of our own: HSTS would keep people from the page that hands it out.
SECURE_HSTS_SECONDS = 30 * 24 * 3600 if SITE.is_https and not SITE.tls_authority else 0
# Behind a proxy that takes http too; what watches this process from inside comes without a proxy.
SECURE_SSL_REDIRECT = SITE.is_https
SECURE_REDIRECT_EXEMPT = [r"^(healthz|readyz|metrics)$"]
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CSRF_FAILURE_VIEW = "transcription.pages.errors.csrf_failure"

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "media-src": [SELF, "blob:"],
        "worker-src": [SELF],
        "connect-src": [SELF],
        "object-src": [NONE],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
        "form-action": [SELF],
    }
}

# Bodies ------------------------------------------------------------------------------------------

# Media comes in tus pieces of 8 MB; the launcher refuses what is larger than 16 MB.
DATA_UPLOAD_MAX_MEMORY_SIZE = 16 * 1024**2
FILE_UPLOAD_HANDLERS = ["django.core.files.uploadhandler.TemporaryFileUploadHandler"]

# Files, words, time ------------------------------------------------------------------------------

STATIC_URL = "static/"
STATIC_ROOT = SITE.data_dir / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "webapp.static_storage.StaticStorage"},
}
MEDIA_ROOT = SITE.media_dir
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English")]
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"
SILENCED_SYSTEM_CHECKS = [
    "security.W005",  # HSTS for subdomains: what else the organisation serves is not ours to decide
    "security.W021",  # preload is for names that all the world may reach
    *(["security.W004"] if SITE.tls_authority else []),  # no HSTS: see SECURE_HSTS_SECONDS
]

# Celery ------------------------------------------------------------------------------------------

# A message is a wake-up; the job's row is the truth. So nothing needs late acknowledgement, results
# or redelivery, and a lost message costs at most one sweep.
CELERY_BROKER_URL = SITE.broker_url
CELERY_BROKER_TRANSPORT_OPTIONS = {"socket_timeout": 30, "visibility_timeout": 3600}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_DEFAULT_QUEUE = "chores"
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TIMEZONE = "UTC"
