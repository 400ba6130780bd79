"""What a search found and did."""

import uuid
from dataclasses import dataclass, field

from retrieval.engine.state import SearchState, Span
from retrieval.engine.types import Passage, Ranking
from retrieval.presets.preset import Preset, PresetConfig
from retrieval.search.configuration import Configuration
from retrieval.search.record_writer import PendingRecord
from retrieval.stages.resources import Resources


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """What a search found and did."""

    id: uuid.UUID
    preset: Preset
    preset_version: str  #: Fingerprint of the preset's stages and every number: it changes when either does.
    state: SearchState
    configuration: Configuration = field(default_factory=Configuration)
    resources: Resources | None = None  #: What it searched with, where its answer is to be written with the same.
    is_recorded: bool = True  #: Whether the store took the trace in time, or is to take it soon.
    pending: PendingRecord | None = field(default=None, compare=False, repr=False)

    @property
    def record_id(self) -> uuid.UUID | None:
        """The id of the stored trace, for what refers to it; waits for a pending one. None where it was not stored."""
        is_stored = self.pending.wait() if self.pending else self.is_recorded
        return self.id if is_stored else None

    @property
    def config(self) -> PresetConfig:
        """The numbers that the search ran with."""
        return self.configuration.config

    @property
    def version_number(self) -> int:
        """The preset's version that it ran with; 0 for the shipped defaults."""
        return self.configuration.number

    @property
    def hits(self) -> Ranking:
        """The hits wanted, best first; none when the time was up before their access was checked again."""
        return self.state.hits[: self.state.top_k] if self.state.access_checked else ()

    @property
    def hit_count(self) -> int:
        """The number of these hits."""
        return min(self.state.top_k, len(self.state.hits)) if self.state.access_checked else 0

    @property
    def passages(self) -> tuple[Passage, ...]:
        """The numbered context."""
        return self.state.passages

    @property
    def trace(self) -> tuple[Span, ...]:
        """One span per stage."""
        return self.state.trace

    @property
    def skipped(self) -> str:
        """Why nothing was searched, in a sentence; empty where something was."""
        return next((note.text for note in self.state.notes if note.code == "route_skip"), "")

    @property
    def asks_nothing(self) -> bool:
        """Whether it is a greeting or the like, which the documents need not answer."""
        return any(note.code in {"route_skip", "small_talk"} for note in self.state.notes)

    @property
    def seconds(self) -> float:
        """Time from the request to the last stage's end."""
        return sum(span.seconds for span in self.state.trace if not span.parent)
