"""The evidence of a run over sections: a matrix of sections and source types, and each section's best hits."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final
from urllib.parse import urlencode
from uuid import UUID

from explorer import wording
from explorer.components.badges import Badge, HitBadge, badges, hit_badges
from explorer.components.hit_text import hit_text
from explorer.components.snippets import Segment
from retrieval.engine.types import ChunkId
from retrieval.presets.consolidated.evidence.cells import Cell, Presence
from retrieval.presets.consolidated.evidence.sections import Section
from retrieval.search.evidence_runs import PRESET, Evidence, SectionEvidence, lines_of
from retrieval.search.outcome import SearchOutcome

MAX_HITS: Final = 5
_WORDS: Final[Mapping[Presence, str]] = {
    Presence.FOUND: "required",
    Presence.RECOVERED: "recovered",
    Presence.THIN: "too few",
    Presence.MISSING: "missing",
    Presence.NOT_LOOKED_FOR: "not searched",
    Presence.OPTIONAL: "optional",
    Presence.NONE: "none",
}


@dataclass(frozen=True, slots=True)
class _MatrixCell:
    presence: str
    word: str
    count: int
    detail: str


@dataclass(frozen=True, slots=True)
class _EvidenceHit:
    chunk_id: ChunkId
    title: tuple[Segment, ...]
    trail: tuple[str, ...]
    snippet: tuple[Segment, ...]
    source: str
    source_type: str
    place: str
    score: str
    badges: tuple[HitBadge, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _SectionRow:
    name: str
    title: str
    cells: tuple[_MatrixCell, ...]
    #: Its search in the query log; None without a search.
    trace_id: UUID | None
    #: The query string that runs it in the Explorer.
    again: str
    query: str
    found: int
    milliseconds: str
    badges: tuple[Badge, ...]
    hits: tuple[_EvidenceHit, ...]
    #: Why it was not searched; empty otherwise.
    problem: str

    @property
    def more(self) -> int:
        return self.found - len(self.hits)


@dataclass(frozen=True, slots=True, kw_only=True)
class _EvidencePanel:
    set_name: str
    title: str
    subject: str
    columns: tuple[str, ...]
    rows: tuple[_SectionRow, ...]
    seconds: float

    @property
    def counts(self) -> dict[str, int]:
        cells = [cell.presence for row in self.rows for cell in row.cells]
        return {presence.value: cells.count(presence.value) for presence in Presence}

    @property
    def unsearched(self) -> int:
        return sum(row.trace_id is None for row in self.rows)

    @property
    def announcement(self) -> str:
        counts = self.counts
        missing, recovered = counts["missing"], counts["recovered"]
        text = f"{wording.counted(len(self.rows), 'section')}: {missing} source types missing, {recovered} recovered."
        text += f" {counts['thin']} with too few chunks." if counts["thin"] else ""
        text += f" {counts['not_looked_for']} not searched." if counts["not_looked_for"] else ""
        return text + (f" {wording.counted(self.unsearched, 'section')} not searched." if self.unsearched else "")


def evidence_panel(evidence: Evidence, *, run_as: str = "") -> _EvidencePanel:
    """Return the panel of a run; `run_as` is its user if that is not the reader."""
    return _EvidencePanel(
        set_name=evidence.section_set.name,
        title=evidence.section_set.title,
        subject=evidence.subject,
        columns=evidence.source_types,
        rows=tuple(_row(found, cells, evidence, run_as) for found, cells in lines_of(evidence)),
        seconds=evidence.seconds,
    )


def _row(found: SectionEvidence, cells: tuple[Cell, ...], evidence: Evidence, run_as: str) -> _SectionRow:
    outcome, section = found.outcome, found.section
    pairs = {"preset": PRESET, "section": f"{evidence.section_set.name}/{section.name}", "q": evidence.subject}
    searched = zip(evidence.source_types, cells, strict=True) if outcome else ()
    return _SectionRow(
        name=section.name,
        title=section.title,
        cells=tuple(
            _MatrixCell(cell.presence.value, _WORDS[cell.presence], cell.count, _detail(name, cell, section))
            for name, cell in searched
        ),
        trace_id=outcome.id if outcome else None,
        again=urlencode({**pairs, **({"as": run_as} if run_as else {})}),
        query=section.query(evidence.subject),
        found=len(outcome.hits) if outcome else 0,
        milliseconds=f"{outcome.seconds * 1000:,.0f}" if outcome else "",
        badges=badges(outcome.trace) if outcome else (),
        hits=tuple(_hits(outcome)) if outcome else (),
        problem=found.problem,
    )


def _detail(source_type: str, cell: Cell, section: Section) -> str:
    chunks = wording.counted(cell.count, "chunk")
    sentences = {
        Presence.FOUND: f"{source_type} is required; {chunks} found.",
        Presence.RECOVERED: f"{source_type} is required; {cell.recovered:,} of {chunks} recovered.",
        Presence.THIN: f"{source_type} is required; {chunks} found, {section.quantity_floor(source_type):,} needed.",
        Presence.MISSING: f"{source_type} is required; none found in scope.",
        Presence.NOT_LOOKED_FOR: f"{source_type} is required but could not be searched.",
        Presence.OPTIONAL: f"{source_type} is not required; {chunks} found.",
        Presence.NONE: f"{source_type} is not required; none found.",
    }
    return sentences[cell.presence]


def _hits(outcome: SearchOutcome) -> Iterator[_EvidenceHit]:
    for hit in islice((hit for hit in outcome.hits if hit.facts is not None), MAX_HITS):
        connection = outcome.state.scope.inclusion(hit.chunk.connection_id).connection
        title, snippet = hit_text(hit, connection)
        yield _EvidenceHit(
            chunk_id=hit.chunk_id,
            title=title,
            trail=hit.chunk.heading_path,
            snippet=snippet,
            source=connection.name,
            source_type=hit.chunk.source_type,
            place=wording.place(hit.chunk, hit.chunk.source_type),
            score=f"{hit.score:.3f}",
            badges=tuple(hit_badges(hit)),
        )
