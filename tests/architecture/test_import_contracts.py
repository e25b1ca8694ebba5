"""The direction of imports: site > product > accounts > engine, and the layers inside."""

from __future__ import annotations

from importlinter.cli import lint_imports


def test_every_import_contract_holds() -> None:
    assert lint_imports(config_filename="pyproject.toml", no_cache=True) == 0
