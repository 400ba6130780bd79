"""Ranking the pool by several signals, with the weights of a memory type."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import ClassVar, Final

from retrieval.engine.about import About, BaseStage, score_fact
from retrieval.engine.state import Note, SearchState
from retrieval.engine.tunables import Tunables, fraction, tunable
from retrieval.engine.types import ChunkFacts, ChunkId, Hit, MemoryType, Ranking
from retrieval.presets.helix.router.question import Routing
from retrieval.ranking.blend import BlendConfig, query_weights
from retrieval.ranking.fusion import leg_of
from retrieval.ranking.signals import (
    WRITTEN,
    confidence,
    last_touched,
    rank_by_signals,
    recency,
    similarity,
    with_fused,
    with_sparse,
    with_written,
)
from retrieval.text.identifiers import share_found, written_names

_CODE_TYPES: Final = frozenset({"code", "notebook"})  #: Source types that are program text, as the parsers name them.
_TYPES: Final = frozenset(it.value for it in MemoryType)
_CACHED: Final = 20_000
_SIDES: Final = {"bm25": "fulltext"}  #: The text signal is the full-text score, which every pooled chunk has.
_VECTORS: Final = frozenset({"dense", "sparse"})  #: The legs that ignore exact spelling.
#: Most similar hits that vote on the memory type where neither the question nor the request gives one.
_LOOKED_AT: Final = 10


def _words(*words: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(words)})(?![^\W_])", re.IGNORECASE)


_DECISION: Final = _words(
    r"adrs?", r"adr[-_ ]?\d+", r"rfcs?", r"rfc[-_ ]?\d+", "decisions?", r"decision[-_ ]records?", "rationale"
)
_PROCEDURE: Final = _words(
    r"how[-_ ]?tos?", r"how[-_ ]to", "runbooks?", "playbooks?", "procedures?", "tutorials?", "checklists?", "manuals?",
    "sops?", r"step[-_ ]by[-_ ]step", "guides?", "instructions?", "onboarding",
)  # fmt: skip
_EPISODE: Final = _words(
    "incidents?", r"inc[-_ ]\d[\w-]*", r"post[-_ ]?mortems?", "outages?", "meetings?", r"minutes of", "standups?",
    "retros?", "retrospectives?", "inbox", "tickets?", "journals?", "diary", "changelog", r"call[-_ ]notes",
    "transcripts?", r"(?:19|20)\d\d-\d\d-\d\d",
)  # fmt: skip
#: In this order: the minutes of a decision are a decision, the runbook of an incident a procedure.
_NAMED: Final = ((MemoryType.DECISION, _DECISION), (MemoryType.PROCEDURAL, _PROCEDURE), (MemoryType.EPISODIC, _EPISODE))


def memory_type_of(chunk: ChunkFacts, *, connection: str = "") -> MemoryType:
    """Return a chunk's memory type: that of a remembered item, else by source type (code, mail), else by words.

    The words are those of the title, then the address, the connection, the headings; the default is semantic.
    """
    if chunk.memory_kind in _TYPES:
        return MemoryType(chunk.memory_kind)
    if chunk.source_type in _CODE_TYPES:
        return MemoryType.CODE
    if chunk.source_type == "email":
        return MemoryType.EPISODIC
    # Scheme and host name a place and not a thing.
    path = re.sub(r"^[a-z][\w+.-]*://[^/]*", "", chunk.uri)
    return _said((chunk.title, path, connection, " / ".join(chunk.heading_path)))


@lru_cache(_CACHED)
def _said(texts: tuple[str, ...]) -> MemoryType:
    found = (memory_type for text in texts for memory_type, words in _NAMED if words.search(text))
    return next(found, MemoryType.SEMANTIC)


def prevailing(found: Iterable[tuple[MemoryType, float]], *, min_share: float) -> MemoryType | None:
    """Return the memory type with at least this share of the total weight of (type, weight) pairs; else None."""
    weights: dict[MemoryType, float] = {}
    for memory_type, weight in found:
        weights[memory_type] = weights.get(memory_type, 0.0) + weight
    best = max(weights, key=lambda it: (weights[it], it), default=None)
    total = math.fsum(weights.values())
    return best if best is not None and total > 0 and weights[best] >= min_share * total else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalWeights(Tunables):
    """Weights of the signals of a hit.

    Similarity and links are min-max normalised within the pool; links only if they add at least signals.link_span. Of
    recency, salience and confidence the pool's minimum is subtracted; they are stretched to 0 to 1 only if they differ
    by at least signals.min_span.
    """

    similarity: float = fraction(0.4, help="Weight of similarity: vector and keyword scores combined.")
    recency: float = fraction(0.1, help="Weight of recency: time since the document was last opened.")
    salience: float = fraction(0.2, help="Weight of salience: how central the chunk is to its document.")
    confidence: float = fraction(0.15, help="Weight of confidence: its source's trust level.")
    graph: float = fraction(0.15, help="Weight of links.")


def _weights(similarity: float, recency: float, salience: float, confidence: float, graph: float) -> SignalWeights:
    return SignalWeights(similarity=similarity, recency=recency, salience=salience, confidence=confidence, graph=graph)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalsConfig(Tunables, label="Signals"):
    """Weights of the ranking for each memory type, and the decay of recency."""

    hourly_decay: float = tunable(0.995, low=0.5, high=1.0, help="Factor for recency per hour without being opened.")
    type_share: float = fraction(
        0.6, help="Minimum share of the top ten hits' similarity for the weights of a memory type to apply."
    )
    dense_share: float = fraction(0.65, help="Share of the cosine in similarity. The rest is the full-text score.")
    sparse_share: float = fraction(0.3, help="Share of the sparse leg's score in similarity, if that leg searches.")
    min_cosine_span: float = fraction(
        0.1, help="If the cosines of a pool are closer together than this, they are not stretched to 0 to 1."
    )
    written_share: float = fraction(
        0.5, help="Share of similarity for identifiers, paths and numbers that match the question as written."
    )
    fused_share: float = fraction(0.0, help="Share of the RRF score in similarity.")
    own_weights: int = tunable(
        0, low=0, high=1, help="1 ranks each hit with the weights of its own memory type; 0 all with those of one type."
    )
    min_span: float = fraction(
        1.0, help="If recency, salience or confidence are closer together than this, they are not stretched to 0 to 1."
    )
    link_span: float = fraction(0.3, help="If links add less than this to every hit, they are not stretched to 0 to 1.")
    episodic: SignalWeights = field(default_factory=lambda: _weights(0.35, 0.30, 0.15, 0.10, 0.10))
    semantic: SignalWeights = field(default_factory=lambda: _weights(0.40, 0.05, 0.20, 0.20, 0.15))
    procedural: SignalWeights = field(default_factory=lambda: _weights(0.45, 0.10, 0.25, 0.15, 0.05))
    decision: SignalWeights = field(default_factory=lambda: _weights(0.35, 0.10, 0.25, 0.25, 0.05))
    code: SignalWeights = field(default_factory=lambda: _weights(0.50, 0.15, 0.10, 0.10, 0.15))

    @property
    def blend(self) -> BlendConfig:
        """How the two legs' signals make similarity: as in the blend of `corecube`, without freshness."""
        return BlendConfig(
            dense=self.dense_share, fulltext=1 - self.dense_share, freshness=0.0, min_cosine_span=self.min_cosine_span
        )

    @property
    def min_spans(self) -> dict[str, float]:
        """The minimum span of each signal that has one."""
        return {**dict.fromkeys(("recency", "salience", "confidence"), self.min_span), "graph": self.link_span}

    def of(self, memory_type: MemoryType) -> SignalWeights:
        """Return the weights of a memory type."""
        weights: SignalWeights = getattr(self, memory_type)
        return weights


