"""From a question to tantivy's query: terms with the scope's idf, phrases, absences and the scope. No Django.

A chunk's score is the sum over the terms, in every field that holds them, of

    weight * idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / average length))

with k1 = 1.2 and b = 0.75, which are tantivy's and fixed (Robertson and Zaragoza, 2009). tantivy's idf counts the whole
index; what hidden chunks hold would show in the scores of visible ones. So each term is weighed by the idf that it has
in scope, over tantivy's, which leaves the former. Of what is out of scope only the fields' average lengths remain.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from tantivy import FieldType, Occur, Query

from retrieval.engine.query import Clause
from retrieval.engine.state import RequestFilter
from retrieval.index.bm25 import schema
from retrieval.index.bm25.reader import View
from retrieval.index.bm25.spelling import humps, spellings
from retrieval.index.bm25.writer import microseconds
from retrieval.ranking.blend import idf

_FIELDS: Final = (schema.BODY, schema.TITLE, schema.HEADING, schema.QUESTIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A query, its scope and the statistics of its terms."""

    clauses: Sequence[Clause]
    connection_ids: Sequence[int]  #: The connections that may be searched, at least one.
    languages: frozenset[str]  #: PostgreSQL's names for the languages of these.
    #: Chunks in scope that hold a stem, where that is known; others are counted in the index.
    frequencies: Mapping[str, int] = field(default_factory=dict)
    corpus_size: int
    weights: Mapping[str, float]  #: What a match in each field of the index counts.
    request_filter: RequestFilter = field(default_factory=RequestFilter)


@dataclass(frozen=True)
class Composer:
    """Makes the query for one view of the index."""

    view: View
    question: Question

    @cached_property
    def strict(self) -> Query | None:
        """A query that finds the chunks for the question; None for one without anything to search for."""
        return self._query(self._required)

    @cached_property
    def relaxed(self) -> Query | None:
        """The same without what must be there; None where nothing must, and where the question is nothing else.

        Words beside a phrase ask about it, and the chunk that answers need not repeat it.
        """
        is_all = all(len(group) > 1 or group[0].is_phrase or group[0].is_excluded for group in self._groups)
        return None if is_all or not self._required else self._query([])

    def _query(self, required: Sequence[Query]) -> Query | None:
        if not self._terms and not required:
            return None
        parts = [(Occur.Must, self._allowed)]
        parts += [(Occur.Must, it) for it in required]
        parts += [(Occur.MustNot, it) for it in self._excluded]
        if self._terms:
            parts.append((Occur.Should if required else Occur.Must, _any(self._terms)))
        return Query.boolean_query(parts)

    @cached_property
    def _groups(self) -> list[list[Clause]]:
        groups: list[list[Clause]] = []
        joins = False
        for clause in self.question.clauses:
            if clause.is_or:
                joins = True
            elif joins and groups:
                groups[-1].append(clause)
                joins = False
            else:
                groups.append([clause])
        return groups

    @cached_property
    def _terms(self) -> list[Query]:
        wanted = [clause.text for group in self._groups for clause in group if not clause.is_excluded]
        return list(self._scored(wanted))

    @cached_property
    def _required(self) -> list[Query]:
        """What must be there: phrases, and one of the words that an OR joins."""
        required = []
        for group in self._groups:
            is_demand = len(group) > 1 or group[0].is_phrase
            # A word or the absence of another is no demand that an index could meet.
            if is_demand and not any(clause.is_excluded for clause in group):
                held = [it for clause in group if (it := self._holds(clause.text))]
                required += [_unscored(_any(held))] if held else []
        return required

    @cached_property
    def _excluded(self) -> list[Query]:
        clauses = (group[0] for group in self._groups if len(group) == 1 and group[0].is_excluded)
        return [held for clause in clauses if (held := self._holds(clause.text))]

    def _holds(self, text: str) -> Query | None:
        """Return what matches the chunks that hold a word, or words in this order; None for a text without words."""
        found = []
        if self._reads_stems:
            found.append(_in_order(schema.BODY, schema.stems(self.view.language).analyze(text)))
        if self._others:
            found.append(_in_order(schema.PLAIN, schema.words().analyze(text)))
        return _any(held) if (held := [it for it in found if it]) else None

    def _scored(self, texts: Sequence[str]) -> Iterator[Query]:
        """Yield a query for each term and field of the texts, each term once."""
        text = " ".join(texts)
        whole = f"{text} {' '.join(humps(text))}"
        if self._reads_stems:
            for term in dict.fromkeys(schema.stems(self.view.language, asked=True).analyze(whole)):
                yield from self._weighed(term, _FIELDS, self.question.frequencies.get(term))
        if self._others:
            for term in dict.fromkeys(schema.words(*self._others).analyze(whole)):
                yield from self._weighed(term, (schema.PLAIN,), None)
        for term in dict.fromkeys(spellings(text)):
            yield from self._weighed(schema.folded(term), (schema.EXACT,), None)

    def _weighed(self, term: str, names: Sequence[str], frequency: int | None) -> Iterator[Query]:
        """Yield a query for each field with a term, weighted by its idf in scope."""
        held = {name: count for name in names if (count := self.view.holding(name, term))}
        if not held:
            return
        if frequency is None:
            holding = Query.term_query(schema.schema(), next(iter(held)), term, index_option="basic")
            in_scope = Query.boolean_query([(Occur.Must, holding), (Occur.Must, self._in_scope)])
            frequency = self.view.count(in_scope)
        rarity = idf(frequency, self.question.corpus_size)
        for name, count in held.items():
            if weight := self.question.weights.get(name, 0.0):
                query = Query.term_query(schema.schema(), name, term, index_option="freq")
                yield Query.boost_query(query, weight * rarity / idf(count, self.view.entries))

    @property
    def _reads_stems(self) -> bool:
        return self.view.language in self.question.languages

    @cached_property
    def _others(self) -> tuple[str, ...]:
        """The languages in scope whose words are indexed unstemmed."""
        return tuple(sorted(self.question.languages - {self.view.language}))

    @cached_property
    def _in_scope(self) -> Query:
        numbers = self.question.connection_ids
        return _unscored(_any([Query.term_query(schema.schema(), schema.CONNECTION, it) for it in numbers]))

    @cached_property
    def _allowed(self) -> Query:
        """What matches the chunks in scope that the request's filter keeps, and some that PostgreSQL will drop."""
        if not self.question.request_filter:
            return self._in_scope
        request_filter = self.question.request_filter
        parts = [self._in_scope, *_remembered(request_filter), *_held(request_filter)]
        if request_filter.since:  # what changed from then on, and documents of which no moment is known
            parts.append(_between(microseconds(request_filter.since), schema.ALWAYS))
        return _unscored(Query.boolean_query([(Occur.Must, it) for it in parts]))


