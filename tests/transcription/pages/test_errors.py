"""Errors in plain words."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.core.exceptions import RequestDataTooBig
from django.test import Client, RequestFactory

from transcription.errors import ConflictError, NoSpaceError, ProductError
from transcription.pages import errors
from webapp.accounts.models import User

ClientOf = Callable[[User | None], Client]


def test_unknown_page_says_so(alice: User, client_of: ClientOf) -> None:
    response = client_of(alice).get("/nowhere/")
    assert response.status_code == 404
    assert "There is nothing here" in response.content.decode()


def test_anonymous_gets_the_same_page(client_of: ClientOf, db: None) -> None:
    assert client_of(None).get("/nowhere/").status_code == 404


def test_fragment_gets_one_sentence(alice: User, client_of: ClientOf) -> None:
    response = client_of(alice).get("/nowhere/", headers={"HX-Request": "true"})
    assert response["Content-Type"].startswith("text/plain")
    assert "<" not in response.content.decode()


def test_server_error_needs_neither_request_nor_database() -> None:
    response = errors.server_error(RequestFactory().get("/"))
    assert response.status_code == 500
    assert "Your recordings and captions are safe" in response.content.decode()


def test_body_above_the_limit_is_413(alice: User) -> None:
    request = RequestFactory().get("/")
    request.user = alice
    assert errors.bad_request(request, RequestDataTooBig()).status_code == 413
    assert errors.bad_request(request, Exception()).status_code == 400
    assert errors.permission_denied(request, Exception()).status_code == 403


def test_product_error_of_a_page_keeps_its_own_sentence(alice: User) -> None:
    request = RequestFactory().get("/")
    request.user = alice
    middleware = errors.ProductErrorMiddleware(lambda _: errors.not_found(request, Exception()))
    response = middleware.process_exception(request, NoSpaceError("No room for 3 GB."))
    assert response is not None
    assert response.status_code == 507
    assert "No room for 3 GB." in response.content.decode()
    assert middleware.process_exception(request, ValueError("secret")) is None


def test_a_conflict_with_words_of_its_own_asks_for_no_reload(alice: User) -> None:
    request = RequestFactory().get("/")
    request.user = alice
    middleware = errors.ProductErrorMiddleware(lambda _: errors.not_found(request, Exception()))
    for error, advice in (
        (ConflictError("You have 20 webhooks."), errors.KNOWN_ADVICE),
        (ConflictError(), errors.PAGES[409].advice),
    ):
        response = middleware.process_exception(request, error)
        assert response is not None
        assert f"<p>{advice}</p>" in response.content.decode()


def _all_errors(base: type[ProductError]) -> list[type[ProductError]]:
    return [base, *(found for child in base.__subclasses__() for found in _all_errors(child))]


@pytest.mark.parametrize("error", _all_errors(ProductError))
def test_every_status_of_an_error_has_a_page(error: type[ProductError]) -> None:
    assert error.status in errors.PAGES
