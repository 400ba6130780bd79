"""Grades from what people opened, copied and rated: computed when they are read, never stored as a person's.

They count only in runs that say so. A grade needs several people, so that it does not tell what one of them opened.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Self

from django.db.models import Count, Max, Q

from corecube.scope import AccessScope
from retrieval.models import Impression
from retrieval.ranking.examination import Counts, Place, Showing, examination, use_grade
from retrieval.records.judgments import PassageId, normalised_query, passages_in

_MAX_EXAMINED: Final = 50_000  #: The newest impressions, which tell which places are examined.
_ON_PAGES: Final = Q(record__key=None)  #: What a program showed, and where, is unknown.
USED: Final = Q(opened=True) | Q(copied=True) | Q(rating__isnull=False)


@dataclass(frozen=True, slots=True)
class UseGrade:
    """What the use of a passage says about it."""

    grade: int
    #: Whether somebody rated it: that is a judgment of a person too, so the two are not independent.
    is_rated: bool


@dataclass(frozen=True, slots=True)
class UseGrades:
    """The grades from use of the passages of some queries; read within a scope."""

    _by_query: Mapping[str, Mapping[PassageId, UseGrade]]

    @classmethod
    def read(cls, queries: Iterable[str]) -> Self:
        """Compute the grades for queries; case and white space do not matter."""
        showings = _showings({normalised_query(it) for it in queries})
        examined = examination(_counts()) if showings else {}
        found: dict[str, dict[PassageId, UseGrade]] = defaultdict(dict)
        for (query, passage), shown in showings.items():
            grade = use_grade(shown, examined)
            if grade is not None:
                found[query][passage] = UseGrade(grade, any(it.rating is not None for it in shown))
        return cls(found)

    def within(self, scope: AccessScope, queries: Iterable[str]) -> dict[tuple[str, PassageId], UseGrade]:
        """Return the grades of passages that are in the scope's documents now, by query as judgments write it."""
        wanted = {it: grades for it in map(normalised_query, queries) if (grades := self._by_query.get(it))}
        documents = {passage.document_id for grades in wanted.values() for passage in grades}
        current = set(passages_in(scope, documents).values_list("document_id", "content_hash"))
        return {
            (query, passage): grade
            for query, grades in wanted.items()
            for passage, grade in grades.items()
            if passage in current
        }


def _showings(queries: Iterable[str]) -> Mapping[tuple[str, PassageId], list[Showing]]:
    found = defaultdict(list)
    rows = Impression.objects.filter(_ON_PAGES, query__in=queries, record__user__isnull=False).values_list(
        "query",
        "document_id",
        "content_hash",
        "record__user_id",
        "record__surface",
        "position",
        "opened",
        "copied",
        "rating",
    )
    for query, document, content_hash, person, surface, position, opened, copied, rating in rows.iterator():
        showing = Showing(person, Place(surface, position), opened, copied, rating)
        found[query, PassageId(document, content_hash)].append(showing)
    return found


def _counts() -> list[Counts]:
    newest = Impression.objects.aggregate(newest=Max("pk"))["newest"] or 0
    recent = Impression.objects.filter(_ON_PAGES, pk__gt=newest - _MAX_EXAMINED)
    grouped = recent.values_list("query", "document_id", "content_hash", "record__surface", "position")
    counted = grouped.annotate(shown=Count("pk"), used=Count("pk", filter=USED))
    return [
        Counts((query, document, content_hash), Place(surface, position), shown, used)
        for query, document, content_hash, surface, position, shown, used in counted
    ]
