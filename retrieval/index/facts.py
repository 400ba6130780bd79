"""Reading chunks that somebody looks at though no search carried them to its end."""

from collections.abc import Sequence
from typing import Final

from corecube.scope import AccessScope
from retrieval.engine.types import Ranking, Term
from retrieval.index import store

#: No embedding belongs to it: what is read has no cosine.
_NO_INDEX: Final = store.VectorIndex(0, 0)
#: Weighs nothing: for hits that are read without terms.
_UNWEIGHTED: Final = store.TextSearch((1.0, 1.0, 1.0, 1.0), 1.0)


def read_facts(
    hits: Ranking, *, scope: AccessScope, terms: Sequence[Term] = (), search: store.TextSearch = _UNWEIGHTED
) -> Ranking:
    """Return the hits with their facts and what they match of the terms, in the same order, in one statement.

    Those that are gone from the store, or out of scope, are left out.
    """
    if not hits:
        return ()
    found = store.complete(hits, vector=None, index=_NO_INDEX, terms=terms, scope=scope, search=search)
    return tuple(hit for hit in found if scope.allows(hit.chunk.connection_id))
