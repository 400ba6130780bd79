"""What searches read from the store. Every read takes the scope, and returns hits, never rows."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any, Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from corecube.scope import AccessScope
from retrieval.engine.query import corrected as corrected_query
from retrieval.engine.state import Query, RequestFilter
from retrieval.engine.types import (
    ChunkFacts,
    ChunkId,
    Correction,
    CountTokens,
    Hit,
    QueryTerms,
    Ranking,
    ScoreType,
    Term,
    TermMatch,
    Vector,
)
from retrieval.index import statements
from retrieval.index.filters import filtered
from retrieval.index.lexemes import (
    likely_corrections,
    possible_compounds,
    possible_corrections,
    query_terms,
    quoted,
    with_compounds,
)
from retrieval.index.reading import chunk_keys, fetch, read, vector_text
from retrieval.index.scans import dense_statement
from retrieval.index.statements import Reach, cheapest_reach
from retrieval.text.language import common_words, question_language

#: Without a sort the vectors' order can come from the index alone; the planner, left free, at times compares them all.
ONLY_THE_HNSW_INDEX: Final = {"enable_seqscan": "off", "enable_sort": "off"}

MAX_EF_SEARCH: Final = 1000  #: The maximum search list of pgvector.
_VECTOR_HEADER: Final = 4  #: Bytes before the components of a vector in PostgreSQL's binary form.
_EVERYTHING: Final = RequestFilter()
#: Chunks in scope, and matches there, from which on it takes time worth a thought to mark them all: some 10 ms.
_LARGE_SCOPE: Final = 100_000
_MANY_MATCHES: Final = 1_000


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """The embedding index that is searched."""

    id: int
    dim: int
    scan: str = "halfvec"  #: What its HNSW index is walked by: halfvec, int8, binary or prefix.
    scan_dim: int = 0  #: Components of a prefix; 0 for the other scans.
    #: Chunks that a walk finds for each one wanted before the whole vectors choose; at least 1.
    oversample: float = 1.0


@dataclass(frozen=True, slots=True)
class TextSearch:
    """How full text is weighed."""

    weights: tuple[float, ...]  #: Field weights in PostgreSQL's order: D, C, B, A.
    saturation: float  #: Rank at which a term gives half of its idf.
    by_cover: bool = False  #: Whether a chunk's score is the cover density of the query instead of a sum over terms.


_MAX_READ: Final = 200  #: Chunks with a word's stem that are read for the word.
_NO_INDEX: Final = VectorIndex(0, 0)  #: No embedding belongs to it: what is read has no cosine.
_UNWEIGHTED: Final = TextSearch((1.0, 1.0, 1.0, 1.0), 1.0)  #: Weighs nothing: for hits that are read without terms.


@dataclass(frozen=True, slots=True)
class Matches:
    """What one full-text attempt found."""

    ranking: Ranking
    scored: int  #: Chunks that were scored; one more than was allowed when there are more.


def analyze(
    query: Query,
    *,
    scope: AccessScope,
    languages: Sequence[str],
    is_websearch: bool = False,
    timeout_seconds: float | None = None,
) -> QueryTerms:
    """Return the query's lexemes, rarest first, with their document frequencies in scope.

    `languages` are the text search configurations of the scope's chunks, at least one; the query is read in each, and
    is taken to be in the first one in doubt. A query whose matches no index can find, such as one word OR the absence
    of another, has no `all_terms`. With `is_websearch` these are what `websearch_to_tsquery` makes of any query, also
    of one without operators.
    """
    operators = query.operators or (query.for_models if is_websearch else "")
    parameters = {
        "text": query.for_models,
        "operators": operators,
        "languages": list(languages),
        "scope": scope.connection_ids,
    }
    rows = read(statements.ANALYZE, parameters, timeout_seconds=timeout_seconds)
    terms = query_terms(rows, operators=operators, languages=languages, asked_in=question_language(query.for_models))
    if query.operators:
        return replace(terms, has_operators=True)
    if wanted := possible_compounds(terms):
        terms = with_compounds(terms, _lexeme_counts(wanted, scope, timeout_seconds=timeout_seconds))
    return terms


def corrected(
    terms: QueryTerms,
    *,
    query: Query,
    scope: AccessScope,
    languages: Sequence[str],
    count_tokens: CountTokens,
    timeout_seconds: float | None = None,
) -> QueryTerms:
    """Return the terms of a query with its misspelled words corrected; those of a query with operators stay.

    A word is corrected to the likeliest one that occurs in scope, or is one of the most common words of the language.
    `count_tokens` are those of the embedding model, which knows the query's language.
    """
    near = () if query.operators else possible_corrections(query.for_models, terms, count_tokens)
    if not near:
        return terms
    counts = _lexeme_counts({it.lexeme for it in near}, scope, timeout_seconds=timeout_seconds)
    found: dict[str, Correction] = {}
    for correction, lexeme in likely_corrections(near, terms, counts, count_tokens).items():
        if correction.typed not in found and (
            correction.meant in common_words(terms.language)
            or _is_written(correction.meant, lexeme, scope, timeout_seconds=timeout_seconds)
        ):
            found[correction.typed] = correction
    if not found:
        return terms
    corrections = tuple(found.values())
    again = corrected_query(query, corrections)
    terms = analyze(again, scope=scope, languages=languages, timeout_seconds=timeout_seconds)
    return replace(terms, corrections=corrections)


def _is_written(word: str, lexeme: str, scope: AccessScope, *, timeout_seconds: float | None) -> bool:
    """Return whether some of the chunks in scope with a lexeme hold a word, perhaps with an ending."""
    parameters = {"word": word, "lexeme": quoted(lexeme), "scope": scope.connection_ids, "limit": _MAX_READ}
    return bool(read(statements.WRITTEN, parameters, timeout_seconds=timeout_seconds))


def _lexeme_counts(lexemes: Collection[str], scope: AccessScope, *, timeout_seconds: float | None) -> dict[str, int]:
    parameters = {"lexemes": sorted(lexemes), "scope": scope.connection_ids}
    found = read(statements.LEXEME_COUNTS, parameters, timeout_seconds=timeout_seconds)
    return {row["lexeme"]: row["chunks"] for row in found}


def dense_exact(
    vector: Vector,
    *,
    scope: AccessScope,
    index: VectorIndex,
    depth: int,
    timeout_seconds: float,
    request_filter: RequestFilter = _EVERYTHING,
) -> Ranking:
    """Return the `depth` chunks in scope with the highest cosine, found by comparing all of them."""
    sql, parameters = filtered(statements.DENSE_EXACT, vector_parameters(vector, scope, index, depth), request_filter)
    return ranking(read(sql, parameters, timeout_seconds=timeout_seconds), ScoreType.COSINE)


def dense_hnsw(  # noqa: PLR0913 -- keyword-only, each a plain fact
    vector: Vector,
    *,
    scope: AccessScope,
    index: VectorIndex,
    depth: int,
    ef_search: int,
    timeout_seconds: float,
    oversample: float = 1.0,
    request_filter: RequestFilter = _EVERYTHING,
) -> Ranking:
    """Return about the `depth` chunks in scope with the highest cosine, by the HNSW index.

    The walk goes on until `oversample` times as many are found in scope (iterative scan), at least as many as the index
    says, so a filter costs time, not hits. Whatever it went by, the whole vectors' cosine chooses and orders.
    """
    candidates = round(depth * max(oversample, index.oversample))
    parameters = {**vector_parameters(vector, scope, index, depth), "candidates": candidates}
    sql, parameters = filtered(dense_statement(index.scan, index.dim), parameters, request_filter)
    settings = hnsw_settings(ef_search, candidates)
    rows = read(sql, parameters, timeout_seconds=timeout_seconds, settings=settings)
    return tuple(sorted(ranking(rows, ScoreType.COSINE), key=lambda hit: (-hit.score, hit.chunk_id))[:depth])


def fulltext(  # noqa: PLR0913 -- keyword-only, each a plain fact
    match: str,
    *,
    terms: Sequence[Term],
    scope: AccessScope,
    search: TextSearch,
    depth: int,
    limit: int,
    timeout_seconds: float,
    reach: Reach = Reach.BOTH,
    share: float | None = None,
    request_filter: RequestFilter = _EVERYTHING,
) -> Matches:
    """Return the `depth` chunks in scope that match a tsquery, by their full-text score over all `terms`.

    Past `limit` matches the rest is not looked at, and the ranking is one of an arbitrary part. `reach` changes the
    time that it takes, not what is found. A `share` (0 to 1) is for a tsquery too common to score all of its matches:
    scored are those that match it in title or headings, unless these are more than `limit`, and that share of the
    others: the documents with the lowest ids. Ids are hashes, so these are any documents, and always the same.
    """
    parameters = fulltext_parameters(match, terms, scope, search) | {"depth": depth, "limit": limit}
    if share is None:
        sql = statements.fulltext(len(terms), reach, by_cover=search.by_cover)
    else:
        sql = statements.scored(statements.FULLTEXT_CAPPED, len(terms), by_cover=search.by_cover)
        parameters["until"] = UUID(int=min(int(share * 2**128), 2**128 - 1))
    sql, parameters = filtered(sql, parameters, request_filter)
    rows = read(sql, parameters, timeout_seconds=timeout_seconds)
    return Matches(ranking(rows, ScoreType.FULLTEXT), rows[0]["matched"] if rows else 0)


def reach_of(*, chunks: int, matches: int) -> Reach:
    """Return how to reach the at most so many matches in a scope of so many chunks.

    The planner cannot tell: it takes a lexeme that its statistics do not list for a hundred times commoner than it is.
    """
    if chunks < _LARGE_SCOPE and matches < _MANY_MATCHES:
        return Reach.BOTH
    (row,) = read(statements.ALL_CHUNKS, {})
    return cheapest_reach(chunks=chunks, matches=matches, everything=row["chunks"])


def complete(  # noqa: PLR0913 -- keyword-only, each a plain fact
    hits: Ranking,
    *,
    vector: Vector | None,
    index: VectorIndex | None,
    terms: Sequence[Term],
    scope: AccessScope,
    search: TextSearch,
    match: str = "",
    timeout_seconds: float | None = None,
    request_filter: RequestFilter = _EVERYTHING,
    with_vectors: bool = False,
) -> Ranking:
    """Return the hits with their facts and both signals, in the same order, in one SELECT.

    `match` is the tsquery whose cover density is the full-text signal, where `search` is by it.
    Without a vector no hit has a cosine, and without an index the table of vectors is not read. `with_vectors` reads
    the chunks' own too, for who compares them with each other. A hit that is gone from the store, out of scope or not
    kept by the filter is left out: a stale index can lose a hit, never show one.
    """
    parameters = {
        **chunk_keys(hits),
        "vector": None if vector is None else vector_text(vector),
        "index": index.id if index else None,
        "scope": scope.connection_ids,
        "terms": (lexemes := [quoted(term.lexeme) for term in terms]),
        "in_title": [f"{it}:A" for it in lexemes],
        "in_heading": [f"{it}:B" for it in lexemes],
        "idfs": [term.idf for term in terms],
        "weights": list(search.weights),
        "saturation": search.saturation,
        "cover": (match or None) if search.by_cover else None,
    }
    if index is None:
        statement: str = statements.COMPLETE_WITHOUT_COSINES
    else:
        statement = statements.COMPLETE_WITH_VECTORS if with_vectors else statements.COMPLETE
    sql, parameters = filtered(statement, parameters, request_filter, document="chunk.document_id")
    _, rows = fetch(sql, parameters, timeout_seconds=timeout_seconds)
    order = _match_order(terms)
    return tuple(_completed(hits[row[0] - 1], row[1:], terms, order) for row in sorted(rows, key=itemgetter(0)))


def _match_order(terms: Sequence[Term]) -> dict[int, int]:
    """Return the rank of each term among matches, rarest first, by its place among the query's, from 1."""
    ranked = sorted(range(len(terms)), key=lambda place: (-terms[place].idf, terms[place].lexeme))
    return {place + 1: rank for rank, place in enumerate(ranked)}


