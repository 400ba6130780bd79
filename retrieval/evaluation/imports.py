"""Questions, expected answers and judgments from elsewhere: lists, CSV, JSON lines, TREC, BEIR, Quepid, OpenSearch.

Files are read together: one may hold the questions and another one their grades. What a file is, its content tells.
"""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models import Count
from django.utils import timezone

from corecube import audit
from corecube.access import user_named
from corecube.errors import InvalidRequestError
from corecube.models import User
from corecube.scope import AccessScope
from retrieval.evaluation.answers import Requirements
from retrieval.evaluation.case_answers import checked_expected, expected_in, expected_text
from retrieval.evaluation.qrels import CSV_HEADER, csv_line
from retrieval.evaluation.question_sets import CaseFacts, cut, note_change, save_case, tags_in
from retrieval.models import Case, Document, Judgment, QuestionSet
from retrieval.models.document import id_in
from retrieval.records.judgments import GRADES, PassageId, normalised_query, passages_in

MAX_CHARACTERS: Final = 2_000_000
MAX_LINES: Final = 20_000
#: What the columns of a table are called here, in Quepid and in BEIR.
_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "query": ("query", "query text", "question"),
    "number": ("query-id", "query id", "qid"),
    "document": ("document", "docid", "doc id", "corpus-id"),
    "passage": ("passage",),
    "grade": ("grade", "rating", "score", "relevance"),
    "answerable": ("answerable",),
    "answer": ("answer", "expected answer"),
    "user": ("user",),
    "tags": ("tags",),
}
_QUERY_KEYS: Final = ("query", "queryText", "query_text", "text", "question")
_LISTS: Final = ("queries", "querySetQueries", "judgmentRatings", "hits")  #: Of Quepid and of OpenSearch.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
_QRELS: Final = re.compile(r"(\S+)[ \t]+Q?\d+[ \t]+(\S+)[ \t]+(-?\d+)[ \t]*")
_NUMBERED: Final = re.compile(r"(\S+)\t([^\t]*\S)[ \t]*")
_TOPIC_FIELD: Final = re.compile(r"<(num|title)>([^<]*)")
_TOPIC_LABEL: Final = re.compile(r"(?:Number|Topic):", re.IGNORECASE)
_NO: Final = frozenset({"no", "false", "0"})


@dataclass(frozen=True, slots=True)
class Line:
    """A question of an import, with or without the grade of a document or of one of its passages."""

    query: str
    number: str = ""  #: Its name in other files; without a text it stands for the question of that name.
    document: str = ""  #: A document's id, its id in the source, its address, or the name of its file.
    passage: str = ""  #: Hash of a passage's text; empty for each passage of the document.
    grade: float = 0.0
    is_answerable: bool = True
    user: str = ""
    tags: tuple[str, ...] = ()
    answers: Requirements = ()  #: What its answer must contain.


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import."""

    cases: int
    judgments: int
    skipped: int  #: Lines with a document or passage that does not exist or is outside the user's scope.
    missing: tuple[str, ...] = ()  #: The different documents of these lines, as written.


@dataclass(frozen=True, slots=True)
class Batch:
    """The cases of one import that the set still has; they have the same time."""

    at: datetime
    by: str  #: A username; empty for a deleted user.
    cases: int


def read_lines(texts: Sequence[str], question_set: QuestionSet) -> list[Line]:
    """Return the questions and grades of files that are read together, with grades from 0 to 3.

    Where questions have names, as in TREC and BEIR files, those without a grade are left out if others have one.
    Raises InvalidRequestError for content that no format explains, grades of unknown questions, and too much.
    """
    if sum(map(len, texts)) > MAX_CHARACTERS:
        raise InvalidRequestError(f"An import can have at most {MAX_CHARACTERS:,} characters.")
    lines = [line for text in texts for line in _lines_of(text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}"))]
    if not lines:
        raise InvalidRequestError("The import contains no questions.")
    if len(lines) > MAX_LINES:
        raise InvalidRequestError(f"An import can have at most {MAX_LINES:,} lines.")
    return _scaled(_joined(lines, {str(pk): query for pk, query in question_set.cases.values_list("pk", "query")}))


def as_csv(lines: Iterable[Line]) -> str:
    """Return lines as one file that `read_lines` reads as the same lines, a document's grade with it."""
    rows = (
        (
            it.query,
            "yes" if it.is_answerable else "no",
            it.document,
            it.passage,
            it.grade if it.document else "",
            "",
            it.user,
            ", ".join(it.tags),
            expected_text(it.answers),
        )
        for it in lines
    )
    return "".join(map(csv_line, (CSV_HEADER, *rows)))


