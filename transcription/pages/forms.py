"""Forms that more than one page reads."""

from __future__ import annotations

from django import forms

from transcription.languages import LANGUAGES, MIXED
from transcription.models import ChineseScript


class RenameForm(forms.Form):
    """A title is any text of one line."""

    title = forms.CharField(max_length=300)


class LanguageForm(forms.Form):
    """The spoken language; empty to detect it."""

    language = forms.ChoiceField(
        choices=[("", ""), *((code, code) for code in LANGUAGES)], required=False
    )


class JobOptionsForm(forms.Form):
    """How a recording is transcribed; nothing is asked for by default."""

    language = forms.ChoiceField(
        choices=[("", ""), (MIXED, MIXED), *((code, code) for code in LANGUAGES)], required=False
    )
    chinese_script = forms.ChoiceField(choices=[("", ""), *ChineseScript.choices], required=False)
    speakers = forms.CharField(max_length=10, required=False)
