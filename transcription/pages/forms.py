"""Forms that more than one page reads."""

from __future__ import annotations

from django import forms

from transcription.languages import LANGUAGES


class RenameForm(forms.Form):
    """A title is any text of one line."""

    title = forms.CharField(max_length=300)


class LanguageForm(forms.Form):
    """The spoken language; empty to detect it."""

    language = forms.ChoiceField(
        choices=[("", ""), *((code, code) for code in LANGUAGES)], required=False
    )
