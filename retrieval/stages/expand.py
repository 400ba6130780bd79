"""Following names and links from the question and the best hits."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final
from uuid import UUID

from retrieval.encoders import Encoder
from retrieval.encoders.query_cache import QueryCache
from retrieval.errors import EncoderError, SearchTimeoutError
from retrieval.graph.expansion import Entry, Expansion, document_scores, lifted, seeds_of
from retrieval.graph.links import Edge, name_links, shared_name_links
from retrieval.graph.question import NamedDocument, misspelled_in, named_in, question_keys, without
from retrieval.graph.relevance import fused_scores
from retrieval.graph.spans import key_of
from retrieval.helix_config import GraphConfig
from retrieval.index import graph
from retrieval.index.store import VectorIndex
from retrieval.types import ChunkId, Note, SearchState, Term, Vector

#: Documents whose names are looked for with a wrong letter.
_REPAIRED_AMONG: Final = 30


@dataclass(frozen=True, slots=True)
class Expand:
    """Lift the documents that the question names and those that its seeds' texts lead to.

    Without a vector, or when the time is up, the pool stays as it is.
    """

    config: GraphConfig
    index: VectorIndex
    encoder: Encoder
    #: None encodes every question.
    cache: QueryCache | None = None

    name: ClassVar[str] = "expand"
    needs: ClassVar[frozenset[str]] = frozenset({"hits", "rankings", "terms", "vector", "scope"})
    gives: ClassVar[frozenset[str]] = frozenset({"hits"})
    optional: ClassVar[bool] = True

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with lifted hits, and those that links bring into the pool."""
        if not state.hits or state.vector is None:
            return state
        try:
            return self._expanded(state, state.vector)
        except SearchTimeoutError:
            note = Note("expand_timeout", "Following links ran out of time.", degraded=True)
        except EncoderError:
            note = Note("expand_failed", "What is asked of the names could not be embedded.", degraded=True)
        return replace(state, notes=(*state.notes, note))

    def _expanded(self, state: SearchState, vector: Vector) -> SearchState:
        pooled = {hit.chunk_id for hit in state.hits}
        scores = {chunk: score for chunk, score in fused_scores(state.rankings).items() if chunk in pooled}
        question = state.query.plain_text or state.query.retrieval_text
        named = self._named(question, scores, state)
        seeds = seeds_of(scores, named, self.config)
        found = self._read(list(seeds), [it for it in scores if it.document_id in seeds], named, state)
        edges = _edges(found)
        if self.config.hops > 1 and edges:
            nearest = sorted(edges, key=lambda it: (-it.weight, it.target))[: self.config.bridges]
            on = [document for document in dict.fromkeys(it.target for it in nearest) if document not in seeds]
            edges += _edges(self._read(on, [], named, state))
        if not edges and not named:
            hits = lifted(state.hits, Expansion(scores), self.config)
            return replace(state, hits=hits, notes=(*state.notes, _note(seeds, named, found, edges)))
        asked = without(question, named)
        relation = self._encoded(asked, state) if named and asked else vector
        expansion = Expansion(
            scores,
            named=named,
            seeds=seeds,
            edges=edges,
            entries=self._entries(edges, named, relation, vector, state),
            terms=_asked_terms(state.terms.terms, asked),
            is_cut=found.is_cut,
        )
        notes = (*state.notes, _note(seeds, named, found, edges))
        return replace(state, hits=lifted(state.hits, expansion, self.config), notes=notes)

    def _read(
        self,
        documents: Sequence[UUID],
        chunks: Sequence[ChunkId],
        named: Sequence[NamedDocument],
        state: SearchState,
    ) -> graph.Subgraph:
        return graph.subgraph(
            documents,
            chunks,
            scope=state.scope,
            with_shared_names=bool(named),
            most=self.config.most_edges,
            timeout_seconds=state.deadline.leg_seconds,
        )

    def _named(self, question: str, scores: dict[ChunkId, float], state: SearchState) -> Sequence[NamedDocument]:
        ranked = sorted(document_scores(scores).items(), key=lambda it: (-it[1], it[0]))
        names = graph.names(
            question_keys(question),
            [document for document, _ in ranked],
            scope=state.scope,
            timeout_seconds=state.deadline.leg_seconds,
        )
        stems = [term.lexeme for term in state.terms.terms]
        named = named_in(question, names.asked, scores=dict(ranked), stems=stems)
        if not named:
            nearest = [(document, names.of_found.get(document, ())) for document, _ in ranked[:_REPAIRED_AMONG]]
            return misspelled_in(question, nearest, stems=stems)[: self.config.named]
        return self._without_hubs(named, state)[: self.config.named]

    def _without_hubs(self, named: list[NamedDocument], state: SearchState) -> list[NamedDocument]:
        """Return the named documents whose names stand in few chunks; all of them where none does."""
        if len(named) == 1:
            return named
        most = max(self.config.hub_links, int(self.config.hub_share * state.terms.corpus_size))
        keys = [key_of(name.name) for name in named]
        hubs = graph.hubs(keys, most=most, scope=state.scope, timeout_seconds=state.deadline.leg_seconds)
        return [name for name, key in zip(named, keys, strict=True) if key not in hubs] or named

    def _entries(
        self,
        edges: Sequence[Edge],
        named: Sequence[NamedDocument],
        relation: Vector,
        question: Vector,
        state: SearchState,
    ) -> dict[UUID, Entry]:
        """Return, for every document that may be lifted, its chunk that is nearest to what is asked."""
        documents = dict.fromkeys((*(name.document_id for name in named), *(edge.target for edge in edges)))
        found = graph.likeness(
            list(documents),
            [edge.target_chunk for edge in edges if edge.target_chunk is not None],
            relation=relation,
            question=question,
            index=self.index,
            scope=state.scope,
            timeout_seconds=state.deadline.leg_seconds,
        )
        entries: dict[UUID, Entry] = {}
        for near in sorted(found, key=lambda it: (it.z, it.chunk)):
            entries[near.chunk.document_id] = Entry(near.chunk, near.z, near.cosine)
        return entries

    def _encoded(self, text: str, state: SearchState) -> Vector:
        if self.cache is None:
            return self.encoder.encode_query(text)
        return self.cache.encode(text, encoder=self.encoder, principal=state.scope.principal).vector


def _edges(found: graph.Subgraph) -> list[Edge]:
    return [*name_links(found.seeds, found.names), *shared_name_links(found.seeds, found.holders)]


def _asked_terms(terms: Sequence[Term], asked: str) -> list[Term]:
    """Return the terms that stand in what is asked of the names, and not in the names."""
    words = key_of(asked).split()
    return [term for term in terms if any(word.startswith(term.lexeme[:4]) for word in words)]


def _note(
    seeds: dict[UUID, float], named: Sequence[NamedDocument], found: graph.Subgraph, edges: Sequence[Edge]
) -> Note:
    repaired = sum(name.is_repaired for name in named)
    spelled = f", {repaired} of them misspelled" if repaired else ""
    cut = "; there were more rows than may be read, so links were walked breadth first" if found.is_cut else ""
    text = (
        f"{len(named)} documents named in the question{spelled}; {len(edges)} links from {len(seeds)} seeds,"
        f" {found.size} rows read{cut}."
    )
    return Note("expanded", text)
