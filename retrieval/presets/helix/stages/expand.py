"""Following names and links from the question and the best hits."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, Final, TypeVar
from uuid import UUID

from corecube.errors import CoreCubeError
from retrieval.engine.about import About, BaseStage, StageGroup
from retrieval.engine.state import Note, SearchState
from retrieval.engine.types import ChunkId, Lift, Ranking, Vector
from retrieval.engine.words import TermFinder, stemmer
from retrieval.errors import EncoderError, SearchTimeoutError
from retrieval.graph.links import Edge, SeedText, name_links, shared_name_links, stated_links
from retrieval.graph.question import NamedDocument, misspelled_in, named_in, without
from retrieval.graph.spans import key_of
from retrieval.index import graph
from retrieval.index.store import VectorIndex
from retrieval.presets.helix.expansion import Entry, Expansion, GraphConfig, document_scores, lifted, seeds_of
from retrieval.presets.helix.stages.names import LinkEntities, QuestionNames, distinctive, stems_of
from retrieval.ranking.fusion import leg_of
from retrieval.stages.analyze import languages_of
from retrieval.stages.complete import PrefetchPool

_Read = TypeVar("_Read")

_DENSE_SHARE: Final = 0.6  #: Weight of the vector ranking; the text rankings have the rest.
_DENSE: Final = "dense"
NEXT: Final = "next"
SECTION: Final = "section"
_MAX_OF_SECTION: Final = 6  #: Chunks of one section that are lifted, nearest first.
_READ_SHARE: Final = 0.6  #: Share of the time left for reading the seeds' links; the rest is for their targets.
_REPAIRED_AMONG: Final = 30  #: Best documents whose names are also matched with a spelling error.


@dataclass(frozen=True, slots=True)
class SeedChunks:
    """The chunks of the seeds that are read."""

    chunks: frozenset[ChunkId]  #: The best of those found, and at least one of each named document.
    begun: tuple[UUID, ...]  #: Documents whose first chunks are read too.
    unfound: frozenset[UUID]
    limit: int  #: Maximum number of chunks, besides those of named documents.

    def of(self, read: Sequence[SeedText], scores: Mapping[ChunkId, float]) -> list[SeedText]:
        """Return the chunks whose links are followed, best first; first chunks fill the remaining places."""
        ranked = sorted(read, key=lambda it: (-scores.get(it.chunk, 0.0), it.chunk.ordinal, it.chunk))
        others = [it.chunk for it in ranked if it.chunk not in self.chunks]
        own = {it.document_id: it for it in reversed(others) if it.document_id in self.unfound}
        room = max(0, self.limit - len(self.chunks) - len(own))
        taken = self.chunks | {*own.values()} | {*[it for it in others if it not in own.values()][:room]}
        return [it for it in ranked if it.chunk in taken]


def seed_chunks(
    scores: Mapping[ChunkId, float], seeds: Collection[UUID], named: Collection[UUID], *, limit: int
) -> SeedChunks:
    """Return the `limit` best found chunks of the seeds, with at least one of each named document."""
    held = sorted((it for it in scores if it.document_id in seeds), key=lambda it: (-scores[it], it))
    best = {it.document_id: it for it in reversed(held)}
    chunks = {*held[:limit], *(best[document] for document in named if document in best)}
    unfound = frozenset(named) - best.keys()
    begun = tuple(it for it in seeds if len(chunks) < limit or it in unfound)
    return SeedChunks(frozenset(chunks), begun, unfound, limit)


def fused_scores(rankings: Mapping[str, Ranking]) -> dict[ChunkId, float]:
    """Return 0.6 of the cosine plus 0.4 of the text score, each min-max-normalised within its leg's ranking.

    A chunk that a leg did not find has 0 there. If one side found nothing, the other has the full weight. Several
    rankings of a side, such as those of rephrasings, share its weight equally.
    """
    found = {leg: ranking for leg, ranking in rankings.items() if ranking}
    vectors = [leg for leg in found if leg_of(leg) == _DENSE]
    words = [leg for leg in found if leg_of(leg) != _DENSE]
    share = _DENSE_SHARE if words and vectors else float(bool(vectors))
    shares = dict.fromkeys(vectors, share / max(1, len(vectors)))
    shares |= dict.fromkeys(words, (1.0 - share) / max(1, len(words)))
    scores: dict[ChunkId, float] = {}
    for leg, ranking in found.items():
        lowest, highest = min(hit.score for hit in ranking), max(hit.score for hit in ranking)
        for hit in ranking:
            part = (hit.score - lowest) / (highest - lowest) if highest > lowest else 1.0
            scores[hit.chunk_id] = scores.get(hit.chunk_id, 0.0) + shares[leg] * part
    return scores


def neighbours_of(
    scores: Mapping[ChunkId, float], sections: Mapping[ChunkId, tuple[int, int]], config: GraphConfig
) -> dict[ChunkId, Lift]:
    """Return the chunks in the sections of the best hits, with their lifts: shares of that hit's fused score.

    `sections` are the first and last ordinals of the hits' sections; a hit without one has no neighbours. Adjacent
    chunks get `next_share`, the rest `section_share`; of several lifts the greatest counts.
    """
    best = sorted(scores, key=lambda chunk: (-scores[chunk], chunk))[: config.top_seeds]
    lifts: dict[ChunkId, Lift] = {}
    for seed in best:
        first, last = sections.get(seed, (0, -1))
        others = (it for it in range(first, last + 1) if it != seed.ordinal)
        for ordinal in sorted(others, key=lambda it: (abs(it - seed.ordinal), it))[:_MAX_OF_SECTION]:
            chunk = ChunkId(seed.document_id, ordinal)
            is_next = abs(ordinal - seed.ordinal) == 1
            amount = scores[seed] * (config.next_share if is_next else config.section_share)
            if amount > 0 and (chunk not in lifts or lifts[chunk].amount < amount):
                lifts[chunk] = Lift(NEXT if is_next else SECTION, amount, source=seed)
    return lifts


@dataclass(frozen=True, slots=True)
class Expand(
    BaseStage, name="expand", needs={"hits", "rankings", "terms", "vector", "scope"}, gives={"hits"}, optional=True
):
    """Lift the documents that the question names and those that the texts of its seeds link to.

    Without a vector the pool stays unchanged; after a timeout or an error the rest counts that was found.
    """

    config: GraphConfig
    index: VectorIndex
    reader: LinkEntities  #: Reads the names in the question unless prefetched, and embeds the rest of the question.
    ahead: PrefetchPool | None = None  #: Reads the pool while links are followed; None leaves that to the next stage.

    about: ClassVar[About] = About(
        "linked",
        "Follows names and links in the question and the best hits, and raises the scores of their targets.",
        group=StageGroup.MERGE,
        notes={"spelling": "spelling corrected"},
        badges=frozenset({"spelling"}),
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with lifted hits, and those that links add to the pool."""
        if not state.hits or state.vector is None:
            return state
        vector, state = state.vector, self.ahead.begun(state) if self.ahead else state
        attempt = _Attempts()
        return self._expanded(state, vector, attempt).noted(*attempt.notes.values())

    def _expanded(self, state: SearchState, vector: Vector, attempt: "_Attempts") -> SearchState:
        pooled = {hit.chunk_id for hit in state.hits}
        scores = {chunk: score for chunk, score in fused_scores(state.rankings).items() if chunk in pooled}
        question = state.query.for_models
        named = self._named(question, scores, state, attempt)
        seeds = seeds_of(scores, named, self.config)
        wanted = seed_chunks(scores, seeds, [it.document_id for it in named], limit=self.config.seed_chunks)
        found = self._followed(wanted, named, state, attempt)
        edges = self._edges(found, wanted, scores) if self.config.hops else []
        if self.config.hops > 1 and edges:
            nearest = sorted(edges, key=lambda it: (-it.weight, it.target))[: self.config.bridges]
            on = [document for document in dict.fromkeys(it.target for it in nearest) if document not in seeds]
            bridges = seed_chunks({}, on, [], limit=self.config.seed_chunks)
            reached = self._followed(bridges, named, state, attempt)
            edges += self._edges(reached, bridges, scores)
        neighbours = neighbours_of(scores, {it.chunk: it.section for it in found.seeds}, self.config)
        if not edges and not named:
            hits = lifted(state.hits, Expansion(scores, neighbours=neighbours), self.config)
            return replace(state, hits=hits, notes=(*state.notes, *_notes(seeds, named, found, edges)))
        rest = without(question, named)
        relation = vector
        if named and rest:
            # Prefetched if it names the same documents.
            read = state.part(QuestionNames) or QuestionNames()
            known = read.vector if read.rest == rest else None
            relation = attempt(partial(self.reader.encoded, rest, state), vector) if known is None else known
        in_rest = TermFinder(state.terms.terms, stemmer(state.terms.language)).found(rest)
        likeness = attempt(partial(self._likeness, edges, named, relation, vector, state), graph.Likeness())
        expansion = Expansion(
            scores,
            named=named,
            seeds=seeds,
            edges=edges,
            entries=_entries(likeness.chunks),
            cosines=_cosines(state.rankings, likeness.chunks),
            mean_cosine=likeness.mean_cosine,
            terms=[it for it in state.terms.terms if it.lexeme in in_rest],
            neighbours=neighbours,
            is_cut=found.is_cut,
        )
        notes = (*state.notes, *_notes(seeds, named, found, edges))
        return replace(state, hits=lifted(state.hits, expansion, self.config), notes=notes)

    def _followed(
        self, wanted: SeedChunks, named: Sequence[NamedDocument], state: SearchState, attempt: "_Attempts"
    ) -> graph.Subgraph:
        found = attempt(partial(self._read, wanted, named, state), graph.Subgraph())
        return attempt(partial(self._weighed, found, state), found)

    def _weighed(self, found: graph.Subgraph, state: SearchState) -> graph.Subgraph:
        """Return the names with less certainty for a common word, which texts capitalise where it begins a sentence."""
        words = {it.key for it in found.names if " " not in it.key}
        if not words:
            return found
        counts = graph.word_counts(
            sorted(words),
            languages=languages_of(state.scope, self.reader.text_search_config),
            scope=state.scope,
            timeout_seconds=state.deadline.leg_seconds,
        )
        corpus = state.terms.corpus_size
        hub = self.config.hub_of(corpus)
        shares = {word: min(1.0, hub / max(1, counts.get(word, corpus))) for word in words}
        names = tuple(replace(it, quality=it.quality * shares.get(it.key, 1.0)) for it in found.names)
        return replace(found, names=names)

    def _read(self, wanted: SeedChunks, named: Sequence[NamedDocument], state: SearchState) -> graph.Subgraph:
        return graph.subgraph(
            wanted.begun,
            wanted.chunks,
            scope=state.scope,
            with_shared_names=bool(named),
            limit=self.config.max_edges,
            timeout_seconds=_READ_SHARE * state.deadline.leg_seconds,
        )

    def _edges(self, found: graph.Subgraph, wanted: SeedChunks, scores: Mapping[ChunkId, float]) -> list[Edge]:
        read = wanted.of(found.seeds, scores)
        return [
            *shared_name_links(read, found.holders),
            *name_links(read, found.names),
            *stated_links(found.stated, {seed.chunk: seed.text for seed in found.seeds}),
        ]

    def _named(
        self, question: str, scores: dict[ChunkId, float], state: SearchState, attempt: "_Attempts"
    ) -> Sequence[NamedDocument]:
        found, stems = document_scores(scores.items()), stems_of(state)
        read = state.part(QuestionNames) or attempt(partial(self.reader.read, state), QuestionNames())
        # Of many documents with the same name those that were found win.
        among = partial(self.reader.names, state, list(found))
        known = attempt(among, graph.Names(tuple(read.known))).asked if read.is_cut else read.known
        named = named_in(question, known, scores=found, stems=stems)
        common = attempt(partial(self.reader.common, named, state, read.common), read.common)
        if kept := distinctive(named, common):
            return kept[: self.config.named]
        nearest = sorted(found, key=lambda document: (-found[document], document))[:_REPAIRED_AMONG]
        seconds = state.deadline.leg_seconds
        names = attempt(partial(graph.names, [], nearest, scope=state.scope, timeout_seconds=seconds), graph.Names())
        ranked = [(document, names.of_found.get(document, ())) for document in nearest]
        repaired = misspelled_in(question, ranked, stems=stems)
        plain = [it for it in repaired if not it.is_marked]
        common = attempt(partial(self.reader.common, plain, state, common), common)
        return distinctive(repaired, common)[: self.config.named]

    def _likeness(
        self,
        edges: Sequence[Edge],
        named: Sequence[NamedDocument],
        relation: Vector,
        question: Vector,
        state: SearchState,
    ) -> graph.Likeness:
        documents = dict.fromkeys((*(name.document_id for name in named), *(edge.target for edge in edges)))
        return graph.likeness(
            list(documents),
            [edge.target_chunk for edge in edges if edge.target_chunk is not None],
            relation=relation,
            question=question,
            index=self.index,
            scope=state.scope,
            timeout_seconds=state.deadline.leg_seconds,
        )