def _joined(lines: Sequence[Line], cases: Mapping[str, str]) -> list[Line]:
    """Give grades of named questions the questions' texts."""
    questions = {**cases, **{it.number: it.query for it in lines if it.number and it.query}}
    graded = {it.number for it in lines if it.number and not it.query}
    if unknown := sorted(graded - questions.keys()):
        raise InvalidRequestError(f"No file and no case has the question {unknown[0]!r} that a grade belongs to.")
    wanted = (it for it in lines if not (graded and it.number and it.query))
    return [it if it.query else replace(it, query=questions[it.number]) for it in wanted]


def _scaled(lines: Sequence[Line]) -> list[Line]:
    """Give the grades the range of judgments, where they have another: above 3, fractions, or only yes and no."""
    best, highest = max(GRADES), max(it.grade for it in lines)
    is_fraction = any(it.grade != int(it.grade) for it in lines)
    is_binary = highest == 1 and not any(it.passage for it in lines)
    is_other = highest > best or is_binary or (is_fraction and highest > 0)
    scale = best / highest if is_other else 1.0
    return [replace(it, grade=max(0, int(it.grade * scale + 0.5))) for it in lines]


def _lines_of(text: str) -> Iterator[Line]:
    first = next((line for line in text.splitlines() if line.strip()), "")
    if text.lstrip()[:1] in {"{", "["}:
        yield from _json_lines(text)
    elif "<top>" in text or "<num>" in text:
        yield from _topics(text)
    elif columns := _columns(first):
        yield from _table(text, columns, "\t" if "\t" in first else ";" if ";" in first else ",")
    else:
        yield from map(_plain_line, filter(str.strip, text.splitlines()))


def _plain_line(text: str) -> Line:
    """Return a line of qrels, a question behind its name and a tab, or a question."""
    if graded := _QRELS.fullmatch(text):
        document, _, passage = graded[2].partition(":")
        # Only an id of CoreCube is followed by a passage: other names may hold colons.
        named = (document, passage) if id_in(document) else (graded[2], "")
        return Line("", graded[1], *named, float(graded[3]))
    if numbered := _NUMBERED.fullmatch(text):
        return Line(cut(numbered[2]), numbered[1])
    return Line(cut(text))


def _topics(text: str) -> Iterator[Line]:
    number = ""
    for name, content in _TOPIC_FIELD.findall(text):
        value = " ".join(_TOPIC_LABEL.sub("", content, count=1).split())
        if name == "num":
            number = value
        elif query := cut(value):
            yield Line(query, number)


def _columns(header: str) -> Mapping[int, str]:
    """Return the place of each known column in a table's header; empty for a line that is no header."""
    names = [it.strip().strip('"').lower().replace("_", " ") for it in re.split(r"[\t,;]", header)]
    known = {
        names.index(found): column
        for column, spellings in _COLUMNS.items()
        if (found := next((it for it in spellings if it in names), None)) is not None
    }
    return known if "query" in known.values() or {"number", "document"} <= {*known.values()} else {}


def _table(text: str, columns: Mapping[int, str], delimiter: str) -> Iterator[Line]:
    reader = csv.reader(io.StringIO(text), delimiter=delimiter)
    next(filter(None, reader))
    for cells in filter(any, reader):
        values = {name: cells[place].strip() for place, name in columns.items() if place < len(cells)}
        query, number = cut(_unquoted(values.get("query", ""))), values.get("number", "")
        if not (query or number):
            raise InvalidRequestError(f"Line {reader.line_num} has no query.")
        document = values.get("document", "")
        yield Line(
            query,
            # A question's own text comes before its name.
            "" if query else number,
            document,
            values.get("passage", ""),
            _grade(values.get("grade", ""), f"Line {reader.line_num}") if document else 0.0,
            is_answerable=values.get("answerable", "yes").lower() not in _NO,
            user=values.get("user", ""),
            tags=tags_in(values.get("tags", "")),
            answers=expected_in(_unquoted(values.get("answer", ""))),
        )


