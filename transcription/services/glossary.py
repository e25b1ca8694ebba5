"""Names and terms: the organisation's glossary and those of one recording.

They count for what is heard from then on, also in a job that goes on: each slice of it reads them
anew. A phrase is there once, whatever its case: written anew, it takes the new spelling and weight.
"""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from decimal import Decimal
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
HEADING: Final = ("phrase", "weight")
EMPTY_LIST: Final = "The list is empty. Write one name or term a line."
HOW_TO_WRITE: Final = (
    "A line is one name or term, with its weight behind a comma if it has one: Helstone, 5. A term "
    'that has commas, semicolons or numbers like it stands in quotation marks: "Catch, 22", 5.'
)
MORE_THAN_A_TERM: Final = "This is more than one term and its weight."
DIGITS_PARTED: Final = (
    "A comma between digits can be read in two ways: write a weight as 3.5, a term as "
    '"10,000" in quotation marks.'
)
MARKS_UNEVEN: Final = (
    "The quotation marks do not fit together: one that belongs to the term is written twice."
)

_SEPARATORS: Final = ("\t", ";；", ",，")
"""What may stand before a weight. The first after which a number stands does: in `Hale; 3,5` the
semicolon, where the comma is a decimal one."""
_QUOTED_SIGNS: Final = '",;，；'
_QUOTED: Final = re.compile(r'"((?:[^"]|"")*)"\s*(?:[\t;,；，]\s*"?([^"]*)"?)?')
_WEIGHT: Final = re.compile(r"(?:\d|10)(?:[.,]\d+)?")
_NUMBER_PARTED: Final = re.compile(r"(?:^|[\t;；,，]\s*)\d+[,，]\d+$")
"""A number with a comma in it, for itself: `10,000`, and what ends `Hale, 3,5`."""
_COLUMN_ENDS: Final = re.compile(r";|,(?!(?<=\d,)\d)")
"""Not the comma in `10,000 Maniacs`."""


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
    """Terms of a list, or of a table with the heading `phrase,weight`.

    In a list one stands in each line, a weight behind a comma, a semicolon or a tab, or none. In
    quotation marks stands what would be taken apart otherwise. A heading says which of the three
    parts the columns; its rows are CSV. Empty lines are passed over, and remarks: `# ` and
    anything. A phrase that comes twice counts as it came last. Raises InvalidInputError naming
    the lines that are none.
    """
    terms: dict[str, Term] = {}
    problems = []
    separator: str | None = None
    for number, line in enumerate(lines, start=1):
        text = line.removeprefix("\ufeff").strip()
        if not text or _is_remark(text):
            continue
        if separator is None:
            separator = _separator_in_heading(text)
            if separator:
                continue
        try:
            term = _read_row(text, separator) if separator else _read_line(text)
        except InvalidInputError as error:
            problems.append(f"Line {number}: {error.text}")
        else:
            terms[term.key] = term
    if problems:
        more = len(problems) - SHOWN_PROBLEMS
        shown = problems[:SHOWN_PROBLEMS] + ([f"And {more} more."] if more > 0 else [])
        raise InvalidInputError(f"Nothing was changed. {' '.join(shown)} {HOW_TO_WRITE}")
    return list(terms.values())


def line_of(term: Term | GlossaryTerm) -> str:
    """The term as a line of a list, which `read_terms` takes for it: the usual weight unsaid."""
    phrase = _quoted(term.phrase)
    return phrase if term.weight == DEFAULT_WEIGHT else f"{phrase}, {weight_text(term.weight)}"


def table_of(terms: Iterable[Term | GlossaryTerm]) -> Iterator[str]:
    """Lines of CSV with a heading, which `read_terms` takes for the same terms."""
    yield ",".join(HEADING)
    for term in terms:
        yield f"{_quoted(term.phrase)},{weight_text(term.weight)}"


def weight_text(weight: float) -> str:
    """Every digit that it has and no others: 3, 3.5."""
    return format(Decimal(str(weight)), "f").removesuffix(".0")