def _in_order(name: str, terms: Sequence[str]) -> Query | None:
    if len(terms) > 1:
        return Query.phrase_query(schema.schema(), name, list(terms))
    return Query.term_query(schema.schema(), name, terms[0], index_option="basic") if terms else None


def _remembered(request_filter: RequestFilter) -> Iterator[Query]:
    conditions = []
    if request_filter.until:
        conditions.append(
            _any([_between(-schema.ALWAYS, microseconds(request_filter.until)), _between(*[schema.ALWAYS] * 2)])
        )
    if request_filter.project:
        conditions.append(_any(_words(schema.MEMORY_PROJECT, (request_filter.project, schema.NONE))))
    if request_filter.memory_types:
        conditions.append(_any(_words(schema.MEMORY_KIND, sorted(request_filter.memory_types))))
    if conditions:
        fitting = Query.boolean_query([(Occur.Must, it) for it in conditions])
        yield _any([*_words(schema.MEMORY_KIND, (schema.NONE,)), fitting])


def _held(request_filter: RequestFilter) -> Iterator[Query]:
    if request_filter.documents:
        yield Query.term_set_query(schema.schema(), schema.DOCUMENT, sorted(it.hex for it in request_filter.documents))
    if request_filter.source_types:
        yield _any(_words(schema.SOURCE_TYPE, sorted(request_filter.source_types)))
    if request_filter.hint:
        yield _any(_words(schema.HINTS, (request_filter.hint,)))
    if request_filter.min_quality:
        yield Query.range_query(schema.schema(), schema.QUALITY, FieldType.Float, request_filter.min_quality, 1.0)


def _words(name: str, values: Iterable[str]) -> list[Query]:
    return [Query.term_query(schema.schema(), name, str(it), index_option="basic") for it in values]


def _between(low: int, high: int) -> Query:
    return Query.range_query(schema.schema(), schema.CHANGED, FieldType.Integer, low, high)


def _any(queries: Sequence[Query]) -> Query:
    return queries[0] if len(queries) == 1 else Query.boolean_query([(Occur.Should, it) for it in queries])


def _unscored(query: Query) -> Query:
    return Query.const_score_query(query, 0.0)