def _unquoted(cell: str) -> str:
    """Return a cell without the apostrophe that an export puts before what a spreadsheet would take for a formula."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_FORMULA) else cell


def _json_lines(text: str) -> Iterator[Line]:
    try:
        values = [json.loads(text)]
    except ValueError:
        try:
            values = [json.loads(line) for line in text.splitlines() if line.strip()]
        except ValueError as error:
            raise InvalidRequestError("The import is neither JSON nor one JSON object per line.") from error
    except RecursionError as error:
        raise InvalidRequestError("The JSON is nested too deeply.") from error
    for value in values:
        yield from _judged_in(value)


def _judged_in(value: Any) -> Iterator[Line]:  # noqa: ANN401 -- any JSON
    """Yield the questions in a JSON value of Quepid, OpenSearch or BEIR, with their ratings."""
    if isinstance(value, list):
        for it in value:
            yield from _judged_in(it)
        return
    if not isinstance(value, dict):
        raise InvalidRequestError("The JSON holds no questions.")
    if inner := next((value[name] for name in (*_LISTS, "_source") if isinstance(value.get(name), list | dict)), None):
        yield from _judged_in(inner)
        return
    query = next((cut(it) for name in _QUERY_KEYS if isinstance(it := value.get(name), str)), "")
    if not query:
        raise InvalidRequestError("The JSON holds an entry without a query.")
    number = str(value.get("_id", ""))
    if not (ratings := value.get("ratings")):
        yield _with_answers(Line(query, number), value)
    for document, grade in _ratings(ratings):
        yield Line(query, number, document, grade=_grade(str(grade), f"{query!r}"))


def _with_answers(line: Line, value: Mapping[str, Any]) -> Line:
    """Add what an answer must contain, a list of lists of alternatives; the documents do not answer an empty one."""
    if (answers := value.get("answers")) is None:
        return line
    if not (isinstance(answers, list) and all(_are_texts(it) for it in answers)):
        raise InvalidRequestError(f"{line.query!r}: answers must be a list of lists of texts.")
    kinds = [it for name in ("kind", "collection") if isinstance(it := value.get(name), str)]
    tags = tags_in(",".join(kinds))
    return replace(line, is_answerable=bool(answers), tags=tags, answers=checked_expected(answers))


def _are_texts(value: Any) -> bool:  # noqa: ANN401 -- any JSON
    return isinstance(value, list) and all(isinstance(it, str) for it in value)


def _ratings(ratings: Any) -> Iterator[tuple[str, object]]:  # noqa: ANN401 -- any JSON
    """Yield the document and the grade of ratings: an object by document, or a list of objects."""
    if isinstance(ratings, dict):
        yield from ratings.items()
    for it in ratings if isinstance(ratings, list) else ():
        if not isinstance(it, dict) or not (document := it.get("docId") or it.get("doc_id")):
            raise InvalidRequestError("The JSON holds a rating without a document.")
        yield str(document), it.get("rating", "")


def _grade(text: str, where: str) -> float:
    try:
        grade = float(text)
    except ValueError as error:
        raise InvalidRequestError(f"{where}: the grade must be a number, best 0, 1, 2 or 3.") from error
    if not -1000 <= grade <= 1000:  # noqa: PLR2004 -- also for not a number
        raise InvalidRequestError(f"{where}: the grade must be a number, best 0, 1, 2 or 3.")
    return grade


def preview_lines(lines: Sequence[Line], question_set: QuestionSet, *, actor: User, scope: AccessScope) -> Imported:
    """Return what `import_lines` would do, and raise as it does; nothing is stored."""
    with transaction.atomic():
        done = import_lines(lines, question_set, actor=actor, scope=scope)
        transaction.set_rollback(True)
    return done


def import_lines(lines: Sequence[Line], question_set: QuestionSet, *, actor: User, scope: AccessScope) -> Imported:
    """Add the questions to the set and store the grades as the actor's; documents outside the scope are skipped.

    Raises UnknownPrincipalError for a user that does not exist, before anything is stored.
    """
    users = {name: user_named(name) for name in {it.user for it in lines} if name}
    added: list[UUID] = []
    with transaction.atomic():
        for line in {line.query: line for line in reversed(lines)}.values():
            facts = CaseFacts(line.is_answerable, users.get(line.user), line.tags, answers=line.answers)
            case, is_new = save_case(question_set, line.query, actor=actor, facts=facts)
            added += [case.pk] if is_new else []
        Case.objects.filter(pk__in=added).update(created_at=timezone.now())
        graded = [it for it in lines if it.document]
        found = _passages(graded, scope)
        stored = {
            (normalised_query(line.query), passage): line.grade
            for line in graded
            for passage in found.get((line.document, line.passage), ())
        }
        Judgment.objects.bulk_create(
            [
                Judgment(query=query, document_id=document, content_hash=content_hash, grade=grade, by=actor)
                for (query, (document, content_hash)), grade in stored.items()
            ],
            update_conflicts=True,
            unique_fields=["query", "document", "content_hash", "by", "source"],
            update_fields=["grade", "at"],
        )
    skipped = [it.document for it in graded if (it.document, it.passage) not in found]
    return Imported(len(added), len(stored), len(skipped), tuple(dict.fromkeys(skipped)))


def batches(question_set: QuestionSet) -> list[Batch]:
    """Return the imports of two and more cases, the latest first."""
    together = question_set.cases.order_by("-created_at").values_list("created_at", "created_by__username")
    return [Batch(at, by or "", cases) for at, by, cases in together.annotate(number=Count("pk")).filter(number__gt=1)]


def undo(question_set: QuestionSet, at: datetime, *, actor: User) -> int:
    """Delete the cases of the import at this time and return their number; the judgments of their questions remain."""
    with transaction.atomic():
        imported = question_set.cases.filter(created_at=at)
        if number := imported.count():
            imported.delete()
            note_change(question_set)
            audit.record("case.import_undone", actor=actor, subject=question_set.slug, cases=number)
    return number


def _passages(lines: Iterable[Line], scope: AccessScope) -> dict[tuple[str, str], list[PassageId]]:
    """Return the passages in scope that lines name, by document and passage as written."""
    documents = _documents({it.document for it in lines}, scope)
    texts: dict[UUID, list[str]] = {}
    known = {it for same in documents.values() for it in same}
    rows = passages_in(scope, known).order_by("ordinal").values_list("document_id", "content_hash")
    for document, content_hash in rows:
        texts.setdefault(document, []).append(content_hash)
    found: dict[tuple[str, str], list[PassageId]] = {}
    for name, passage in {(it.document, it.passage) for it in lines}:
        own = [
            PassageId(document, it)
            for document in documents.get(name, ())
            for it in dict.fromkeys(texts.get(document, ()))
            if passage in {"", it}
        ]
        found |= {(name, passage): own} if own else {}
    return found


def _documents(names: set[str], scope: AccessScope) -> dict[str, list[UUID]]:
    """Return the documents in scope that names stand for: ids, else addresses, else external ids, else file names.

    A name that several documents have, as copies in two connections do, stands for all of them.
    """
    in_scope = Document.objects.in_scope(scope).order_by("connection_id", "external_id")
    ids = {name: known for name in names if (known := id_in(name))}
    existing = set(in_scope.filter(pk__in=ids.values()).values_list("pk", flat=True))
    found = {name: [known] for name, known in ids.items() if known in existing}
    for field in ("uri", "external_id"):
        same: dict[str, list[UUID]] = {}
        for name, pk in in_scope.filter(**{f"{field}__in": names - found.keys()}).values_list(field, "pk"):
            same.setdefault(name, []).append(pk)
        found |= same
    if missing := names - found.keys():
        for external_id, pk in in_scope.values_list("external_id", "pk").iterator():
            path = PurePosixPath(external_id)
            for name in {path.name, path.stem} & missing:
                found.setdefault(name, []).append(pk)
    return found
