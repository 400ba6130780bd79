"""The only module that runs search SQL. Every read takes the scope, and returns hits, never rows."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from django.db import connection, transaction
from django.db.utils import OperationalError
from pgvector import HalfVector
from psycopg.errors import QueryCanceled

from corecube.errors import DatabaseUnavailableError
from corecube.scope import AccessScope
from retrieval.errors import SearchTimeoutError
from retrieval.index import statements
from retrieval.ranking import idf
from retrieval.types import ChunkFacts, ChunkId, Hit, QueryTerms, Ranking, ScoreType, Term, TermMatch, Vector

#: Without a sort the vectors' order can come from the index alone; the planner, left free, at times compares them all.
ONLY_THE_HNSW_INDEX: Final = {"enable_seqscan": "off", "enable_sort": "off"}
#: A quoted phrase, a minus before a word (one before a number is a sign), an OR.
_OPERATORS: Final = re.compile(r'"[^"]*\w[^"]*"|(?:^|\s)-[^\W\d]|\bOR\b')


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """The embedding index that is searched."""

    id: int
    dim: int


@dataclass(frozen=True, slots=True)
class TextSearch:
    """How full text is read and weighed."""

    #: PostgreSQL text search configuration.
    config: str
    #: Field weights in PostgreSQL's order: D, C, B, A.
    weights: tuple[float, ...]


def analyze(text: str, *, scope: AccessScope, config: str, timeout_seconds: float | None = None) -> QueryTerms:
    """Return the query's lexemes, rarest first, with their document frequencies in scope.

    A query that only says what must be absent has no `all_terms`: no index can find its matches.
    """
    rows = _read(
        statements.ANALYZE,
        {"text": text, "config": config, "scope": scope.connection_ids},
        timeout_seconds=timeout_seconds,
    )
    counts: dict[str, int] = {row["lexeme"]: row["chunks"] for row in rows}
    size = counts.pop("")
    terms = tuple(
        sorted(
            (Term(lexeme, count, idf(count, size)) for lexeme, count in counts.items()),
            key=lambda term: (term.document_frequency, term.lexeme),
        )
    )
    if _OPERATORS.search(text):
        as_written = rows[0]["as_written"] if rows[0]["is_indexable"] else ""
        return QueryTerms(terms, size, as_written, has_operators=True)
    return QueryTerms(terms, size, " & ".join(quoted(term.lexeme) for term in terms))


def dense_exact(
    vector: Vector, *, scope: AccessScope, index: VectorIndex, depth: int, timeout_seconds: float
) -> Ranking:
    """Return the `depth` chunks in scope with the highest cosine, found by comparing all of them."""
    parameters = _vector_parameters(vector, scope, index, depth)
    return _ranking(_read(statements.DENSE_EXACT, parameters, timeout_seconds=timeout_seconds), ScoreType.COSINE)


def dense_hnsw(
    vector: Vector,
    *,
    scope: AccessScope,
    index: VectorIndex,
    depth: int,
    ef_search: int,
    timeout_seconds: float,
) -> Ranking:
    """Return about the `depth` chunks in scope with the highest cosine, by the HNSW index.

    The scan goes on until enough of what it meets is in scope (iterative scan), so a filter costs time, not hits.
    """
    settings = {"hnsw.ef_search": str(ef_search), "hnsw.iterative_scan": "relaxed_order", **ONLY_THE_HNSW_INDEX}
    parameters = _vector_parameters(vector, scope, index, depth)
    rows = _read(statements.DENSE_HNSW, parameters, timeout_seconds=timeout_seconds, settings=settings)
    ordered = sorted(_ranking(rows, ScoreType.COSINE), key=lambda hit: (-hit.score, hit.chunk_id))
    return tuple(ordered)


def fulltext(
    match: str, *, terms: Sequence[Term], scope: AccessScope, search: TextSearch, depth: int, timeout_seconds: float
) -> Ranking:
    """Return the `depth` chunks in scope that match a tsquery, by their full-text score over all `terms`."""
    parameters = {
        "match": match,
        "scope": scope.connection_ids,
        "depth": depth,
        **_term_parameters(terms, search),
    }
    return _ranking(_read(statements.FULLTEXT, parameters, timeout_seconds=timeout_seconds), ScoreType.FULLTEXT)


def complete(  # noqa: PLR0913 -- keyword-only, each a plain fact
    hits: Ranking,
    *,
    vector: Vector,
    index: VectorIndex,
    terms: Sequence[Term],
    scope: AccessScope,
    search: TextSearch,
    timeout_seconds: float | None = None,
) -> Ranking:
    """Return the hits with their facts and both signals, in the same order, in one SELECT.

    A hit that is gone from the store, or out of scope, is left out: a stale index can lose a hit, never show one.
    """
    parameters = {
        "documents": [hit.chunk_id.document_id for hit in hits],
        "ordinals": [hit.chunk_id.ordinal for hit in hits],
        "vector": HalfVector(vector).to_text(),
        "index": index.id,
        "scope": scope.connection_ids,
        **_term_parameters(terms, search),
    }
    rows = _read(statements.COMPLETE, parameters, timeout_seconds=timeout_seconds)
    found = {ChunkId(row["document_id"], row["ordinal"]): row for row in rows}
    return tuple(_completed(hit, found[hit.chunk_id]) for hit in hits if hit.chunk_id in found)


def any_of(terms: Sequence[Term]) -> str:
    """Return the tsquery that is met by any of the terms."""
    return " | ".join(quoted(term.lexeme) for term in terms)


def quoted(lexeme: str) -> str:
    """Return a lexeme as a tsquery of itself."""
    escaped = lexeme.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def _completed(hit: Hit, row: Mapping[str, Any]) -> Hit:
    # Django's cursor hands JSON over as text.
    matches = _matches(json.loads(row["matches"] or "[]"))
    signals = {**hit.signals, "fulltext": sum(match.share for match in matches)}
    if row["cosine"] is not None:
        signals["cosine"] = row["cosine"]
    return replace(hit, signals=signals, matches=matches, facts=_facts(row))


def _facts(row: Mapping[str, Any]) -> ChunkFacts:
    plain = {
        name: row[name] for name in ChunkFacts.__dataclass_fields__ if name not in {"heading_path", "quality_parts"}
    }
    return ChunkFacts(**plain, heading_path=tuple(row["heading_path"]), quality_parts=json.loads(row["quality_parts"]))


def _matches(rows: Sequence[Sequence[Any]]) -> tuple[TermMatch, ...]:
    return tuple(TermMatch(lexeme, float(idf_), float(share), weight) for lexeme, idf_, share, weight in rows)


def _ranking(rows: Sequence[Mapping[str, Any]], score_type: ScoreType) -> Ranking:
    return tuple(
        Hit(
            ChunkId(row["document_id"], row["ordinal"]),
            float(row["score"]),
            score_type,
            signals={score_type.value: float(row["score"])},
        )
        for row in rows
    )


def _vector_parameters(vector: Vector, scope: AccessScope, index: VectorIndex, depth: int) -> dict[str, Any]:
    return {
        "vector": HalfVector(vector).to_text(),
        "index": index.id,
        "dim": index.dim,
        "scope": scope.connection_ids,
        "depth": depth,
    }


def _term_parameters(terms: Sequence[Term], search: TextSearch) -> dict[str, Any]:
    return {
        "lexemes": [term.lexeme for term in terms],
        "terms": [quoted(term.lexeme) for term in terms],
        "idfs": [term.idf for term in terms],
        "weights": list(search.weights),
    }


def _read(
    sql: str,
    parameters: Mapping[str, Any],
    *,
    timeout_seconds: float | None = None,
    settings: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """Run one SELECT under settings that end with it and return its rows by column name.

    `timeout_seconds` None sets no time limit. Raises SearchTimeoutError past the limit, DatabaseUnavailableError.
    """
    local = {**(settings or {})}
    if timeout_seconds is not None:
        local["statement_timeout"] = f"{max(1, int(timeout_seconds * 1000))}ms"
    with _translated(), transaction.atomic(), connection.cursor() as cursor:
        if local:
            cursor.execute(
                "SELECT set_config(name, value, true) FROM unnest(%s::text[], %s::text[]) AS given (name, value)",
                [list(local), list(local.values())],
            )
        cursor.execute(sql, parameters)
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


@contextmanager
def _translated() -> Iterator[None]:
    """Raise SearchTimeoutError for a statement that ran too long, DatabaseUnavailableError for a lost database."""
    try:
        yield
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            raise SearchTimeoutError from error
        raise DatabaseUnavailableError from error
