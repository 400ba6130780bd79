"""The hits column: one row a hit, each with its ledger."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from corecube.scope import ConnectionFacts, FreshnessBasis
from explorer import wording
from explorer.components.bars import BarPart, score_bar
from explorer.components.hit_badges import HitBadge, hit_badges
from explorer.components.snippets import Segment, StemIn, highlight, snippet
from explorer.pages.explorer.ledger import Ledger, LedgerSource, ledger, leg_rank
from explorer.pages.explorer.verdict import beats_next
from explorer.pages.explorer.verdict_evidence import evidence_beats_next
from retrieval.engine.types import ChunkFacts, ChunkId, Hit
from retrieval.presets.consolidated.evidence.section_state import SectionState
from retrieval.search.outcome import SearchOutcome

_ABSENT: Final = "\N{EN DASH}"


@dataclass(frozen=True, slots=True)
class LegRank:
    """Where one leg had the hit."""

    leg: str
    label: str
    #: The rank in figures, or a dash.
    rank: str
    absent: bool
    #: The whole fact: "rank 2 of 100", "not in the top 100".
    detail: str


@dataclass(frozen=True, slots=True)
class HitRow:
    """A hit as the list and the inspector show it."""

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
    #: The N of its passage [N], if it was packed.
    citation: int | None
    ledger: Ledger
    verdict: str
    badges: tuple[HitBadge, ...] = ()


def hit_rows(outcome: SearchOutcome, *, stem_in: StemIn) -> tuple[HitRow, ...]:
    """Return the rows of the hits wanted, best first; hits that the deadline left unread are left out.

    `stem_in` gives the stemmer of a connection's language; it marks the words that match.
    """
    source = LedgerSource.of(outcome)
    hits = [hit for hit in outcome.hits if hit.facts is not None]
    return tuple(_row(rank, hit, source, stem_in) for rank, hit in enumerate(hits, start=1))


def full_score(outcome: SearchOutcome) -> float:
    """Return the highest score there can be."""
    return outcome.config.highest_score


def _row(rank: int, hit: Hit, source: LedgerSource, stem_in: StemIn) -> HitRow:
    outcome, chunk = source.outcome, hit.chunk
    connection = outcome.state.scope.inclusion(chunk.connection_id).connection
    stem = stem_in(connection.language)
    legs = frozenset(outcome.state.rankings)
    return HitRow(
        rank=rank,
        chunk_id=hit.chunk_id,
        title=highlight(chunk.title, [match.lexeme for match in hit.matches], stem=stem),
        trail=chunk.heading_path,
        snippet=snippet(chunk.text, hit.matches, stem=stem),
        source=connection.name,
        trust=wording.level(connection.trust),
        age=age(chunk, connection, outcome.state.now),
        pages=wording.place(chunk, chunk.source_type),
        score=hit.score,
        score_type=hit.score_type.value,
        bar=score_bar(hit, legs=legs, whole=full_score(outcome)),
        legs=tuple(_legs(hit, source)),
        citation=_citation(hit, outcome),
        ledger=ledger(hit, source),
        verdict=_verdict(rank, hit, outcome),
        badges=hit_badges(hit),
    )


def _legs(hit: Hit, source: LedgerSource) -> Iterator[LegRank]:
    for leg in source.outcome.state.rankings:
        rank = hit.ranks.get(leg)
        yield LegRank(leg, wording.leg_label(leg), str(rank or _ABSENT), rank is None, leg_rank(hit, leg, source))


def _citation(hit: Hit, outcome: SearchOutcome) -> int | None:
    numbers = (passage.number for passage in outcome.passages if passage.hit.chunk_id == hit.chunk_id)
    return next(numbers, None)


def _verdict(rank: int, hit: Hit, outcome: SearchOutcome) -> str:
    hits = outcome.state.hits
    following = hits[rank] if rank < len(hits) and hits[rank].facts is not None else None
    section = outcome.state.part(SectionState)
    if section is not None:
        return evidence_beats_next(hit, following, rank=rank, ask=section.ask)
    tolerance = outcome.config.tie_tolerance
    return beats_next(hit, following, rank=rank, scope=outcome.state.scope, tolerance=tolerance)


def age(chunk: ChunkFacts, connection: ConnectionFacts, now: datetime) -> str:
    """Return how fresh a chunk is, by its connection's basis: "synced 3 days ago", "changed 2 months ago"."""
    if connection.freshness_basis is FreshnessBasis.MODIFIED and chunk.modified_at is not None:
        return f"changed {wording.ago(chunk.modified_at, now)}"
    return f"synced {wording.ago(chunk.synced_at, now)}"
