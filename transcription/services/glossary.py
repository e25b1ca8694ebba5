"""Names and terms: the organisation's glossary and those of one recording.

They count for what is transcribed from then on. A phrase is there once, whatever its case: written
anew, it takes the new spelling and weight.
"""

from __future__ import annotations

import csv
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Final

import structlog
from django.db import transaction
from django.db.models import QuerySet

from asr_engine.spoken import spoken_units
from transcription.errors import InvalidInputError, NotFoundError
from transcription.models import GlossaryTerm, Recording, RevisionKind, TranscriptSegment
from transcription.models.glossary import DEFAULT_WEIGHT
from webapp.accounts.audit import record_act
from webapp.accounts.models import Act, User

log = structlog.get_logger(__name__)

MAX_ORGANISATION_TERMS: Final = 2000
MAX_RECORDING_TERMS: Final = 200
MAX_PHRASE_LENGTH: Final = 100
MAX_WEIGHT: Final = 10.0
SHOWN_PROBLEMS: Final = 3
"""Lines that a refusal names."""


@dataclass(frozen=True, slots=True)
class Term:
    """A phrase and its weight, not stored yet."""

    phrase: str
    weight: float = DEFAULT_WEIGHT

    @property
    def key(self) -> str:
        return self.phrase.casefold()


@dataclass(frozen=True, slots=True)
class Written:
    """What writing terms came to."""

    added: int
    changed: int
    removed: int = 0


def phrases_for(recording: Recording | None) -> list[tuple[str, float]]:
    """Phrases and weights that count for `recording`; its own go before the organisation's.

    None for what is no recording yet.
    """
    terms = {term.phrase.casefold(): (term.phrase, term.weight) for term in terms_of(None)}
    if recording is not None:
        for term in terms_of(recording):
            terms[term.phrase.casefold()] = (term.phrase, term.weight)
    return list(terms.values())


def terms_of(recording: Recording | None) -> QuerySet[GlossaryTerm]:
    """The recording's own terms, or the organisation's, by phrase."""
    return GlossaryTerm.objects.filter(recording=recording)


def read_terms(lines: Iterable[str]) -> list[Term]:
    """Terms of a list: one a line, a weight behind a comma, a semicolon or a tab, or none.

    Empty lines, lines that begin with `#` and a first line `phrase,weight` are passed over. A
    phrase that comes twice counts as it came last. Raises InvalidInputError naming the lines that
    are none.
    """
    terms: dict[str, Term] = {}
    problems = []
    for number, line in enumerate(lines, start=1):
        text = line.strip().removeprefix("\ufeff")
        if not text or text.startswith("#") or (number == 1 and _is_heading(text)):
            continue
        try:
            term = _read_term(text)
        except InvalidInputError as error:
            problems.append(f"Line {number}: {error.text}")
        else:
            terms[term.key] = term
    if problems:
        more = len(problems) - SHOWN_PROBLEMS
        shown = problems[:SHOWN_PROBLEMS] + ([f"And {more} more."] if more > 0 else [])
        raise InvalidInputError(f"Nothing was changed. {' '.join(shown)}")
    return list(terms.values())


def clean_term(phrase: str, weight: float = DEFAULT_WEIGHT) -> Term:
    """Raises InvalidInputError."""
    cleaned = " ".join(
        "".join(
            " " if sign.isspace() else sign
            for sign in unicodedata.normalize("NFC", phrase)
            if sign.isspace() or unicodedata.category(sign)[0] != "C"
        ).split()
    )
    if not spoken_units(cleaned):
        raise InvalidInputError("A term needs at least one letter or digit.")
    if len(cleaned) > MAX_PHRASE_LENGTH:
        raise InvalidInputError(f"A term has at most {MAX_PHRASE_LENGTH} characters.")
    if not 0 <= weight <= MAX_WEIGHT:
        raise InvalidInputError(f"A weight lies between 0 and {MAX_WEIGHT:g}.")
    return Term(cleaned, weight)


