"""`manage.py enrich --connection X`: let a model add context or questions to a connection's chunks."""

from argparse import ArgumentParser
from typing import Any

from corecube.commands import DatabaseCommand, connections_named
from corecube.models import Connection
from retrieval.ingest.enrich.services import Estimate, enrich, estimate_pass, remove_enrichment


class Command(DatabaseCommand):
    """Let a model write context or questions for the chunks of a connection."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--connection", metavar="SLUG", required=True)
        parser.add_argument("--chunks", type=int, metavar="N", help="maximum (default: the limit of a run)")
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--estimate", action="store_true", help="only show the cost")
        what.add_argument("--yes", action="store_true", help="run without confirmation")
        what.add_argument("--remove", action="store_true", help="delete what a model added")

    def handle(self, *_: Any, **options: Any) -> None:
        (connection,) = connections_named(options["connection"])
        if options["remove"]:
            self.stdout.write(f"{connection.name}: removed from {remove_enrichment(connection)} chunks.")
            return
        cost = estimate_pass(connection, limit=options["chunks"])
        self.stdout.write(f"{connection.name}: {_cost_line(cost)}")
        if options["estimate"] or not cost.chunks:
            return
        if not options["yes"] and input("Run it? [y/N] ").strip().lower() not in {"y", "yes"}:
            return
        self._run(connection, options["chunks"])

    def _run(self, connection: Connection, limit: int | None) -> None:
        with self.bar("chunks", leave=True) as bar:

            def progress(done: int, of: int) -> None:
                bar.total = of
                bar.update(done - bar.n)

            result = enrich(connection, limit=limit, progress=progress)
        failed = f"; {result.failed} failed and are unchanged: {result.message}" if result.failed else ""
        self.stdout.write(f"{connection.name}: {result.enriched} chunks enriched{failed}")


def _cost_line(cost: Estimate) -> str:
    price = "no price configured" if cost.price is None else f"about {cost.price:.4f} at the configured price"
    here = f"; questions for {cost.written_here} by the model on this machine" if cost.written_here else ""
    return (
        f"{cost.waiting} chunks are waiting; this run: {cost.chunks} chunks in {cost.requests} requests, about"
        f" {cost.tokens_sent} input tokens and {cost.tokens_answered} output tokens; {price}{here}."
    )
