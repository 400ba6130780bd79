"""`manage.py evidence SET --user NAME`: evidence for the sections of a report, with the access of that user."""

from argparse import ArgumentParser
from typing import Any, Final

from corecube.access import Principal, user_named
from corecube.commands import DatabaseCommand
from retrieval.presets.consolidated.evidence.recovery import Cell, Presence
from retrieval.search.evidence_runs import PRESET, Evidence, EvidenceRequest, SectionEvidence, gather, lines_of
from retrieval.search.section_sets import DEFAULT_SECTION_SET

_BEST_HITS: Final = 3
_MARKS: Final = {
    Presence.FOUND: "{count}",
    Presence.RECOVERED: "{count} (recovered {recovered})",
    Presence.THIN: "{count} (too few)",
    Presence.MISSING: "missing",
    Presence.NOT_LOOKED_FOR: "not searched",
    Presence.OPTIONAL: "({count})",
    Presence.NONE: "",
}


class Command(DatabaseCommand):
    """Gather evidence for the sections of a report with a user's access. Counts of optional types are in ()."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("section_set", nargs="?", default=DEFAULT_SECTION_SET, metavar="SET")
        parser.add_argument("--preset", default=PRESET, help="this preset (the default) or its reference version")
        parser.add_argument("--section", default="", help="one section of the set (default: all, in order)")
        parser.add_argument("--subject", default="", help="subject of the report")
        parser.add_argument("--user", required=True, help="the user whose access applies")
        parser.add_argument(
            "--compartment", action="append", default=[], metavar="SLUG", help="only this one; can be repeated"
        )
        parser.add_argument("--budget", type=float, metavar="SECONDS", help="time for all sections together")

    def handle(self, *_: Any, **options: Any) -> None:
        request = EvidenceRequest(
            preset=options["preset"],
            section_set=options["section_set"],
            section=options["section"],
            subject=options["subject"],
            compartments=tuple(options["compartment"]),
            budget_seconds=options["budget"],
        )
        evidence = gather(request, principal=Principal(user_named(options["user"])))
        self._matrix(evidence)
        for found in evidence.sections:
            self._best(found)

    def _matrix(self, evidence: Evidence) -> None:
        seen = {name for _, row in _rows(evidence) for name, cell in row if cell.presence is not Presence.NONE}
        columns = [name for name in evidence.source_types if name in seen]
        self.stdout.write(f"| section | {' | '.join((*columns, 'seconds'))} |")
        self.stdout.write("| --- " * (len(columns) + 2) + "|")
        for found, row in _rows(evidence):
            cells = [
                _MARKS[cell.presence].format(count=cell.count, recovered=cell.recovered)
                for name, cell in row
                if name in columns
            ]
            seconds = f"{found.outcome.seconds:.2f}" if found.outcome else found.code
            self.stdout.write(f"| {' | '.join((found.section.name, *cells, seconds))} |")

    def _best(self, found: SectionEvidence) -> None:
        self.stdout.write(f"\n{found.section.title}")
        if found.outcome is None:
            self.stdout.write(f"  {found.problem}")
            return
        for hit in found.outcome.hits[:_BEST_HITS]:
            self.stdout.write(f"  {hit.score:.3f}  {hit.chunk.source_type}  {hit.chunk.title}  {hit.chunk_id}")
        if degraded := found.outcome.state.degraded:
            self.stdout.write(f"  degraded: {', '.join(degraded)}")


def _rows(evidence: Evidence) -> list[tuple[SectionEvidence, list[tuple[str, Cell]]]]:
    """Return the matrix row by row, each cell with its source type."""
    return [(found, list(zip(evidence.source_types, row, strict=True))) for found, row in lines_of(evidence)]