def clean_term(phrase: str, weight: float = DEFAULT_WEIGHT) -> Term:
    """Raises InvalidInputError."""
    visible = "".join(
        " " if sign.isspace() else sign
        for sign in phrase
        if sign.isspace() or unicodedata.category(sign)[0] != "C"
    )
    # At last: what stood on both sides of a sign that is gone may be one letter now.
    cleaned = unicodedata.normalize("NFC", " ".join(visible.split()))
    if not spoken_units(cleaned):
        raise InvalidInputError("A term needs at least one letter or digit.")
    if len(cleaned) > MAX_PHRASE_LENGTH:
        raise InvalidInputError(f"A term has at most {MAX_PHRASE_LENGTH} characters.")
    if not 0 <= weight <= MAX_WEIGHT:
        raise InvalidInputError(f"A weight lies between 0 and {MAX_WEIGHT:g}.")
    return Term(cleaned, abs(weight))  # -0.0 is none that a list can say


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
    if written_by is not None:  # a command says so itself
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


def _is_remark(text: str) -> bool:
    """`# people`, not `#MeToo`."""
    return text.startswith("#") and not text.lstrip("#")[:1].strip()


def _separator_in_heading(text: str) -> str:
    """What parts `phrase` and `weight` there, or "" where `text` is no heading."""
    for separator in "\t;,":
        fields = _fields(text, separator) or []
        if tuple(field.strip().casefold() for field in fields) == HEADING:
            return separator
    return ""


def _fields(text: str, separator: str) -> list[str] | None:
    """Of a row of CSV; None where its quotation marks do not fit."""
    try:
        return next(csv.reader([text], delimiter=separator, skipinitialspace=True, strict=True))
    except csv.Error:
        return None


def _read_row(text: str, separator: str) -> Term:
    """The term of one row of a table. Raises InvalidInputError."""
    fields = _fields(text, separator)
    if fields is None:
        raise InvalidInputError(MARKS_UNEVEN)
    phrase, written, *others = [*fields, ""]
    if any(other.strip() for other in others):
        raise InvalidInputError(MORE_THAN_A_TERM)
    return clean_term(phrase, _weight(written) if written.strip() else DEFAULT_WEIGHT)


def _read_line(text: str) -> Term:
    """The term of one line of a list. Raises InvalidInputError."""
    text = text.rstrip("".join((" ", *_SEPARATORS)))
    if text.startswith('"'):
        found = _QUOTED.fullmatch(text)
        if found is None:
            raise InvalidInputError(MARKS_UNEVEN)
        phrase, written = found[1].replace('""', '"'), found[2]
        return clean_term(phrase, _weight(written) if written else DEFAULT_WEIGHT)
    phrase, weight = text, DEFAULT_WEIGHT
    for separators in _SEPARATORS:
        end = max(text.rfind(separator) for separator in separators)
        if end >= 0 and _is_number(text[end + 1 :]):
            if text[end] in ",，" and _NUMBER_PARTED.search(text):
                raise InvalidInputError(DIGITS_PARTED)
            phrase, weight = text[:end].rstrip(), _weight(text[end + 1 :])
            break
    ends = [found.end() for found in _COLUMN_ENDS.finditer(phrase)]
    # One with a space behind it is a term's own, as in `Hale, Thornton & Co`.
    if len(ends) > 1 or any(not phrase[end : end + 1].isspace() for end in ends) or "\t" in phrase:
        raise InvalidInputError(MORE_THAN_A_TERM)
    return clean_term(phrase, weight)


def _quoted(phrase: str) -> str:
    """In quotation marks, where it would be taken apart or passed over without them."""
    if phrase.startswith("#") or any(sign in phrase for sign in _QUOTED_SIGNS):
        return '"{}"'.format(phrase.replace('"', '""'))
    return phrase


def _is_number(written: str) -> bool:
    """Also one that is no weight: `Boeing, 747` is refused, not taken for a term of two words."""
    try:
        float(written.replace(",", "."))
    except ValueError:
        return False
    return True


def _weight(written: str) -> float:
    """The number, with a decimal point or comma. Raises InvalidInputError."""
    if not _WEIGHT.fullmatch(written.strip()):
        raise InvalidInputError(f"“{written.strip()[:20]}” is no weight from 0 to {MAX_WEIGHT:g}.")
    return float(written.replace(",", "."))