@dataclass(frozen=True, slots=True)
class RankedAs:
    """The memory types whose weights rank a search."""

    memory_type: MemoryType
    own: Mapping[ChunkId, MemoryType] = field(default_factory=dict)  #: That of each hit, if each has its own weights.

    def of(self, hit: Hit) -> MemoryType:
        """Return the memory type whose weights rank a hit."""
        return self.own.get(hit.chunk_id, self.memory_type)


@dataclass(frozen=True, slots=True)
class RankSignals(BaseStage, name="signals", needs={"hits", "facts", "scope"}, gives={"order"}):
    """Order the pool by relevance, recency, salience, confidence and graph, with the weights of one memory type.

    All hits of a search have the same weights, since sums of different weights cannot be compared. The type is the
    question's, else the only one that the request wants, else that of most of the most similar hits, else semantic.
    With `own_weights` each hit has those of its own type.
    """

    config: SignalsConfig

    about: ClassVar[About] = About(
        "ranked",
        "Orders the pool by relevance, recency, salience, confidence and links, weighted by memory type.",
        section="signals",
        notes={"ranked_as": "weights by memory type"},
        fact=score_fact,
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with its hits ranked, best first; reserved slots stay."""
        measured = self._measured(state)
        memory_type, why = self._type(measured, state)
        own = {hit.chunk_id: type_of(hit, state) for hit in measured} if self.config.own_weights else {}
        ranked = RankedAs(memory_type, own)
        text = f"Ranked with the weights for {memory_type} memory: {why}."
        if own:
            counts = ", ".join(f"{count} {name}" for name, count in Counter(own.values()).most_common())
            text = f"Ranked with the weights of each hit's memory type: {counts}."
        weights = {name: self.config.of(name).values() for name in MemoryType}
        hits = rank_by_signals(measured, lambda hit: weights[ranked.of(hit)], min_spans=self.config.min_spans)
        return replace(state, hits=hits, parts=state.parts_with(ranked)).noted(Note("ranked_as", text))

    def _measured(self, state: SearchState) -> tuple[Hit, ...]:
        searched = {leg_of(ranking) for ranking in state.rankings}
        legs = query_weights(state.hits, self.config.blend, ran={_SIDES.get(leg, leg) for leg in searched})
        similarities = similarity(state.hits, legs, min_cosine_span=self.config.min_cosine_span)
        if "sparse" in searched:
            share = 1.0 if searched == {"sparse"} else self.config.sparse_share
            similarities = with_sparse(similarities, state.hits, share)
        hits, held = _written(state, searched) if self.config.written_share else (state.hits, [0.0] * len(state.hits))
        similarities = with_written(similarities, held, share=self.config.written_share)
        found = with_fused(similarities, hits, share=self.config.fused_share)
        measured = []
        for hit, relevance in zip(hits, found, strict=True):
            chunk = hit.chunk
            trust = state.scope.inclusion(chunk.connection_id).connection.trust
            last = last_touched(chunk, state.now, to_the_day=not state.is_admin)
            values = {
                "similarity": relevance,
                "recency": recency(last, state.now, hourly_decay=self.config.hourly_decay),
                "salience": chunk.salience,
                "confidence": confidence(trust, is_confirmed=chunk.is_confirmed),
                "graph": hit.signals.get("graph", math.fsum(lift.amount for lift in hit.lifts)),
            }
            known = {name: value for name, value in values.items() if value is not None}
            measured.append(hit.with_signals({**hit.signals, **known}))
        return tuple(measured)

    def _type(self, measured: Iterable[Hit], state: SearchState) -> tuple[MemoryType, str]:
        routing = state.part(Routing)
        if routing is not None and routing.memory_type is not None:
            return routing.memory_type, "the query matches this type"
        if len(state.filter.memory_types) == 1:
            return next(iter(state.filter.memory_types)), "the filter selects this type"
        nearest = sorted(measured, key=lambda hit: (-hit.signals.get("similarity", 0.0), hit.chunk_id))[:_LOOKED_AT]
        found = prevailing(
            ((type_of(hit, state), hit.signals.get("similarity", 0.0)) for hit in nearest),
            min_share=self.config.type_share,
        )
        if found is None:
            return MemoryType.SEMANTIC, "no other type applies"
        return found, "the most similar hits are"


def _written(state: SearchState, searched: set[str]) -> tuple[Ranking, list[float]]:
    """Return the hits with the signal "written", and its values: 0 each for a search by vectors alone."""
    names = written_names(state.query.for_models)
    if not names or searched <= _VECTORS:
        return state.hits, [0.0] * len(state.hits)
    held = [share_found(names, hit.chunk.title, *hit.chunk.heading_path, hit.chunk.text) for hit in state.hits]
    marked = (hit.with_signals({**hit.signals, WRITTEN: part}) for hit, part in zip(state.hits, held, strict=True))
    return tuple(marked), held


def type_of(hit: Hit, state: SearchState) -> MemoryType:
    """Return the memory type of a completed hit."""
    return memory_type_of(hit.chunk, connection=state.scope.inclusion(hit.chunk.connection_id).connection.name)