def _entries(near: Sequence[graph.Near]) -> dict[UUID, Entry]:
    return {
        it.chunk.document_id: Entry(it.chunk, it.z, it.cosine) for it in sorted(near, key=lambda it: (it.z, it.chunk))
    }


def _cosines(rankings: Mapping[str, Ranking], near: Sequence[graph.Near]) -> dict[UUID, float]:
    """Return each document's best cosine with the question, of the vector rankings and of what was compared."""
    ranked = [(hit.chunk_id, hit.score) for leg, hits in rankings.items() if leg_of(leg) == _DENSE for hit in hits]
    return document_scores([*ranked, *((it.chunk, it.cosine) for it in near)])


@dataclass(frozen=True, slots=True)
class _Attempts:
    """The steps of one expansion: one that fails leaves its fallback, and a degraded note."""

    notes: dict[str, Note] = field(default_factory=dict)

    def __call__(self, step: Callable[[], _Read], fallback: _Read) -> _Read:
        """Return what a step returns, or the fallback."""
        try:
            return step()
        except SearchTimeoutError:
            self._note("expand_timeout", "Following links timed out: only what was found until then counts.")
        except EncoderError:
            self._note("expand_failed", "The question without its names could not be embedded.")
        except CoreCubeError:
            self._note("expand_failed", "Links could not be followed.")
        return fallback

    def _note(self, code: str, text: str) -> None:
        self.notes.setdefault(code, Note(code, text, degraded=True))


def _notes(
    seeds: dict[UUID, float], named: Sequence[NamedDocument], found: graph.Subgraph, edges: Sequence[Edge]
) -> tuple[Note, ...]:
    repaired = [name for name in named if name.known_as and key_of(name.name) != key_of(name.known_as)]
    spelled = f", {len(repaired)} of them misspelled" if repaired else ""
    cut = "; the row limit was reached, so links were followed breadth-first" if found.is_cut else ""
    text = (
        f"{len(named)} documents named in the question{spelled}; {len(edges)} links from {len(seeds)} seeds,"
        f" {found.size} rows read{cut}."
    )
    read = " and ".join(f"{_quoted(name.name)} as {_quoted(name.known_as)}" for name in repaired)
    return (Note("expanded", text), *([Note("spelling", f"Read {read}.", quotes=True)] if read else []))


def _quoted(name: str) -> str:
    return f"\N{LEFT DOUBLE QUOTATION MARK}{name}\N{RIGHT DOUBLE QUOTATION MARK}"
