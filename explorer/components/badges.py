"""Badges: what a reader should know about a search, or about a hit, before its scores."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from explorer import wording
from explorer.wording import WORDS
from retrieval.engine.state import Span
from retrieval.engine.types import Hit
from retrieval.presets.consolidated.evidence.order import PRECEDENCE, PROTECTED
from retrieval.presets.consolidated.evidence.recovery import is_beyond_filter, is_recovered
from retrieval.presets.consolidated.evidence.scoring import Provider


@dataclass(frozen=True, slots=True)
class Badge:
    """A label about a search or a hit, with its explanation."""

    text: str
    detail: str = ""
    tone: str = ""  #: "good", "warn", "bad" (of a search: degraded), or empty.


def badges(spans: Iterable[Span]) -> tuple[Badge, ...]:
    """Return the badges of a search, live or logged, each once, degradations first."""
    found = dict.fromkeys(_badges(spans))
    return tuple(sorted(found, key=lambda badge: badge.tone != "bad"))


def _badges(spans: Iterable[Span]) -> Iterator[Badge]:
    for note in (note for span in spans for note in span.notes):
        tone = "bad" if note.degraded else ""
        if note.quotes and note.text and note.code in wording.BADGES:
            yield Badge(note.text.rstrip("."), "This spelling is from one of the best hits.", tone)
        elif note.degraded or note.code in wording.BADGES:
            detail = " ".join(filter(None, (note.text, WORDS["note_advice"].get(note.code))))
            yield Badge(wording.note_label(note.code), detail or "From the query log.", tone)


def had_vector(spans: Iterable[Span]) -> bool:
    """Return whether the vector of the query was cached."""
    return any(note.code == "embed_cached" for span in spans for note in span.notes)


def hit_badges(hit: Hit) -> Iterator[Badge]:
    """Yield how a hit got its place other than by its score, and what scored it; nothing for most presets."""
    if is_recovered(hit):
        yield Badge("recovered", "Added by a separate search for its source type.", "good")
    if is_beyond_filter(hit):
        yield Badge("beyond the filter", "Outside the request's filter, but in scope.", "warn")
    if PROTECTED in hit.signals:
        rank = hit.signals[PROTECTED]
        yield Badge("protected", f"Rank {rank:.0f} is below the cut, but this hit is protected.", "good")
    if boost := hit.signals.get(PRECEDENCE, 0.0):
        yield Badge(f"type precedence +{boost:.4f}".rstrip("0"), "Its source type has precedence over others.")
    if hit.provider:
        yield Badge(_provider_words(hit.provider), "What scored this hit last.")


def _provider_words(provider: str) -> str:
    if provider == Provider.NONE:
        return "not reranked"
    return f"scored by {WORDS['rerank_providers'].get(provider, provider.replace('_', ' '))}"
