"""The lanes of a finished search, with the chunks read that only a leg has."""

from collections.abc import Mapping

from corecube.scope import AccessScope
from explorer.components.lane_cards import LanesPanel
from explorer.components.lanes import Facts, drop_words, lane_sources, lanes_panel, shown_hits
from explorer.components.snippets import StemIn
from retrieval.engine.types import ChunkId, Hit, QueryTerms
from retrieval.index.facts import read_facts
from retrieval.index.store import TextSearch
from retrieval.search.outcome import SearchOutcome
from retrieval.stages.fulltext import FulltextConfig


def lanes_of(outcome: SearchOutcome, *, stem_in: StemIn) -> LanesPanel:
    """Return a search's lanes. What is gone meanwhile, or out of scope, has a card without a text."""
    sources = lane_sources(outcome)
    state = outcome.state
    search = outcome.config.fulltext.text_search
    read = completed(shown_hits(sources), scope=state.scope, terms=state.terms, search=search)
    return lanes_panel(sources, Facts(read, state.scope, stem_in, drop_words(outcome)))


def completed(
    hits: Mapping[ChunkId, Hit], *, scope: AccessScope, terms: QueryTerms, search: TextSearch | None = None
) -> dict[ChunkId, Hit]:
    """Return the hits in scope with their facts; those that have none yet are read, by one statement for all."""
    known = {chunk_id: hit for chunk_id, hit in hits.items() if hit.facts and scope.allows(hit.facts.connection_id)}
    unread = tuple(hit for hit in hits.values() if hit.facts is None)
    read = read_facts(unread, scope=scope, terms=terms.terms, search=search or FulltextConfig().text_search)
    return known | {hit.chunk_id: hit for hit in read}
