"""Static files under names that hold a hash of their content."""

from __future__ import annotations

from whitenoise.storage import CompressedManifestStaticFilesStorage


class StaticStorage(CompressedManifestStaticFilesStorage):
    """Imports inside JavaScript modules are rewritten too.

    Without that a browser would mix old and new modules after an upgrade.
    """

    support_js_module_import_aggregation = True
