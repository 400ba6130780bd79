"""Finding parts of documents by their headings."""

from collections.abc import Sequence
from typing import Any, Final

from corecube.scope import AccessScope
from retrieval.engine.state import RequestFilter
from retrieval.engine.types import Term
from retrieval.index.filters import filtered
from retrieval.index.lexemes import quoted
from retrieval.index.reading import read
from retrieval.index.statements import statement
from retrieval.index.types import RoutedRange

_HEADINGS: Final = statement("headings")
#: The weight of a heading path's lexemes in a chunk's search vector.
_WEIGHT: Final = "B"
#: Chunks under matching headings that are looked at; of more than that, any.
_MAX_CHUNKS: Final = 2_000


def headings_for(
    terms: Sequence[Term], *, scope: AccessScope, request_filter: RequestFilter, depth: int, timeout_seconds: float
) -> tuple[RoutedRange, ...]:
    """Return the `depth` parts of documents in scope whose headings contain most of the terms, best first.

    A part is a run of chunks under the same headings, its score the sum of the idf of the terms that these hold. Raises
    SearchTimeoutError.
    """
    weighed = [f"{quoted(term.lexeme)}:{_WEIGHT}" for term in terms if term.idf > 0]
    if not weighed:
        return ()
    parameters: dict[str, Any] = {
        "match": " | ".join(weighed),
        "terms": weighed,
        "idfs": [term.idf for term in terms if term.idf > 0],
        "scope": scope.connection_ids,
        "limit": _MAX_CHUNKS,
        "depth": depth,
    }
    sql, parameters = filtered(_HEADINGS, parameters, request_filter)
    return tuple(
        RoutedRange(
            document_id=row["document_id"],
            heading_path=tuple(row["heading_path"]),
            start=row["first"],
            end=row["last"],
            score=float(row["score"]),
        )
        for row in read(sql, parameters, timeout_seconds=timeout_seconds)
    )
