"""The evidence of a run over sections: a matrix of sections and source types, and each section's best hits."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode
from uuid import UUID

from explorer import wording
from explorer.components.badges import Badge, badges
from explorer.components.hit_badges import HitBadge, hit_badges
from explorer.components.snippets import Segment, StemIn, highlight, snippet
from retrieval.engine.types import ChunkId, Hit
from retrieval.presets.consolidated.evidence.cells import Cell, Presence
from retrieval.presets.consolidated.evidence.sections import Section
from retrieval.search.evidence_runs import PRESET, Evidence, SectionEvidence, lines_of
from retrieval.search.outcome import SearchOutcome

#: Hits that stand below a section.
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
class MatrixCell:
    """One source type in one section."""

    #: A `Presence`.
    presence: str
    word: str
    count: int
    #: The whole fact, as a sentence.
    detail: str


@dataclass(frozen=True, slots=True)
class EvidenceHit:
    """A hit below its section."""

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
class SectionRow:
    """A section: a row of the matrix, and what stands below it."""

    name: str
    title: str
    cells: tuple[MatrixCell, ...]
    #: Names its search in the log; None where none was made.
    trace_id: UUID | None
    #: The query of the Explorer's address that asks for it again.
    again: str
    query: str
    found: int
    milliseconds: str
    badges: tuple[Badge, ...]
    hits: tuple[EvidenceHit, ...]
    #: Why there is nothing; empty where it was searched for.
    problem: str

    @property
    def more(self) -> int:
        """Hits that are not listed."""
        return self.found - len(self.hits)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidencePanel:
    """A run over sections."""

    set_name: str
    title: str
    subject: str
    columns: tuple[str, ...]
    rows: tuple[SectionRow, ...]
    seconds: float

    @property
    def counts(self) -> dict[str, int]:
        """How many cells there are of each presence."""
        cells = [cell.presence for row in self.rows for cell in row.cells]
        return {presence.value: cells.count(presence.value) for presence in Presence}

    @property
    def unsearched(self) -> int:
        """Sections for which nothing was searched."""
        return sum(row.trace_id is None for row in self.rows)

    @property
    def announcement(self) -> str:
        """What a screen reader is told when it arrives."""
        counts = self.counts
        missing, recovered = counts["missing"], counts["recovered"]
        said = f"{wording.counted(len(self.rows), 'section')}: {missing} source types missing, {recovered} recovered."
        said += f" {counts['thin']} with too few chunks." if counts["thin"] else ""
        said += f" {counts['not_looked_for']} not searched." if counts["not_looked_for"] else ""
        return said + (f" {wording.counted(self.unsearched, 'section')} not searched." if self.unsearched else "")


def evidence_panel(evidence: Evidence, *, stem_in: StemIn, run_as: str = "") -> EvidencePanel:
    """Return the panel of a run; `run_as` names whom it was made as, where that is not its reader."""
    return EvidencePanel(
        set_name=evidence.section_set.name,
        title=evidence.section_set.title,
        subject=evidence.subject,
        columns=evidence.source_types,
        rows=tuple(_row(found, cells, evidence, stem_in, run_as) for found, cells in lines_of(evidence)),
        seconds=evidence.seconds,
    )


def _row(
    found: SectionEvidence, cells: tuple[Cell, ...], evidence: Evidence, stem_in: StemIn, run_as: str
) -> SectionRow:
    outcome, section = found.outcome, found.section
    pairs = {"preset": PRESET, "section": f"{evidence.section_set.name}/{section.name}", "q": evidence.subject}
    searched = zip(evidence.source_types, cells, strict=True) if outcome else ()
    return SectionRow(
        name=section.name,
        title=section.title,
        cells=tuple(_cell(name, cell, section) for name, cell in searched),
        trace_id=outcome.id if outcome else None,
        again=urlencode({**pairs, **({"as": run_as} if run_as else {})}),
        query=section.query(evidence.subject),
        found=len(outcome.hits) if outcome else 0,
        milliseconds=f"{outcome.seconds * 1000:,.0f}" if outcome else "",
        badges=badges(outcome) if outcome else (),
        hits=tuple(_hits(outcome, stem_in)) if outcome else (),
        problem=found.problem,
    )


def _cell(source_type: str, cell: Cell, section: Section) -> MatrixCell:
    return MatrixCell(cell.presence.value, _WORDS[cell.presence], cell.count, _detail(source_type, cell, section))


def _detail(source_type: str, cell: Cell, section: Section) -> str:
    """Return what a cell says as a sentence."""
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


def _hits(outcome: SearchOutcome, stem_in: StemIn) -> Iterator[EvidenceHit]:
    read = (hit for hit in outcome.hits if hit.facts is not None)
    for hit, _ in zip(read, range(MAX_HITS), strict=False):
        yield _hit(hit, outcome, stem_in)


def _hit(hit: Hit, outcome: SearchOutcome, stem_in: StemIn) -> EvidenceHit:
    chunk = hit.chunk
    connection = outcome.state.scope.inclusion(chunk.connection_id).connection
    stem = stem_in(connection.language)
    return EvidenceHit(
        chunk_id=hit.chunk_id,
        title=highlight(chunk.title, [match.lexeme for match in hit.matches], stem=stem),
        trail=chunk.heading_path,
        snippet=snippet(chunk.text, hit.matches, stem=stem),
        source=connection.name,
        source_type=chunk.source_type,
        place=wording.place(chunk, chunk.source_type),
        score=f"{hit.score:.3f}",
        badges=hit_badges(hit),
    )
