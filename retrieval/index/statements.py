"""The SQL of the index, one file per statement.

Statements of searches are in `sql/`, limited to a scope; they include `sql/parts/`. Workers and commands run those in
`sql/upkeep/` over everything, and show nobody a document.
"""

import re
from collections.abc import Sequence
from enum import StrEnum
from importlib.resources import files
from typing import Final

from corecube.database import Prepared

#: Cost of fetching and checking a chunk, relative to marking one that an index lists.
_FETCH: Final = 30
_FETCH_NEIGHBOUR: Final = 20
_PLACE: Final = re.compile(r"\{in scope: ([\w.]+)\}")
#: What `statement` writes, also where the planner must not use an index on the column.
CONDITION: Final = re.compile(r"connection_id(?: \+ 0)? = ANY\(%\(scope\)s\)")
_FOLDER: Final = files("retrieval.index") / "sql"
_PART: Final = re.compile(r"\{vectors\}\n|\{\w+\}")
#: As the terms are counted: the planner's estimate knows nothing of shards.
ALL_CHUNKS: Final = "SELECT coalesce(sum(chunks), 0)::float8 AS chunks FROM retrieval_termfrequency WHERE lexeme = ''"
#: Facts of a document that are not metadata of its source.
_OWN_FACTS: Final = {
    "title": "document.title",
    "path": "document.uri",
    "source_type": "document.source_type",
    "document_id": "document.id::text",
    "connection": "(SELECT jsonb_object_agg(id, slug) FROM corecube_connection) ->> document.connection_id::text",
    "modified_at": "to_char(document.modified_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"+00:00\"')",
}
_COSINE: Final = "1 - (embedding.vector <=> %(vector)s::halfvec)"


class Reach(StrEnum):
    """How a statement reaches the chunks that match and are in scope."""

    BOTH = "both"  #: By whichever indexes the planner chooses: few are in scope, or few match.
    MATCHES = "matches"  #: By the matches, each checked for its connection: the scope is too large to be marked.
    SCOPE = "scope"  #: By the scope, each chunk checked for the terms: they are too common outside it.


def cheapest_reach(*, chunks: int, matches: int, everything: float) -> Reach:
    """Return how to reach `matches` chunks in a scope of `chunks`, of `everything` in the store.

    The terms are taken to be as common outside the scope as in it. Both indexes together cost a mark for each chunk in
    scope and for each match anywhere, and a fetch for each match in scope.
    """
    anywhere = matches * max(1.0, everything / max(chunks, 1))
    costs = {
        Reach.BOTH: chunks + anywhere + matches * _FETCH,
        Reach.MATCHES: anywhere * (1 + _FETCH),
        Reach.SCOPE: float(chunks * _FETCH_NEIGHBOUR),
    }
    return min(costs, key=lambda reach: costs[reach])


def statement(name: str) -> str:
    """Return the text of `sql/<name>.sql`, limited to a scope where it says so.

    A statement names the column of a connection, `{in scope: chunk.connection_id}`, for each table or for one that the
    others are joined to by their ids. Only this function writes the condition. Its parameter `scope` holds the
    connections of an AccessScope. Deny by default: no connection, no rows.
    """
    return _PLACE.sub(r"\1 = ANY(%(scope)s)", (_FOLDER / f"{name}.sql").read_text(encoding="utf-8"))


def prepared(name: str) -> Prepared:
    """Return the text of `sql/<name>.sql` as a statement that is planned once."""
    return Prepared(statement(name))


ANALYZE: Final = statement("analyze")
LEXEME_COUNTS: Final = statement("lexeme_counts")
WRITTEN: Final = statement("written")
DENSE_HNSW: Final = statement("dense_hnsw")
DENSE_EXACT: Final = statement("dense_exact")
_FULLTEXT: Final = statement("fulltext")
FULLTEXT_CAPPED: Final = statement("fulltext_capped")
_SCORE: Final = statement("parts/score")
_COVER: Final = statement("parts/score_cover")
PLACE_DENSE: Final = statement("place_dense")
PLACE_FULLTEXT: Final = statement("place_fulltext")
PROBE: Final = statement("probe")
#: What keeps the planner from an index: an expression instead of the column, a function instead of the operator.
_HIDDEN: Final = {
    Reach.MATCHES: ("connection_id = ANY", "connection_id + 0 = ANY"),
    Reach.SCOPE: ("search @@ %(match)s::tsquery", "ts_match_vq(search, %(match)s::tsquery)"),
}
FACT_VALUES: Final = statement("fact_values")
METADATA: Final = statement("parts/metadata")  #: Only documents with the required facts are read.


def _complete(*, cosine: str = "NULL::float8", vector: str = "NULL::bytea", vectors: str = "") -> Prepared:
    parts = {"{cosine}": cosine, "{vector}": vector, "{vectors}\n": vectors}
    return Prepared(_PART.sub(lambda found: parts[found[0]], statement("complete")))


_VECTORS: Final = statement("parts/complete_vectors")
COMPLETE: Final = _complete(cosine=_COSINE, vectors=_VECTORS)
#: The same with the vectors themselves, as big-endian half floats: their binary form without its header.
COMPLETE_WITH_VECTORS: Final = _complete(
    cosine=_COSINE, vector="substr(halfvec_send(embedding.vector), 5)", vectors=_VECTORS
)
#: The same for when the vectors cannot be had in time: it does not name their table, which may be locked.
COMPLETE_WITHOUT_COSINES: Final = _complete()


def with_facts(sql: str, names: Sequence[str]) -> str:
    """Return a statement for the facts with these names, which are parameters `fact_1` ... too."""
    facts = (
        f"coalesce({_OWN_FACTS.get(name, f'document.metadata ->> %(fact_{number})s')}, '')"
        for number, name in enumerate(names, start=1)
    )
    return sql.replace("{facts}", f"jsonb_build_array({', '.join(facts)})::text")


def fulltext(terms: int, reach: Reach = Reach.BOTH, *, by_cover: bool = False) -> str:
    """Return the full-text statement for a query of so many terms, as parameters `term_1`, `idf_1` ..."""
    sql = scored(_FULLTEXT, terms, by_cover=by_cover)
    return sql.replace(*_HIDDEN[reach]) if reach in _HIDDEN else sql


def scored(sql: str, terms: int, *, by_cover: bool = False) -> str:
    """Return a statement that scores full text, for a query of so many terms: by each term, or by cover density."""
    if by_cover:
        return sql.replace("{score}", _COVER)
    # One expression for each term takes a third less time than joining the chunks with a table of the terms.
    score = " + ".join(_SCORE.replace("{n}", str(number)) for number in range(1, terms + 1)) or "0::float8"
    return sql.replace("{score}", score)