def write_terms(
    *,
    recording: Recording | None,
    terms: Iterable[Term],
    written_by: User | None,
    replaces_all: bool = False,
) -> Written:
    """Add `terms`, or change those that are there already; all or none.

    With `replaces_all` those that are not among them are deleted. Raises InvalidInputError where
    there would be too many, NotFoundError where the recording is gone.
    """
    wanted = {term.key: term for term in terms}
    most = MAX_ORGANISATION_TERMS if recording is None else MAX_RECORDING_TERMS
    with transaction.atomic():
        if recording is not None and not Recording.objects.filter(id=recording.id).exists():
            raise NotFoundError
        held = {term.phrase.casefold(): term for term in terms_of(recording).select_for_update()}
        dropped = [term.pk for key, term in held.items() if replaces_all and key not in wanted]
        fresh = [
            GlossaryTerm(
                recording=recording, phrase=term.phrase, weight=term.weight, created_by=written_by
            )
            for key, term in wanted.items()
            if key not in held
        ]
        if len(held) - len(dropped) + len(fresh) > most:
            raise InvalidInputError(
                f"There may be {most} terms at most. Nothing was changed: leave out what is hardly "
                "ever said."
            )
        changed = []
        for key, term in wanted.items():
            old = held.get(key)
            if old is not None and (old.phrase, old.weight) != (term.phrase, term.weight):
                old.phrase, old.weight = term.phrase, term.weight
                changed.append(old)
        GlossaryTerm.objects.filter(pk__in=dropped).delete()
        GlossaryTerm.objects.bulk_update(changed, ["phrase", "weight"])
        GlossaryTerm.objects.bulk_create(fresh)
        written = Written(added=len(fresh), changed=len(changed), removed=len(dropped))
        _record_writing(recording, written, written_by)
    log.info(
        "glossary_written",
        recording=str(recording.id) if recording else "",
        added=written.added,
        changed=written.changed,
        removed=written.removed,
    )
    return written


def change_term(
    *, term: GlossaryTerm, phrase: str, weight: float, changed_by: User
) -> GlossaryTerm:
    """Raises InvalidInputError, also where another term has that phrase."""
    cleaned = clean_term(phrase, weight)
    with transaction.atomic():
        others = terms_of(term.recording).exclude(pk=term.pk).values_list("phrase", flat=True)
        if cleaned.key in {other.casefold() for other in others}:
            raise InvalidInputError(f"“{cleaned.phrase}” is in the glossary already.")
        term.phrase, term.weight = cleaned.phrase, cleaned.weight
        term.save(update_fields=["phrase", "weight"])
        record_act(act=Act.GLOSSARY_CHANGED, actor=changed_by, on=term, detail={"changed": 1})
    return term


def delete_term(*, term: GlossaryTerm, deleted_by: User) -> None:
    with transaction.atomic():
        record_act(act=Act.GLOSSARY_CHANGED, actor=deleted_by, on=term, detail={"removed": 1})
        term.delete()


def written_lines(language: str = "") -> Iterator[str]:
    """What was said in every recording, as text to make a language model of: a segment a line.

    Of each recording the revision that is shown, in units without case and punctuation, as
    rescoring asks the model for them. Live captions and drafts are left out: they would teach the
    model their mistakes. `language` "" is any.
    """
    segments = TranscriptSegment.objects.filter(
        revision__in=Recording.objects.exclude(current_revision=None).values("current_revision"),
        revision__kind__in=(RevisionKind.REFINED, RevisionKind.EDITED),
    ).order_by("revision_id", "index")
    rows = segments.values_list("text", "language", "revision__language")
    for text, own_language, revision_language in rows.iterator(chunk_size=2000):
        if language and (own_language or revision_language) != language:
            continue
        if units := spoken_units(text):
            yield " ".join(units)


def _record_writing(recording: Recording | None, written: Written, written_by: User | None) -> None:
    if recording is not None:
        record_act(act=Act.EDITED, actor=written_by, on=recording, detail={"what": "terms"})
    elif written.added or written.changed or written.removed:
        record_act(act=Act.GLOSSARY_CHANGED, actor=written_by, detail=asdict(written))


def _is_heading(text: str) -> bool:
    return text.casefold().replace('"', "").replace(" ", "").startswith("phrase,weight")


def _read_term(text: str) -> Term:
    """The term of one line. Raises InvalidInputError."""
    if text.startswith('"'):
        fields = next(csv.reader([text], delimiter=";" if '";' in text else ","))
        written = "".join(fields[1:2]).strip()
        weight = _weight(written) if written else DEFAULT_WEIGHT
        if weight is None:
            raise InvalidInputError("A weight is a number.")
        return clean_term(fields[0], weight)
    for separator in "\t;,":
        phrase, _, written = text.rpartition(separator)
        weight = _weight(written)
        if phrase and weight is not None:
            return clean_term(phrase, weight)
    return clean_term(text.rstrip("\t;,"))


def _weight(written: str) -> float | None:
    """The number, with a decimal point or comma, or None."""
    try:
        return float(written.replace(",", "."))
    except ValueError:
        return None
