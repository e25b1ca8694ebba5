"""A person's webhooks: where other tools are told what happens, and what was sent to them."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from transcription import selectors
from transcription.errors import ProductError
from transcription.models import Webhook
from transcription.pages.requests import PersonRequest
from transcription.services import webhooks
from transcription.services.webhook_deliveries import KEPT_FOR

DELIVERIES_A_PAGE: Final = 25


class WebhookForm(forms.Form):
    """Where to, and of what."""

    name = forms.CharField(max_length=webhooks.MAX_NAME_CHARACTERS)
    url = forms.CharField(
        label="Address",
        max_length=webhooks.MAX_URL_CHARACTERS,
        help_text="It must be one that an administrator has allowed.",
        widget=forms.URLInput({"placeholder": "https://", "spellcheck": "false"}),
    )
    events = forms.MultipleChoiceField(
        label="Told of",
        choices=[(event.value, event.label) for event in webhooks.CHOICES],
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one."},
    )


class ChangeForm(WebhookForm):
    """The same of one that exists."""

    is_active = forms.BooleanField(label="Switched on", required=False)


@login_required
@never_cache
@require_http_methods(["GET", "POST"])
def all_webhooks(request: PersonRequest) -> HttpResponse:
    """The list, and a new one; the answer that makes it is the only one with its secret."""
    form = WebhookForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            made = webhooks.create_webhook(owner=request.user, **form.cleaned_data)
        except ProductError as error:
            form.add_error(_field_of(error), error.text)
        else:
            return _one(request, made, secret=made.secret)
    context = {
        "webhooks": selectors.webhooks_of(request.user),
        "form": form,
        "is_offered": bool(settings.SITE.webhook_hosts),
    }
    return render(request, "webhooks/list.html", context, status=400 if form.errors else 200)


@login_required
@never_cache
@require_http_methods(["GET", "POST"])
def one_webhook(request: PersonRequest, webhook_id: UUID) -> HttpResponse:
    webhook = selectors.access_webhook_by_id(request.user, webhook_id)
    if request.method != "POST":
        return _one(request, webhook)
    form = ChangeForm(request.POST)
    if form.is_valid():
        try:
            webhooks.change_webhook(webhook=webhook, **form.cleaned_data)
        except ProductError as error:
            form.add_error(_field_of(error), error.text)
        else:
            messages.success(request, f"“{webhook.name}” is saved.")
            return redirect("webhook", webhook.id)
    return _one(request, webhook, form=form)


@login_required
@require_POST
def test(request: PersonRequest, webhook_id: UUID) -> HttpResponse:
    webhook = selectors.access_webhook_by_id(request.user, webhook_id)
    webhooks.send_test(webhook=webhook)
    messages.success(request, "A test is on its way. The log below says what became of it.")
    return redirect("webhook", webhook.id)


@login_required
@never_cache
@require_POST
def rotate(request: PersonRequest, webhook_id: UUID) -> HttpResponse:
    webhook = selectors.access_webhook_by_id(request.user, webhook_id)
    webhooks.rotate_secret(webhook=webhook)
    return _one(request, webhook, secret=webhook.secret)


@login_required
@require_POST
def delete(request: PersonRequest, webhook_id: UUID) -> HttpResponse:
    webhook = selectors.access_webhook_by_id(request.user, webhook_id)
    name = webhook.name
    webhooks.delete_webhook(webhook=webhook)
    messages.success(request, f"“{name}” is deleted.")
    return redirect("webhooks")


@login_required
@require_POST
def resend(request: PersonRequest, delivery_id: UUID) -> HttpResponse:
    delivery = selectors.access_delivery_by_id(request.user, delivery_id)
    webhooks.resend_delivery(delivery=delivery)
    messages.success(request, "It is sent again.")
    return redirect("webhook", delivery.webhook_id)


def _one(
    request: PersonRequest, webhook: Webhook, *, form: ChangeForm | None = None, secret: str = ""
) -> HttpResponse:
    initial: dict[str, Any] = {
        name: getattr(webhook, name) for name in ("name", "url", "events", "is_active")
    }
    if form is not None:  # what was refused stands in the fields; the page is of what is stored
        webhook.refresh_from_db()
    pages = Paginator(webhook.deliveries.all(), DELIVERIES_A_PAGE)
    context = {
        "webhook": webhook,
        "form": form or ChangeForm(initial=initial),
        "secret": secret,
        "page": pages.get_page(request.GET.get("page")),
        "kept_days": KEPT_FOR.days,
    }
    status = 400 if form is not None else 200
    return render(request, "webhooks/webhook.html", context, status=status)


def _field_of(error: ProductError) -> str | None:
    """Where the sentence belongs on the page: names and events the form has judged itself."""
    return "url" if error.status == 400 else None


urlpatterns = [
    path("profile/webhooks/", all_webhooks, name="webhooks"),
    path("profile/webhooks/<uuid:webhook_id>/", one_webhook, name="webhook"),
    path("profile/webhooks/<uuid:webhook_id>/test/", test, name="webhook_test"),
    path("profile/webhooks/<uuid:webhook_id>/secret/", rotate, name="webhook_rotate"),
    path("profile/webhooks/<uuid:webhook_id>/delete/", delete, name="webhook_delete"),
    path("profile/webhooks/deliveries/<uuid:delivery_id>/", resend, name="webhook_resend"),
]
