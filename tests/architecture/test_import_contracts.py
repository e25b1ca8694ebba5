"""The direction of imports: site > product > accounts > engine, and the layers inside."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_every_import_contract_holds() -> None:
    """Run as a command: import-linter does not bear warnings turned into errors."""
    command = Path(sys.executable).with_name("lint-imports")
    result = subprocess.run([command, "--no-cache"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
