"""Judging a question set one question at a time, and how well its raters agree.

A question's passages are pooled over presets, as at TREC, and shown in an order that tells neither rank nor preset.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median_low
from typing import Any, Final

from django.db import transaction
from django.db.models import Count

from corecube import audit
from corecube.access import Principal
from corecube.errors import InvalidRequestError, NotFoundError
from corecube.models import User
from corecube.scope import AccessScope
from retrieval.engine.types import ChunkId
from retrieval.errors import SearchTimeoutError
from retrieval.evaluation.question_sets import unrecorded_search
from retrieval.evaluation.use_grades import UseGrade, UseGrades
from retrieval.models import Case, Chunk, Judgment, QuestionSet
from retrieval.presets.catalog import preset_named
from retrieval.ranking.agreement import Agreement, cohen, fleiss
from retrieval.records.judgments import (
    Graded,
    PassageId,
    grades_of,
    hold,
    normalised_query,
    passages_in,
    ranked_passages,
    standing,
)
from retrieval.search.request import SearchRequest

MAX_DEPTH: Final = 50
DEFAULT_DEPTH: Final = 10
_PERSON: Final = Judgment.Source.PERSON
_FINAL: Final = Judgment.Source.FINAL
_MODEL: Final = Judgment.Source.MODEL


@dataclass(frozen=True, slots=True)
class PooledPassage:
    """A passage to judge."""

    passage: PassageId
    chunk: Chunk
    graded: Graded | None
    explanation: str  #: The rater's.

    @property
    def chunk_id(self) -> ChunkId:
        """The address of its text now."""
        return ChunkId(self.chunk.document_id, self.chunk.ordinal)


def pool(query: str, presets: Iterable[str], *, depth: int, principal: Principal) -> tuple[PassageId, ...]:
    """Return the first `depth` passages of each preset for a query, each once, in an order of the rater's.

    The searches leave no record; one that times out finds nothing. Raises InvalidRequestError for a depth outside 1 to
    50 and UnknownPresetError.
    """
    if not 1 <= depth <= MAX_DEPTH:
        raise InvalidRequestError(f"The depth must be from 1 to {MAX_DEPTH}.")
    found: set[PassageId] = set()
    for preset in dict.fromkeys(preset_named(it).name for it in presets):
        try:
            outcome = unrecorded_search(SearchRequest(text=query, preset=preset, top_k=depth), principal=principal)
        except SearchTimeoutError:
            continue
        found |= {*ranked_passages(outcome)[:depth]}
    return tuple(sorted(found, key=lambda it: hashlib.sha256(f"{principal.user.pk} {query} {it}".encode()).digest()))


def passages_to_judge(
    query: str, passages: Sequence[PassageId], *, rater: User, scope: AccessScope
) -> tuple[PooledPassage, ...]:
    """Return passages with their texts and grades, in the same order, without those deleted or out of scope."""
    wanted = set(passages)
    rows = passages_in(scope, {it.document_id for it in wanted}).select_related("document")
    chunks = {passage: it for it in rows if (passage := PassageId(it.document_id, it.content_hash)) in wanted}
    grades = grades_of(query, viewer=rater, scope=scope)
    own = standing(scope).filter(query=normalised_query(query), by=rater, source=_PERSON)
    explained = {PassageId(it.document_id, it.content_hash): it.explanation for it in own}
    return tuple(
        PooledPassage(it, chunks[it], grades.get(it), explained.get(it, "")) for it in passages if it in chunks
    )


def judged_by(rater: User, cases: Sequence[Case], scope: AccessScope) -> Mapping[str, int]:
    """Return how many passages a rater has judged for each query, as judgments write it."""
    wanted = {normalised_query(it.query) for it in cases}
    own = standing(scope).filter(query__in=wanted, by=rater, source=_PERSON)
    return dict(own.values_list("query").annotate(number=Count("pk")))


def decide(
    question_set: QuestionSet, query: str, passage: PassageId, *, grade: int | None, by: User, scope: AccessScope
) -> None:
    """Store the final grade of a passage for a question of the set, in place of an earlier one; None withdraws it.

    Raises NotFoundError for a question of no case, and UnknownPassageError for a passage deleted or out of scope.
    """
    query = normalised_query(query)
    if query not in _queries(question_set):
        raise NotFoundError("The question set has no such case.")
    decided: dict[str, Any] = {"query": query, "source": _FINAL, **passage._asdict()}
    with transaction.atomic():
        hold(passage, scope)
        Judgment.objects.filter(**decided).delete()
        if grade is not None:
            Judgment.objects.create(**decided, grade=grade, by=by)
        audit.record("judgment.decided", actor=by, subject=question_set.slug, grade=grade)


def _queries(question_set: QuestionSet) -> set[str]:
    return {normalised_query(query) for query in question_set.cases.values_list("query", flat=True)}


@dataclass(frozen=True, slots=True)
class Rating:
    """What a person decided about a passage."""

    rater: str
    grade: int
    explanation: str


@dataclass(frozen=True, slots=True)
class RatedPassage:
    """The grades of a passage for a query."""

    query: str  #: As judgments write it.
    passage: PassageId
    ratings: tuple[Rating, ...]  #: By name of the rater.
    final: Rating | None
    model: int | None  #: A language model's grade.
    use: UseGrade | None  #: From what people opened, copied and rated.

    @property
    def grade(self) -> int | None:
        """What people decided: the final grade, else the lower median; None if only a model graded it."""
        if self.final is not None:
            return self.final.grade
        return median_low([it.grade for it in self.ratings]) if self.ratings else None

    @property
    def is_disputed(self) -> bool:
        """Whether the raters give different grades."""
        return len({it.grade for it in self.ratings}) > 1


@dataclass(frozen=True, slots=True)
class RaterPair:
    """Two raters and how well they agree: Cohen's kappa with quadratic weights."""

    first: str
    second: str
    agreement: Agreement


