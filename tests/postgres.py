"""Runs the suite on a PostgreSQL server of its own: `make test-postgres [ARGUMENTS=…]`.

The server lies in a temporary directory, listens on loopback, and runs as `nobody` where
we are root, since PostgreSQL refuses root.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from webapp.setup import free_port


def find_binaries() -> Path | None:
    """The folder of `initdb` and `postgres`; Debian keeps it off the path."""
    on_path = shutil.which("initdb")
    if on_path:
        return Path(on_path).parent
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


@contextmanager
def postgres(binaries: Path) -> Iterator[str]:
    """A server with an empty database; its URL."""
    folder = Path(tempfile.mkdtemp(prefix="transcribe-postgres-"))
    user = None
    if os.getuid() == 0:
        user = "nobody"
        os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
    data, port = folder / "data", free_port()

    def run(*command: str | Path) -> None:
        subprocess.run(command, user=user, cwd=folder, check=True, stdout=subprocess.DEVNULL)

    run(binaries / "initdb", "--auth=trust", "--username=tests", "--encoding=UTF8", "-D", data)
    options = f"-k {folder} -p {port} -c listen_addresses=127.0.0.1 -c fsync=off"
    run(binaries / "pg_ctl", "-D", data, "-o", options, "-l", folder / "log", "-w", "start")
    try:
        yield f"postgres://tests@127.0.0.1:{port}/postgres"
    finally:
        run(binaries / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    binaries = find_binaries()
    if binaries is None:
        sys.exit("PostgreSQL is missing: install it (apt install postgresql).")
    with postgres(binaries) as url:
        environment = {**os.environ, "TRANSCRIBE_DATABASE_URL": url}
        status = subprocess.run(
            [sys.executable, "-m", "pytest", *sys.argv[1:]], env=environment, check=False
        ).returncode
    sys.exit(status)


if __name__ == "__main__":
    main()
