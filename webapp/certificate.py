"""Hands out the certificate of the local authority, with the steps to trust it.

Only where the server made that authority itself (`make run LAN=1`); 404 elsewhere. Open to people
who have not logged in: they come here because their browser does not trust us yet.
"""

from __future__ import annotations

from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from webapp.config import site_settings


def _authority_path() -> Path:
    path = Path(site_settings().tls_authority)
    if not site_settings().tls_authority or not path.is_file():
        raise Http404
    return path


@require_safe
def certificate_page(request: HttpRequest) -> HttpResponse:
    """What to do, and the fingerprint to compare with the administrator's."""
    authority = x509.load_pem_x509_certificate(_authority_path().read_bytes())
    fingerprint = authority.fingerprint(hashes.SHA256()).hex(":").upper()
    return render(request, "help/certificate.html", {"fingerprint": fingerprint})


@require_safe
def authority_certificate(_request: HttpRequest) -> HttpResponse:
    """The certificate itself, by the type that makes phones offer to install it."""
    return HttpResponse(
        _authority_path().read_bytes(),
        content_type="application/x-x509-ca-cert",
        headers={"Content-Disposition": 'attachment; filename="transcription-authority.crt"'},
    )