def _completed(hit: Hit, row: Sequence[Any], terms: Sequence[Term], order: Mapping[int, int]) -> Hit:
    """Return a hit with a row's facts, signals and matches."""
    *facts, cosine, cover, places, shares, fields = row
    given = sorted(zip(places, shares, fields, strict=True), key=lambda it: order[it[0]])
    matches = tuple(
        [TermMatch((term := terms[place - 1]).lexeme, term.idf, share, field) for place, share, field in given]
    )
    signals = {**hit.signals, "fulltext": sum([it[1] for it in given]) if cover is None else cover}
    if cosine is not None:
        signals["cosine"] = cosine
    return hit.known(_facts(facts), signals, matches)


def _facts(values: list[Any]) -> ChunkFacts:
    """Return a chunk's facts from their columns, in the order of the fields."""
    for place, value_of in _FACT_READERS:
        values[place] = value_of(values[place])
    return ChunkFacts(*values)


def _moment(seconds: float | None) -> datetime | None:
    # A double holds today's microseconds.
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _quality_parts(text: str) -> dict[str, float]:
    # Django's cursor hands binary JSON over as text; most chunks have nothing in it.
    return {} if text == "{}" else dict(json.loads(text))


#: How the values of columns become those of fields, by place.
_FACT_READERS: Final = tuple(
    (place, value_of)
    for value_of, names in (
        (tuple, {"heading_path"}),
        (_quality_parts, {"quality_parts"}),
        (_moment, {"synced_at", "modified_at", "accessed_at", "accessed_before"}),
        (lambda it: it or b"", {"vector"}),
    )
    for place, name in enumerate(ChunkFacts.__dataclass_fields__)
    if name in names
)


