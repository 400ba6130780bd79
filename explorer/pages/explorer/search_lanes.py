"""The lanes of a finished search, with the facts of chunks that only a leg returned."""

from collections.abc import Mapping

from corecube.scope import AccessScope
from explorer.components.lane_cards import LanesPanel
from explorer.components.lanes import Facts, drop_words, lane_sources, lanes_panel, shown_hits
from retrieval.engine.types import ChunkId, Hit, QueryTerms
from retrieval.index.facts import read_facts
from retrieval.index.store import TextSearch
from retrieval.search.outcome import SearchOutcome
from retrieval.stages.fulltext import FulltextConfig


def lanes_of(outcome: SearchOutcome) -> LanesPanel:
    """Return a search's lanes. Chunks that were deleted since or are out of scope have a card without text."""
    sources = lane_sources(outcome)
    state = outcome.state
    search = outcome.config.fulltext.text_search
    read = completed(shown_hits(sources), scope=state.scope, terms=state.terms, search=search)
    return lanes_panel(sources, Facts(read, state.scope, drop_words(outcome)))


def completed(
    hits: Mapping[ChunkId, Hit], *, scope: AccessScope, terms: QueryTerms, search: TextSearch | None = None
) -> dict[ChunkId, Hit]:
    """Return the hits in scope with their facts; missing facts are read by one statement."""
    known = {chunk_id: hit for chunk_id, hit in hits.items() if hit.facts and scope.allows(hit.facts.connection_id)}
    unread = tuple(hit for hit in hits.values() if hit.facts is None)
    read = read_facts(unread, scope=scope, terms=terms.terms, search=search or FulltextConfig().text_search)
    return known | {hit.chunk_id: hit for hit in read}
