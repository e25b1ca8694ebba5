"""REST v1 against its own description, at length, by a server of its own with scripted models.

    python -m tests.load.rest_properties [--examples 50] [schemathesis options]

Starts everything on a data directory of its own, puts some things into it, and lets schemathesis
send what the description allows and what it does not: no 5xx, every answer as declared. Ends with
the status of `schemathesis run`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

from tests.e2e.conftest import Server, make_server
from tests.fakes.tool import Tool

HOOKS = """
import schemathesis

@schemathesis.serializer("application/offset+octet-stream")
def as_bytes(ctx, value):
    return value if isinstance(value, bytes) else str(value).encode()
"""
CONFIG = """
max-stream-events = 3
hooks = "rest_hooks.py"
request-timeout = 60

[generation]
database = "none"

[checks]
# What a schema cannot say: a cursor that no list has given, a key of another request, a stale tag.
positive_data_acceptance.enabled = false

# tus answers 412 to another version of itself, and lets POST stand for other methods.
[[operations]]
include-path-regex = "/uploads/"
checks.negative_data_rejection.enabled = false
checks.missing_required_header.enabled = false
checks.unsupported_method.enabled = false
"""
SCOPES = (
    *("recordings:read", "recordings:write", "live:read", "live:write"),
    *("webhooks", "administration"),
)
STREAM = "/captions/events$"
"""Does not end while its session runs: the test in the suite asks for it of one that has ended."""
LIMITS = {
    "TRANSCRIBE_API_REQUESTS_PER_MINUTE": "10000000",
    "TRANSCRIBE_MAX_SESSIONS_PER_PERSON": "1000000",
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.load.rest_properties")
    parser.add_argument("--examples", type=int, default=50, help="of each operation")
    arguments, options = parser.parse_known_args()
    server = make_server(**LIMITS)
    try:
        server.start()
        scopes = [option for scope in SCOPES for option in ("--scope", scope)]
        token = server.manage("createtoken", server.email, *scopes).split()[-1]
        put_things(Tool(server.base_url, token))
        return run(server, token, arguments.examples, options)
    finally:
        server.stop()
        shutil.rmtree(server.data_dir, ignore_errors=True)


def put_things(tool: Tool) -> None:
    """So that lists are not empty."""
    for path, body in (
        ("/api/v1/live-sessions", {"title": "Weekly meeting"}),
        ("/api/v1/glossary", {"phrase": "Ada"}),
        ("/api/v1/teams", {"name": "Sales"}),
        ("/api/v1/users", {"email": "bob@example.org", "name": "Bob"}),
    ):
        sent = tool.ask("POST", path, json.dumps(body).encode(), Content_Type="application/json")
        assert sent.status == 201, sent.body


def run(server: Server, token: str, examples: int, options: list[str]) -> int:
    """The status of schemathesis."""
    folder = server.data_dir / "schemathesis"
    folder.mkdir()
    (folder / "rest_hooks.py").write_text(HOOKS)
    (folder / "schemathesis.toml").write_text(CONFIG)
    command = [
        *(str(Path(sys.executable).with_name("schemathesis")), "run"),
        f"{server.base_url}/api/v1/openapi.json",
        *("--header", f"Authorization: Bearer {token}"),
        *("--max-examples", str(examples)),
        *("--exclude-path-regex", STREAM),
        *options,
    ]
    return subprocess.run(command, cwd=folder, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
