"""Settings of the site: the only module of `webapp` and `transcription` that reads the environment.

Values come from the environment, then from `settings.env` in the data directory (written by
`make setup`, mode 0600). Every field's docstring is its line in `docs/settings.md`. Secrets have no
default. What an administrator may change at run time lives in the database instead.
"""

from __future__ import annotations

import os
from functools import cache
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Literal, Self
from urllib.parse import urlsplit

from dotenv import dotenv_values
from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

BASE_DIR = Path(__file__).resolve().parent.parent


def data_dir() -> Path:
    """`TRANSCRIBE_DATA_DIR`, or `var/` beside `manage.py`."""
    return Path(os.environ.get("TRANSCRIBE_DATA_DIR") or BASE_DIR / "var").resolve()


def settings_file(directory: Path) -> Path:
    """Where `make setup` keeps the settings of a data directory."""
    return directory / "settings.env"


def _items(value: str) -> list[str]:
    return [item.strip() for item in value.split(",") if item.strip()]


def _network(item: str) -> IPv4Network | IPv6Network | None:
    """None for a name."""
    try:
        return ip_network(item, strict=False)
    except ValueError:
        return None


class Settings(BaseSettings):
    """Variables `TRANSCRIBE_*`."""

    model_config = SettingsConfigDict(
        env_prefix="TRANSCRIBE_", frozen=True, use_attribute_docstrings=True, extra="ignore"
    )

    data_dir: Path = BASE_DIR / "var"
    """Where everything that must last lives: database, recordings, broker file, models. Only in the
    environment, since the settings file lies there too."""
    secret_key: SecretStr
    """Django's signing key. `make setup` makes one."""
    debug: bool = False
    """Django's debug pages. Never in production."""
    database_url: str = ""
    """`postgres://…`; empty means SQLite in the data directory."""
    broker_url: str = ""
    """Redis URL of the broker (with append-only file)."""
    audio_url: str = ""
    """Redis URL of the audio server (no persistence)."""
    embedded_servers: bool = True
    """`make run` starts the broker and the audio server itself, where their URLs name 127.0.0.1.
    Switch it off where such servers run already."""
    host: str = "127.0.0.1"
    """Address that the web process binds."""
    port: int = Field(default=8000, ge=1, le=65535)
    """Port that the web process binds."""
    web_processes: int = Field(default=1, ge=1, le=64)
    """Web processes that `make run` starts on that port: one for about 250 captures or 500 readers,
    and no more than there are cores to spare."""
    allowed_hosts: str = "localhost,127.0.0.1,[::1]"
    """Comma-separated names under which people reach the site."""
    trusted_origins: str = ""
    """Comma-separated origins (`https://captions.example.org`) besides those of allowed_hosts."""
    is_https: bool = False
    """People reach the site by https: secure cookies, HSTS. Without `tls_certificate` of our own a
    proxy in front must set (not append to) X-Forwarded-For, -Port and -Proto."""
    tls_certificate: str = ""
    """PEM file with the certificate chain that the web process serves; empty means plain http."""
    tls_key: str = ""
    """PEM file with the certificate's private key."""
    tls_authority: str = ""
    """PEM file of the local authority that made the certificate: `/certificate/` hands it out."""
    log_level: str = "INFO"
    """Level of the structured log."""
    log_format: Literal["console", "json"] = "console"
    """`console` for people, `json` for a log collector."""
    monitor_networks: str = ""
    """Comma-separated networks (`10.0.0.0/8`) that may read `/metrics` and the details of `/readyz`
    without logging in."""
    max_upload_bytes: int = Field(default=8 * 1024**3, ge=1)
    """Largest recording that may be uploaded."""
    max_stored_bytes_per_person: int = Field(default=200 * 1024**3, ge=0)
    """Audio that one person may keep here, what lies in the trash included; 0 means no limit. Above
    it uploads are refused; a live session never is."""
    max_stored_bytes_per_service_account: int = Field(default=0, ge=0)
    """The same for a service account, which may stand for a whole department."""
    max_unfinished_uploads_per_person: int = Field(default=50, ge=1)
    """Uploads that one person may have begun and not finished. They are removed a day after their
    last piece."""
    api_requests_per_minute: int = Field(default=600, ge=1)
    """Requests to the REST API that one person or service account may make in a minute, all their
    tokens together. Audio, downloads and the pieces of an upload are counted apart, with more
    room."""
    max_recording_hours: float = Field(default=12.0, gt=0)
    """Longest recording that is accepted, by decoded duration."""
    openai_keep_hours: float = Field(default=0.0, ge=0)
    """How long a recording that came by `/v1/audio/transcriptions` is kept: 0 removes it with its
    transcript once the answer is out, more keeps it among its owner's recordings until then."""
    intake_folders: str = ""
    """Comma-separated folders of this machine from which administrators and service accounts may
    name a file instead of uploading it (`path` at `POST /api/v1/recordings`). Empty: none."""
    watch_folder: str = ""
    """A folder in which files become recordings of `watch_owner`. Empty: none."""
    watch_owner: str = ""
    """E-mail address of the person, or name of the service account, that owns what comes by
    `watch_folder`."""
    watch_settle_seconds: float = Field(default=10.0, ge=1)
    """How long a file of `watch_folder` must stay as it is before it is taken."""
    session_return_minutes: int = Field(default=10, ge=1)
    """How long a live session waits for its speaker to come back before it ends."""
    chinese_script: Literal["heard", "hans", "hant"] = "hans"
    """Characters in which Chinese is written, live and stored, where nobody chose others for a
    recording: `hans` simplified, `hant` traditional, `heard` as the model wrote it, which may be
    both in one text. Japanese and Korean stay as they are."""
    share_links: bool = True
    """People may make links by which anybody who has the address reads the captions of one live
    session without logging in. Switched off, the links that exist lead nowhere either."""
    webhook_hosts: str = ""
    """Where webhooks may send to: comma-separated names (`hooks.example.org`, `*.example.org`) and
    networks (`10.1.0.0/16`). Empty means nowhere. A name is not enough for this machine's own and
    link-local addresses: those must stand in a network of the list."""
    purge_hour: int = Field(default=2, ge=0, le=23)
    """Hour of the day (UTC) at which the nightly purge begins and changed retention policies take
    effect."""
    audit_days: int = Field(default=365, ge=30)
    """How long the audit log keeps an entry. It is set here, and not on a page, since the log tells
    of administrators too."""
    live_refine: Literal["auto", "on", "off"] = "auto"
    """Whether the model of the batch passes hears each utterance of a live session again soon after
    its end: `auto` while live captions are on time, `on` also while they are late, `off`."""
    max_sessions: int = Field(default=500, ge=1)
    """Captures that may run at once, whatever the engines have room for."""
    max_sessions_per_person: int = Field(default=20, ge=1)
    """Live sessions that one person may have running or waiting at once."""
    max_viewers: int = Field(default=2000, ge=1)
    """Readers of live captions at once, all sessions together. Each web process takes about 500."""
    max_viewers_per_session: int = Field(default=1000, ge=1)
    """Readers of one session's captions at once."""
    email_url: str = ""
    """`smtp://user:password@host:587` (STARTTLS) or `smtps://…:465`; empty means that no mail is
    sent: `manage.py invite` prints the links instead."""
    email_from: str = "transcription@localhost"
    """Sender of that mail."""
    oidc_url: str = ""
    """Address of an OpenID provider (`https://login.example.org/realms/staff`): switches single
    sign-on on. Its redirect address here is `/accounts/oidc/sso/login/callback/`."""
    oidc_client_id: str = ""
    """Name under which the provider knows this server."""
    oidc_client_secret: SecretStr = SecretStr("")
    """Password of this server at the provider."""
    oidc_name: str = "single sign-on"
    """What the log-in page calls it: “Log in by …”."""
    oidc_trusts_addresses: bool = False
    """The provider's addresses are its people's own even where it does not say `email_verified`.
    Only for a provider whose people cannot choose their address."""
    sign_up_domains: str = ""
    """Comma-separated domains (`example.org`) whose people need no invitation: single sign-on lets
    them in, and with `TRANSCRIBE_EMAIL_URL` they sign up by mail. Empty: administrators invite."""
    public_url: str = ""
    """Where people reach the site (`https://captions.example.org`), for links in mail and on the
    command line; empty means the first of allowed_hosts on our own port."""

    @field_validator("oidc_url")
    @classmethod
    def _is_safe(cls, value: str) -> str:
        """What the provider says is believed because of TLS, so nothing else will do."""
        address = urlsplit(value)
        is_here = address.hostname in {"localhost", "127.0.0.1", "::1"}
        if value and not (address.scheme == "https" or (address.scheme == "http" and is_here)):
            raise ValueError("the OpenID provider must have an https:// address")
        return value.rstrip("/")

    @model_validator(mode="after")
    def _names_its_client(self) -> Self:
        if self.oidc_url and not self.oidc_client_id:
            raise ValueError("single sign-on needs TRANSCRIBE_OIDC_CLIENT_ID")
        return self

    def is_embedded(self, url: str) -> bool:
        """Whether the server at `url` (the broker's or the audio server's) is ours to start."""
        return self.embedded_servers and urlsplit(url).hostname == "127.0.0.1"

    @property
    def media_dir(self) -> Path:
        return self.data_dir / "media"

    @property
    def site_url(self) -> str:
        """Address of the site, without a slash at its end."""
        if self.public_url:
            return self.public_url.rstrip("/")
        scheme = "https" if self.is_https else "http"
        host = self.hosts[0] if self.hosts else self.host
        return f"{scheme}://{host}:{self.port}"

    @property
    def hosts(self) -> list[str]:
        return [item.strip() for item in self.allowed_hosts.split(",") if item.strip()]

    @property
    def open_domains(self) -> list[str]:
        items = self.sign_up_domains.lower().split(",")
        return [item.strip().removeprefix("@") for item in items if item.strip()]

    @property
    def monitoring_networks(self) -> list[IPv4Network | IPv6Network]:
        items = self.monitor_networks.split(",")
        return [ip_network(item.strip(), strict=False) for item in items if item.strip()]

    @field_validator("webhook_hosts")
    @classmethod
    def _check_webhook_hosts(cls, value: str) -> str:
        """A mistyped network would be taken for a name that nothing has."""
        for item in _items(value):
            if "/" in item:
                ip_network(item, strict=False)
        return value

    @property
    def webhook_networks(self) -> list[IPv4Network | IPv6Network]:
        """Those of `webhook_hosts`; a single address is a network of one."""
        networks = [_network(item) for item in _items(self.webhook_hosts)]
        return [network for network in networks if network is not None]

    @property
    def webhook_names(self) -> list[str]:
        items = _items(self.webhook_hosts)
        return [item.lower() for item in items if _network(item) is None]

    @property
    def intake_roots(self) -> list[Path]:
        items = self.intake_folders.split(",")
        return [Path(item.strip()) for item in items if item.strip()]

    @property
    def origins(self) -> list[str]:
        return [item.strip() for item in self.trusted_origins.split(",") if item.strip()]


@cache
def site_settings() -> Settings:
    """The settings of this process. Raises pydantic.ValidationError naming what is missing."""
    directory = data_dir()
    return Settings(_env_file=settings_file(directory), data_dir=directory)  # type: ignore[call-arg]


def named_variables(directory: Path) -> set[str]:
    """Names of `TRANSCRIBE_*` and `ASR_*` variables that the environment or the file sets."""
    names = {*os.environ, *dotenv_values(settings_file(directory))}
    return {name for name in names if name.startswith(("TRANSCRIBE_", "ASR_"))}


def share_with_engine(settings: Settings) -> None:
    """Let `asr_engine` in this process (and its children) see the same store and servers.

    `ASR_*` lines of the settings file count too; what the environment already says wins.
    """
    for key, value in dotenv_values(settings_file(settings.data_dir)).items():
        if key.startswith("ASR_") and value:
            os.environ.setdefault(key, value)
    os.environ.setdefault("ASR_MODEL_DIR", str(settings.data_dir / "models"))
    os.environ.setdefault("ASR_BROKER_URL", settings.broker_url)
    os.environ.setdefault("ASR_AUDIO_URL", settings.audio_url)
    os.environ.setdefault("ASR_CHINESE_SCRIPT", settings.chinese_script)
