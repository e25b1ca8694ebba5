"""A term as it stands in a list that people may change and send back."""

from __future__ import annotations

from django import template

from transcription.services import glossary

register = template.Library()

register.filter("term_line", glossary.line_of)
register.filter("weight", glossary.weight_text)