def vectors_of(binary: Sequence[bytes], dim: int) -> NDArray[np.float32]:
    """Return vectors from their binary form in PostgreSQL, shape (n, dim)."""
    halves = b"".join(it[_VECTOR_HEADER:] for it in binary)
    return np.frombuffer(halves, ">f2").astype(np.float32).reshape(-1, dim)


def ranking(rows: Sequence[Mapping[str, Any]], score_type: ScoreType) -> Ranking:
    """Return rows of chunks with a score as hits, in their order."""
    scored = ((ChunkId(row["document_id"], row["ordinal"]), float(row["score"])) for row in rows)
    return tuple(Hit(it, score, score_type, signals={score_type.value: score}) for it, score in scored)


def hnsw_settings(ef_search: int, candidates: int) -> dict[str, str]:
    """Return the settings of an HNSW index scan that goes on until so many candidates are found (iterative scan)."""
    size = min(max(ef_search, candidates), MAX_EF_SEARCH)
    return {"hnsw.ef_search": str(size), "hnsw.iterative_scan": "relaxed_order", **ONLY_THE_HNSW_INDEX}


def vector_parameters(vector: Vector | None, scope: AccessScope, index: VectorIndex, depth: int) -> dict[str, Any]:
    """Return the parameters of a statement that compares vectors."""
    return {
        "vector": None if vector is None else vector_text(vector),
        "index": index.id,
        "dim": index.dim,
        "scan_dim": index.scan_dim,
        "scope": scope.connection_ids,
        "depth": depth,
    }


def fulltext_parameters(match: str, terms: Sequence[Term], scope: AccessScope, search: TextSearch) -> dict[str, Any]:
    """Return a query's parameters of a statement with `parts/score.sql`."""
    parameters: dict[str, Any] = {
        "match": match,
        "scope": scope.connection_ids,
        "weights": list(search.weights),
        "saturation": search.saturation,
    }
    for number, term in enumerate(terms, start=1):
        parameters |= {f"term_{number}": quoted(term.lexeme), f"idf_{number}": term.idf}
    return parameters


def read_facts(
    hits: Ranking, *, scope: AccessScope, terms: Sequence[Term] = (), search: TextSearch = _UNWEIGHTED
) -> Ranking:
    """Return the hits with their facts and what they match of the terms, in the same order, in one statement.

    Those that are gone from the store, or out of scope, are left out.
    """
    if not hits:
        return ()
    found = complete(hits, vector=None, index=_NO_INDEX, terms=terms, scope=scope, search=search)
    return tuple(hit for hit in found if scope.allows(hit.chunk.connection_id))
