"""Traces as JSON: what a search did, without any document text."""

from typing import Any

from retrieval.engine.state import SearchState, Span
from retrieval.engine.types import Answerability, Hit
from retrieval.ranking.measures import MEASURED_DEPTH


def trace_json(state: SearchState, *, keep_words: bool) -> dict[str, Any]:
    """Return the trace of a finished search: spans, hits with their scores, passages by number, the verdict.

    The ranking names the best hits, also beyond those wanted, each with the hash of its text. Without `keep_words` the
    query's words are left out wherever they stand.
    """
    return {
        "spans": [span_json(span, keep_words=keep_words) for span in state.trace],
        "hits": [hit_json(hit, keep_words=keep_words) for hit in state.hits[: state.top_k]],
        "ranking": [
            [str(hit.chunk_id), hit.facts.content_hash if hit.facts else ""] for hit in state.hits[:MEASURED_DEPTH]
        ],
        "passages": [
            {
                "number": passage.number,
                "chunk": str(passage.hit.chunk_id),
                "tokens": passage.token_count,
                "role": passage.role,
            }
            for passage in state.passages
        ],
        "answerability": _answerability_json(state.answerability),
    }


def span_json(span: Span, *, keep_words: bool = True) -> dict[str, Any]:
    """Return one span; a note's text may hold words of the query, its code never does.

    The text of a note that quotes documents is left out.
    """
    return {
        "stage": span.stage,
        "parent": span.parent,
        "ms": round(span.seconds * 1000, 3),
        "hits_in": span.hits_in,
        "hits_out": span.hits_out,
        "drops": [[str(drop.chunk_id), drop.reason.value, drop.detail] for drop in span.drops],
        "notes": [
            {"code": note.code, "text": note.text if keep_words and not note.quotes else "", "degraded": note.degraded}
            for note in span.notes
        ],
        "events": [dict(event) for event in span.events],
    }


def hit_json(hit: Hit, *, keep_words: bool = True) -> dict[str, Any]:
    """Return one hit's score ledger."""
    return {
        "chunk": str(hit.chunk_id),
        "score": hit.score,
        "score_type": hit.score_type.value,
        "ranks": dict(hit.ranks),
        "signals": dict(hit.signals),
        "contributions": dict(hit.contributions),
        "provider": hit.provider,
        "matches": [
            [match.lexeme if keep_words else "", match.idf, match.share, match.weight] for match in hit.matches
        ],
    }


def _answerability_json(judged: Answerability | None) -> dict[str, Any] | None:
    """Return a verdict without its sentence, which can hold words of the query."""
    if judged is None:
        return None
    return {
        "verdict": judged.verdict.value,
        "confidence": judged.confidence,
        "calibrated": judged.is_calibrated,
        "reason": judged.reason,
        "signals": dict(judged.signals),
    }
