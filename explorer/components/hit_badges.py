"""How a hit came to its place beside its score: recovered, beyond the filter, protected, lifted, and what scored it."""

from collections.abc import Iterator
from dataclasses import dataclass

from explorer.wording.events import PROVIDER_WORDS
from retrieval.engine.types import Hit
from retrieval.presets.consolidated.evidence.precedence import PRECEDENCE
from retrieval.presets.consolidated.evidence.protection import PROTECTED
from retrieval.presets.consolidated.evidence.recovery import is_beyond_filter, is_recovered


@dataclass(frozen=True, slots=True)
class HitBadge:
    """A word about a hit, with its explanation."""

    text: str
    detail: str
    #: "good", "warn", or empty.
    tone: str = ""


def hit_badges(hit: Hit) -> tuple[HitBadge, ...]:
    """Return the badges of a hit, none in presets that know nothing of all this."""
    return tuple(_badges(hit))


def _badges(hit: Hit) -> Iterator[HitBadge]:
    if is_recovered(hit):
        yield HitBadge("recovered", "Added by a separate search for its source type.", "good")
    if is_beyond_filter(hit):
        yield HitBadge("beyond the filter", "Outside the request's filter, but in scope.", "warn")
    if PROTECTED in hit.signals:
        rank = hit.signals[PROTECTED]
        yield HitBadge("protected", f"Rank {rank:.0f}, below the cut, but protected from it.", "good")
    if boost := hit.signals.get(PRECEDENCE, 0.0):
        yield HitBadge(f"precedence +{boost:.4f}".rstrip("0"), "Its source type has precedence over others.")
    if hit.provider:
        yield HitBadge(PROVIDER_WORDS.get(hit.provider, hit.provider.replace("_", " ")), "Last scorer of this hit.")
