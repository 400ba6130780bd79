"""Dropping boilerplate."""

from dataclasses import dataclass, replace
from typing import ClassVar

from retrieval.engine.about import About, BaseStage
from retrieval.engine.state import Drop, DropReason, SearchState
from retrieval.engine.tunables import Tunables, fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityConfig(Tunables):
    """What counts as boilerplate."""

    minimum: float = fraction(0.3, help="Minimum quality of a chunk; 0 drops none.")


@dataclass(frozen=True, slots=True)
class Quality(BaseStage, name="quality", needs={"hits", "facts"}):
    """Drop chunks that ingestion classified as boilerplate: navigation, footers, repeated disclaimers."""

    config: QualityConfig

    about: ClassVar[About] = About(
        "quality",
        "Drops boilerplate: navigation, footers, repeated disclaimers.",
        section="quality",
        drops=(DropReason.QUALITY,),
        fact=lambda hit, config: f"quality {hit.chunk.quality:.2f}, minimum {config.quality.minimum:.2f}",
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state without hits of low quality; the others have their quality as a signal."""
        hits, drops, minimum = [], [], self.config.minimum
        for hit in state.hits:
            quality = hit.chunk.quality
            if quality >= minimum:
                hits.append(hit.with_signals({**hit.signals, "quality": quality}))
            else:
                # The heaviest part first: "quality 0.12, minimum 0.30: navigation, repeated".
                parts = sorted(hit.chunk.quality_parts, key=lambda part: -hit.chunk.quality_parts[part])
                detail = f"quality {quality:.2f}, minimum {minimum:.2f}" + (f": {', '.join(parts)}" if parts else "")
                numbers = {"quality": quality, "minimum": minimum}
                drops.append(Drop(hit.chunk_id, DropReason.QUALITY, detail, numbers))
        return replace(state, hits=tuple(hits), drops=(*state.drops, *drops))
