"""Full-text search by the BM25 index: it gives candidates, and PostgreSQL the hits.

The index knows neither access nor the latest changes, and scores otherwise. The candidates are read from PostgreSQL
under the scope, with the chunks of documents that changed since the index was written, and scored there.
"""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from tantivy import Query

from corecube.scope import AccessScope
from retrieval.engine.state import RequestFilter
from retrieval.engine.types import Ranking, ScoreType, Term
from retrieval.errors import Bm25UnavailableError
from retrieval.index import outbox
from retrieval.index.bm25.reader import View
from retrieval.index.lexemes import any_of, quoted
from retrieval.index.reading import read
from retrieval.index.statements import prepared
from retrieval.index.store import TextSearch, fulltext, ranking

_RESCORED: Final = prepared("fulltext_rescored")
_CANDIDATES_PER_HIT: Final = 2  #: BM25 orders a little otherwise than full text (decision 90).
_EVERY_MATCH: Final = 1_000_000  #: More than some hundred documents have.


def fulltext_by_index(  # noqa: PLR0913 -- keyword-only, each a plain fact
    query: Query,
    *,
    view: View,
    terms: Sequence[Term],
    scope: AccessScope,
    search: TextSearch,
    depth: int,
    timeout_seconds: float,
) -> Ranking:
    """Return the `depth` chunks in scope with the highest full-text score.

    Scored are the best twice as many by BM25, and all chunks of documents that changed since the index was written.
    Raises Bm25UnavailableError for the index of another database, one too far behind, and where most of its candidates
    are gone, as after a restored backup; and SearchTimeoutError.
    """
    changed = outbox.changed_in_scope(view.position, scope=scope, timeout_seconds=timeout_seconds)
    if changed is None or view.database != outbox.known_history():
        raise Bm25UnavailableError
    documents = frozenset(map(UUID, changed))
    best = [it for it, _ in view.best(query, _CANDIDATES_PER_HIT * depth) if it.document_id not in documents]
    parameters = {
        "documents": [it.document_id for it in best],
        "ordinals": [it.ordinal for it in best],
        "terms": [quoted(it.lexeme) for it in terms],
        "idfs": [it.idf for it in terms],
        "weights": list(search.weights),
        "saturation": search.saturation,
        "scope": scope.connection_ids,
        "depth": depth,
    }
    hits = ranking(read(_RESCORED, parameters, timeout_seconds=timeout_seconds), ScoreType.FULLTEXT)
    if len(hits) < min(depth, len(best) // 2):
        raise Bm25UnavailableError
    if not documents:
        return hits
    fresh = fulltext(
        any_of(terms),
        terms=terms,
        scope=scope,
        search=search,
        depth=depth,
        limit=_EVERY_MATCH,
        timeout_seconds=timeout_seconds,
        request_filter=RequestFilter(documents=documents),
    )
    return tuple(sorted((*hits, *fresh.ranking), key=lambda it: (-it.score, it.chunk_id))[:depth])
