"""Exports of a question set with its judgments: CSV and TREC qrels."""

import csv
import io
from collections.abc import Iterable, Iterator
from typing import Final
from uuid import UUID

from corecube.models import User
from corecube.scope import AccessScope
from retrieval.evaluation.case_answers import expected_text
from retrieval.models import Case, QuestionSet
from retrieval.records.judgments import grades_of, passages_in

CSV_HEADER: Final = ("query", "answerable", "document", "passage", "grade", "title", "user", "tags", "answer")
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def csv_of(question_set: QuestionSet, *, viewer: User, scope: AccessScope) -> Iterator[str]:
    """Yield a set's cases with their judgments in scope as CSV, line by line; also cases without judgments."""
    yield csv_line(CSV_HEADER)
    for case in question_set.cases.select_related("user"):
        answerable = "yes" if case.is_answerable else "no"
        facts = (_user(case), ", ".join(case.tags), expected_text(case.answers))
        grades = grades_of(case.query, viewer=viewer, scope=scope)
        rows = passages_in(scope, {it.document_id for it in grades}).values_list("document_id", "document__title")
        titles: dict[UUID, str] = dict(rows)
        if not grades:
            yield csv_line((case.query, answerable, "", "", "", "", *facts))
        for (document, text), graded in sorted(grades.items()):
            yield csv_line((case.query, answerable, document, text, graded.grade, titles.get(document, ""), *facts))


def qrels_of(question_set: QuestionSet, *, viewer: User, scope: AccessScope) -> Iterator[str]:
    """Yield a set's judgments in scope as TREC qrels: the case's id, 0, document:text, grade."""
    for case in question_set.cases.all():
        for (document, text), graded in sorted(grades_of(case.query, viewer=viewer, scope=scope).items()):
            yield f"{case.pk} 0 {document}:{text} {graded.grade}\n"


def _user(case: Case) -> str:
    return case.user.username if case.user else ""


def csv_line(values: Iterable[object]) -> str:
    """Return a line of CSV; values that a spreadsheet would treat as formulas start with an apostrophe."""
    out = io.StringIO()
    cells = [str(value) for value in values]
    csv.writer(out, lineterminator="\n").writerow([f"'{cell}" if cell.startswith(_FORMULA) else cell for cell in cells])
    return out.getvalue()
