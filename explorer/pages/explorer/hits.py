"""The hits: one row per hit, each with its score breakdown."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from corecube.scope import ConnectionFacts, FreshnessBasis
from explorer import wording
from explorer.charts.chart import ABSENT
from explorer.components.badges import HitBadge, hit_badges
from explorer.components.bars import BarPart, score_bar
from explorer.components.hit_text import hit_text
from explorer.components.snippets import Segment
from explorer.pages.explorer.ledger import Ledger, LedgerSource, ledger, leg_rank
from explorer.pages.explorer.verdict import beats_next, evidence_beats_next
from retrieval.engine.types import ChunkFacts, ChunkId, Hit
from retrieval.presets.consolidated.evidence.section_state import SectionState
from retrieval.search.outcome import SearchOutcome


@dataclass(frozen=True, slots=True)
class LegRank:
    """A hit's rank in one leg."""

    leg: str
    label: str
    #: The rank, or a dash.
    rank: str
    absent: bool
    #: "rank 2 of 100", "not in the top 100".
    detail: str


@dataclass(frozen=True, slots=True)
class HitRow:
    """A hit as the list and the score breakdown show it."""

    rank: int
    chunk_id: ChunkId
    title: tuple[Segment, ...]
    trail: tuple[str, ...]
    snippet: tuple[Segment, ...]
    source: str
    trust: str
    #: "synced 3 days ago".
    age: str
    #: "p. 3", "pp. 3-4", or empty.
    pages: str
    score: float
    score_type: str
    bar: tuple[BarPart, ...]
    legs: tuple[LegRank, ...]
    #: The number of its passage, if it was packed.
    citation: int | None
    ledger: Ledger
    verdict: str
    badges: tuple[HitBadge, ...] = ()


def hit_rows(outcome: SearchOutcome) -> tuple[HitRow, ...]:
    """Return the rows of the returned hits, best first, without hits that the deadline left without facts."""
    source = LedgerSource.of(outcome)
    hits = [hit for hit in outcome.hits if hit.facts is not None]
    return tuple(_row(rank, hit, source) for rank, hit in enumerate(hits, start=1))


def _row(rank: int, hit: Hit, source: LedgerSource) -> HitRow:
    outcome, chunk = source.outcome, hit.chunk
    connection = outcome.state.scope.inclusion(chunk.connection_id).connection
    title, snippet = hit_text(hit, connection)
    numbers = {passage.hit.chunk_id: passage.number for passage in reversed(outcome.passages)}
    return HitRow(
        rank=rank,
        chunk_id=hit.chunk_id,
        title=title,
        trail=chunk.heading_path,
        snippet=snippet,
        source=connection.name,
        trust=wording.level(connection.trust),
        age=age(chunk, connection, outcome.state.now),
        pages=wording.place(chunk, chunk.source_type),
        score=hit.score,
        score_type=hit.score_type.value,
        bar=score_bar(hit, legs=frozenset(outcome.state.rankings), full=outcome.config.highest_score),
        legs=tuple(_legs(hit, source)),
        citation=numbers.get(hit.chunk_id),
        ledger=ledger(hit, source),
        verdict=_verdict(rank, hit, outcome),
        badges=tuple(hit_badges(hit)),
    )


def _legs(hit: Hit, source: LedgerSource) -> Iterator[LegRank]:
    for leg in source.outcome.state.rankings:
        rank = hit.ranks.get(leg)
        yield LegRank(leg, wording.leg_label(leg), str(rank or ABSENT), rank is None, leg_rank(hit, leg, source))


def _verdict(rank: int, hit: Hit, outcome: SearchOutcome) -> str:
    hits = outcome.state.hits
    following = hits[rank] if rank < len(hits) and hits[rank].facts is not None else None
    section = outcome.state.part(SectionState)
    if section is not None:
        return evidence_beats_next(hit, following, rank=rank, ask=section.ask)
    return beats_next(hit, following, rank=rank, scope=outcome.state.scope, tolerance=outcome.config.tie_tolerance)


def age(chunk: ChunkFacts, connection: ConnectionFacts, now: datetime) -> str:
    """Return a chunk's age by the freshness basis of its connection: "synced 3 days ago", "changed 2 months ago"."""
    if connection.freshness_basis is FreshnessBasis.MODIFIED and chunk.modified_at is not None:
        return f"changed {wording.ago(chunk.modified_at, now)}"
    return f"synced {wording.ago(chunk.synced_at, now)}"