@dataclass(frozen=True, slots=True)
class SetAgreement:
    """How well the raters of a set agree."""

    pairs: tuple[RaterPair, ...]
    overall: Agreement  #: Fleiss' kappa.
    model: Agreement  #: Of people's grades with a language model's: Cohen's kappa with quadratic weights.
    use: Agreement  #: The same with grades from use, of passages that nobody rated below an answer.
    disputed: int
    decided: int  #: Of the disputed passages, those with a final grade.


def rated_passages(question_set: QuestionSet, scope: AccessScope) -> tuple[RatedPassage, ...]:
    """Return the passages in scope that somebody graded for the questions of a set, by question."""
    queries = _queries(question_set)
    rows = standing(scope).filter(query__in=queries).select_related("by").order_by("query", "at")
    ratings: dict[tuple[str, PassageId], dict[str, Rating]] = {}
    final: dict[tuple[str, PassageId], Rating] = {}
    model: dict[tuple[str, PassageId], int] = {}
    for row in rows:
        key = row.query, PassageId(row.document_id, row.content_hash)
        rating = Rating(row.by.username, row.grade, row.explanation)
        by_rater = ratings.setdefault(key, {})
        if row.source == _FINAL:
            final[key] = rating
        elif row.source == _MODEL:
            model[key] = row.grade
        else:
            by_rater[rating.rater] = rating
    use = UseGrades.read(queries).within(scope, queries)
    return tuple(
        RatedPassage(
            *key, tuple(by_rater[name] for name in sorted(by_rater)), final.get(key), model.get(key), use.get(key)
        )
        for key, by_rater in ratings.items()
    )


def agreement(rated: Sequence[RatedPassage]) -> SetAgreement:
    """Return how well the raters agree."""
    shared: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for it in rated:
        for first, second in combinations(it.ratings, 2):
            shared.setdefault((first.rater, second.rater), []).append((first.grade, second.grade))
    used = [(it.grade, it.use.grade) for it in rated if it.use and not it.use.is_rated and it.grade is not None]
    counts = Counter(it.final is not None for it in rated if it.is_disputed)
    return SetAgreement(
        pairs=tuple(RaterPair(*names, cohen(grades)) for names, grades in sorted(shared.items())),
        overall=fleiss([[rating.grade for rating in it.ratings] for it in rated]),
        model=cohen([(it.grade, it.model) for it in rated if it.grade is not None and it.model is not None]),
        use=cohen(used),
        disputed=counts.total(),
        decided=counts[True],
    )
