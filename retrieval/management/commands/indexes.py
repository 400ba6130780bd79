"""`manage.py indexes`: embedding indexes and the switch to another embedding model without downtime."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from corecube.commands import DatabaseCommand
from corecube.database import first_or
from retrieval.index.embedding_index import all_indexes, clear_dropped, progress
from retrieval.index.scans import ScanChoice
from retrieval.ingest import indexes
from retrieval.ingest.reindex import build_index
from retrieval.ingest.versions import ingest_version, older_documents
from retrieval.models import EmbeddingIndex


class Command(DatabaseCommand):
    """Show embedding indexes, build one with another model, switch to it and back."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, metavar="status|start|build|switch|rollback|drop")
        actions.add_parser("status", help="every index: model, state, chunks, rate, time left")
        start = actions.add_parser("start", help="add an index to the active one")
        start.add_argument("--model", default="", help="folder of a local model (default: the configured model)")
        start.add_argument("--dimensions", type=int, default=0, help="dimensions to store (default: all)")
        start.add_argument("--next", action="store_true", help="the service that CORECUBE_NEXT_EMBEDDER describes")
        start.add_argument("--mode", choices=[*EmbeddingIndex.Mode.values], default="", help="default: as configured")
        start.add_argument(
            "--scan", choices=[*EmbeddingIndex.Scan.values], default="halfvec", help="vectors of the index scan"
        )
        start.add_argument("--scan-dimensions", type=int, default=0, help="dimensions of a prefix")
        start.add_argument("--oversample", type=float, default=0.0, help="candidates per hit (default: the scan's)")
        start.add_argument("--wait", action="store_true", help="build it here instead of in a worker")
        build = actions.add_parser("build", help="build the incomplete index here; resumes a stopped build")
        build.add_argument("index", type=int, nargs="?", help="default: the one that is building")
        switch = actions.add_parser("switch", help="search with the complete index from now on")
        switch.add_argument("index", type=int, nargs="?", help="default: the one that is building")
        actions.add_parser("rollback", help="search with the previous index again")
        actions.add_parser("drop", help="delete an index that is not active").add_argument("index", type=int)

    def handle(self, *_: Any, **options: Any) -> None:
        getattr(self, f"_{options['action']}")(options)

    def _status(self, _: dict[str, Any]) -> None:
        self.stdout.write(_row("index", "state", "model", "dim", "mode", "scan", "chunks", "per second", "time left"))
        for row in all_indexes():
            self.stdout.write(_described(row))
            if row.problem:
                self.stdout.write(f"      {row.problem}")
            if not row.pools_windows:
                self.stdout.write("      Long chunks are cut in it; its next build embeds them as a whole.")
        older = older_documents()
        counts = ", ".join(f"{it.slug} {it.documents}" for it in older)
        self.stdout.write(f"Ingestion version {ingest_version()}. Documents of earlier versions: {counts or 'none'}.")
        if older:
            self.stdout.write("They stay searchable until a full sync of their connection replaces them.")

    def _start(self, options: dict[str, Any]) -> None:
        choice = indexes.chosen(model=options["model"], dim=options["dimensions"], next_service=options["next"])
        scan = ScanChoice(options["scan"], options["scan_dimensions"], options["oversample"])
        row = indexes.start_index(choice, actor=None, mode=options["mode"], scan=scan, queue=not options["wait"])
        self.stdout.write(f"Embedding index {row.pk} with {row.model}, {row.dim} dimensions.")
        if options["wait"]:
            self._build({"index": row.pk})

    def _build(self, options: dict[str, Any]) -> None:
        clear_dropped()
        row = _chosen(options["index"])
        if not build_index(row, report=self._report):
            raise CommandError("Another process is building it, or it was dropped.")
        self.stdout.write(f"Embedding index {row.pk} is complete.")

    def _switch(self, options: dict[str, Any]) -> None:
        row = indexes.switch_to(_chosen(options["index"]), actor=None)
        self.stdout.write(f"Searches use embedding index {row.pk} with {row.model}, {row.dim} dimensions.")

    def _rollback(self, _: dict[str, Any]) -> None:
        row = indexes.roll_back(actor=None)
        self.stdout.write(f"Searches use embedding index {row.pk} with {row.model}, {row.dim} dimensions again.")

    def _drop(self, options: dict[str, Any]) -> None:
        indexes.drop(_chosen(options["index"]), actor=None)
        self.stdout.write(f"Embedding index {options['index']} is deleted.")

    def _report(self, row: EmbeddingIndex) -> None:
        if (now := EmbeddingIndex.objects.filter(pk=row.pk).first()) is not None:
            self.stderr.write(_described(now), str)


def _chosen(pk: int | None) -> EmbeddingIndex:
    """Return the index with that number; without a number, the one that is building."""
    rows = EmbeddingIndex.objects.filter(pk=pk) if pk else EmbeddingIndex.objects.filter(status="building")
    problem = f"There is no embedding index {pk}." if pk else "No embedding index is building."
    return first_or(CommandError(problem), rows)


def _described(row: EmbeddingIndex) -> str:
    built = progress(row)
    left = "" if built.seconds_left is None else f"{built.seconds_left:.0f} s"
    rate = f"{built.rate:.0f}" if built.rate else ""
    scan = f"{row.scan} {row.scan_dim}" if row.scan_dim else row.scan
    state = "complete" if row.status == EmbeddingIndex.Status.BUILDING and not built.missing else row.status
    return _row(row.pk, state, row.model, row.dim, row.mode, scan, f"{built.done}/{built.chunks}", rate, left)


def _row(*cells: object) -> str:
    widths = (6, 9, 28, 5, 11, 11, 17, 10, 0)
    return " ".join(f"{cell!s:<{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip()
