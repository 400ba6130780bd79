"""Export and import of a question set's judgments as TREC qrels and CSV."""

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar
from uuid import UUID

from corecube.errors import InvalidRequestError
from corecube.models import User
from corecube.scope import AccessScope
from retrieval.evaluation.question_sets import cut, save_case
from retrieval.models import Case, Judgment, QuestionSet
from retrieval.records.judgments import GRADES, PassageId, grades_of, normalised_query, passages_in

_Row = TypeVar("_Row")

CSV_HEADER: Final = ("query", "answerable", "document", "passage", "grade", "title")
MAX_CHARACTERS: Final = 2_000_000
MAX_LINES: Final = 5000
_QRELS_COLUMNS: Final = 4
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of an import: a question, with or without the grade of a passage."""

    query: str
    is_answerable: bool = True
    passage: PassageId | None = None
    grade: int = 0


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import."""

    cases: int
    judgments: int
    skipped: int  #: Lines with a passage that no longer exists or is outside the user's scope.


def csv_of(question_set: QuestionSet, *, viewer: User, scope: AccessScope) -> Iterator[str]:
    """Yield a set's cases with their judgments in scope as CSV, line by line; also cases without judgments."""
    yield _csv_line(CSV_HEADER)
    for case in question_set.cases.all():
        answerable = "yes" if case.is_answerable else "no"
        grades = grades_of(case.query, viewer=viewer, scope=scope)
        rows = passages_in(scope, {it.document_id for it in grades}).values_list("document_id", "document__title")
        titles: dict[UUID, str] = dict(rows)
        if not grades:
            yield _csv_line((case.query, answerable, "", "", "", ""))
        for (document, text), graded in sorted(grades.items()):
            yield _csv_line((case.query, answerable, document, text, graded.grade, titles.get(document, "")))


def qrels_of(question_set: QuestionSet, *, viewer: User, scope: AccessScope) -> Iterator[str]:
    """Yield a set's judgments in scope as TREC qrels: the case's id, 0, document:text, grade."""
    for case in question_set.cases.all():
        for (document, text), graded in sorted(grades_of(case.query, viewer=viewer, scope=scope).items()):
            yield f"{case.pk} 0 {document}:{text} {graded.grade}\n"


def read_lines(text: str, question_set: QuestionSet) -> list[Line]:
    """Return the lines of CSV, or of TREC qrels by case; raise InvalidRequestError for invalid or too many lines."""
    if len(text) > MAX_CHARACTERS:
        raise InvalidRequestError(f"An import can have at most {MAX_CHARACTERS:,} characters.")
    text = text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}")
    is_csv = "query" in text.partition("\n")[0].lower().split(",")[0]
    lines = list(_csv_lines(text) if is_csv else _qrels_lines(text, question_set))
    if not lines:
        raise InvalidRequestError("The import contains no judgments.")
    return lines


def import_lines(lines: Iterable[Line], question_set: QuestionSet, *, actor: User, scope: AccessScope) -> Imported:
    """Add the questions to the set and store the grades as the actor's; passages outside the scope are skipped."""
    lines = list(lines)
    cases = 0
    for line in {line.query: line for line in reversed(lines)}.values():
        _, is_new = save_case(question_set, line.query, actor=actor, is_answerable=line.is_answerable)
        cases += is_new
    graded = [(line, line.passage) for line in lines if line.passage is not None]
    rows = passages_in(scope, {passage.document_id for _, passage in graded})
    existing = {PassageId(*row) for row in rows.values_list("document_id", "content_hash")}
    stored = {(normalised_query(line.query), passage): line for line, passage in graded if passage in existing}
    Judgment.objects.bulk_create(
        [
            Judgment(query=query, document_id=document, content_hash=content_hash, grade=line.grade, by=actor)
            for (query, (document, content_hash)), line in stored.items()
        ],
        update_conflicts=True,
        unique_fields=["query", "document", "content_hash", "by"],
        update_fields=["grade", "at"],
    )
    return Imported(cases, len(stored), sum(passage not in existing for _, passage in graded))


def _csv_line(values: Iterable[object]) -> str:
    """Return a line of CSV; values that a spreadsheet would treat as formulas start with an apostrophe."""
    out = io.StringIO()
    cells = [str(value) for value in values]
    csv.writer(out, lineterminator="\n").writerow([f"'{cell}" if cell.startswith(_FORMULA) else cell for cell in cells])
    return out.getvalue()


def _csv_lines(text: str) -> Iterator[Line]:
    reader = csv.DictReader(io.StringIO(text))
    reader.fieldnames = [name.strip().lower() for name in reader.fieldnames or ()]
    for row in _limited(reader):
        cell, number = row.get("query") or "", reader.line_num
        query = cut(cell[1:] if cell.startswith("'") and cell[1:].startswith(_FORMULA) else cell)
        if not query:
            raise InvalidRequestError(f"Line {number} has no query.")
        is_answerable = (row.get("answerable") or "yes").strip().lower() not in {"no", "false", "0"}
        if document := (row.get("document") or "").strip():
            passage = _passage(document, (row.get("passage") or "").strip(), number)
            yield Line(query, is_answerable, passage, _grade(row.get("grade") or "", number))
        else:
            yield Line(query, is_answerable)


def _qrels_lines(text: str, question_set: QuestionSet) -> Iterator[Line]:
    cases = {str(case.pk): case.query for case in Case.objects.filter(question_set=question_set)}
    for number, line in enumerate(_limited(text.splitlines()), start=1):
        cells = line.split()
        if not cells:
            continue
        if len(cells) != _QRELS_COLUMNS:
            raise InvalidRequestError(f"Line {number} is not TREC qrels: query, 0, document:passage, grade.")
        if cells[0] not in cases:
            raise InvalidRequestError(f"Line {number}: this set has no such case.")
        document, _, content_hash = cells[2].partition(":")
        passage, grade = _passage(document, content_hash, number), _grade(cells[3], number)
        yield Line(cases[cells[0]], passage=passage, grade=grade)


def _limited(rows: Iterable[_Row]) -> Iterator[_Row]:
    for count, row in enumerate(rows, start=1):
        if count > MAX_LINES:
            raise InvalidRequestError(f"An import can have at most {MAX_LINES:,} lines.")
        yield row


def _passage(document: str, content_hash: str, number: int) -> PassageId:
    try:
        return PassageId(UUID(document), content_hash)
    except ValueError as error:
        raise InvalidRequestError(f"Line {number}: the document id is not valid.") from error


def _grade(text: str, number: int) -> int:
    if text.strip() not in {str(grade) for grade in GRADES}:
        raise InvalidRequestError(f"Line {number}: the grade must be 0, 1, 2 or 3.")
    return int(text)
