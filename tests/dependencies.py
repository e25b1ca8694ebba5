"""Asks a vulnerability service about every installed package: `make audit`.

    python -m tests.dependencies [--service pypi|osv]

Ends with 1 where a package has a known vulnerability, and with 0 where none has or where no service
answers: a machine on a closed network says that nothing was audited, and goes on. (pip-audit itself
calls packages that the service does not know clean.)
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

SERVICES: Final = ("pypi", "osv")
TIMEOUT_S: Final = 600
ACCEPTED: Final[dict[str, str]] = {}
"""Vulnerabilities that do not touch this server: their id, and why."""


def verdict(dependencies: list[dict[str, Any]]) -> tuple[int, list[str]]:
    """Exit status and lines to print for the `dependencies` of pip-audit's JSON report."""
    known = [item for item in dependencies if "skip_reason" not in item]
    if not known:
        return 0, ["No dependency was audited: no vulnerability service answers here."]
    lines = [
        f"{item['name']} {item['version']}: {found['id']}, mended in "
        f"{', '.join(found['fix_versions']) or 'no version yet'}"
        for item in known
        for found in item["vulns"]
        if not {found["id"], *found.get("aliases", [])} & ACCEPTED.keys()
    ]
    status = 1 if lines else 0
    unknown = sorted(item["name"] for item in dependencies if "skip_reason" in item)
    lines.append(f"{len(known)} of {len(dependencies)} packages were audited.")
    if unknown:
        lines.append(f"The service does not know: {', '.join(unknown)}.")
    return status, lines


def ask(service: str) -> list[dict[str, Any]]:
    """What `service` says of each package; empty where it does not answer."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [sys.executable, "-m", "pip_audit", "--vulnerability-service", service]
        command += ["--format", "json", "--output", str(report), "--progress-spinner", "off"]
        try:
            # Its own status is not enough, and its traceback of a lost connection helps nobody.
            subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired:
            return []
        if not report.exists() or not report.stat().st_size:
            return []
        found: list[dict[str, Any]] = json.loads(report.read_text())["dependencies"]
        return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.dependencies", description=__doc__)
    parser.add_argument("--service", choices=SERVICES, action="append")
    services = parser.parse_args().service or SERVICES
    dependencies: list[dict[str, Any]] = []
    for service in services:
        dependencies = ask(service)
        if any("skip_reason" not in item for item in dependencies):
            break
    status, lines = verdict(dependencies)
    print("\n".join(lines))  # noqa: T201  # what it is for
    return status


if __name__ == "__main__":
    sys.exit(main())
