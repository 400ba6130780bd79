"""Reading stored traces back into the engine's types; values unknown to this release are skipped."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from retrieval.engine.state import Drop, DropReason, Note, Span
from retrieval.engine.types import Answerability, ChunkId, Hit, ScoreType, TermMatch, Verdict

_REASONS = frozenset(DropReason)
_SCORE_TYPES = frozenset(ScoreType)


def chunk_id_of(text: str) -> ChunkId:
    """Return the chunk id of a trace; raise ValueError for anything else."""
    document, _, ordinal = text.rpartition(":")
    return ChunkId(UUID(document), int(ordinal))


def spans_of(trace: Mapping[str, Any]) -> tuple[Span, ...]:
    """Return the stages of a stored search."""
    return tuple(
        Span(
            stage=span["stage"],
            seconds=span["ms"] / 1000,
            hits_in=span["hits_in"],
            hits_out=span["hits_out"],
            drops=tuple(
                Drop(chunk_id_of(chunk), DropReason(reason), detail)
                for chunk, reason, detail in span["drops"]
                if reason in _REASONS
            ),
            notes=tuple(Note(note["code"], note["text"], note["degraded"]) for note in span["notes"]),
            parent=span["parent"],
            events=tuple(span.get("events", ())),
        )
        for span in trace.get("spans", ())
    )


def hits_of(trace: Mapping[str, Any]) -> tuple[Hit, ...]:
    """Return the stored hits, best first, with their scores and without their chunks' facts."""
    return tuple(
        Hit(
            chunk_id=chunk_id_of(hit["chunk"]),
            score=hit["score"],
            score_type=ScoreType(hit["score_type"]),
            ranks=hit["ranks"],
            signals=hit["signals"],
            contributions=hit["contributions"],
            matches=tuple(TermMatch(*match) for match in hit["matches"]),
            provider=hit.get("provider", ""),
        )
        for hit in trace.get("hits", ())
        if hit["score_type"] in _SCORE_TYPES
    )


def ranking_of(trace: Mapping[str, Any]) -> tuple[tuple[ChunkId, str], ...]:
    """Return the best chunks in order, each with its text's hash then, empty if never read; none from older traces."""
    return tuple((chunk_id_of(chunk), content_hash) for chunk, content_hash in trace.get("ranking", ()))


def answerability_of(trace: Mapping[str, Any]) -> Answerability | None:
    """Return the stored verdict, without its explanation; None for a search without one."""
    if not (judged := trace.get("answerability")):
        return None
    return Answerability(
        verdict=Verdict(judged["verdict"]),
        confidence=judged["confidence"],
        is_calibrated=judged["calibrated"],
        signals=judged["signals"],
        intercept=judged.get("intercept", 0.0),
        contributions=judged.get("contributions", {}),
        reason=judged["reason"],
    )


def packed_hits(trace: Mapping[str, Any]) -> tuple[Hit, ...]:
    """Return the hits of the packed passages, by their numbers; a neighbour of a hit has a score of 0, no signals."""
    hits = {hit.chunk_id: hit for hit in hits_of(trace)}
    numbered = sorted(trace.get("passages", ()), key=lambda passage: passage["number"])
    ids = [chunk_id_of(passage["chunk"]) for passage in numbered]
    return tuple(hits.get(chunk_id) or Hit(chunk_id, 0.0, ScoreType.RUBRIC) for chunk_id in ids)
