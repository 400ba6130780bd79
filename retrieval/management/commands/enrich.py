"""`manage.py enrich --connection X`: have a model add to a connection's chunks."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from tqdm import tqdm

from corecube.commands import DatabaseCommand
from corecube.errors import CoreCubeError
from corecube.models import Connection
from retrieval.ingest.enrich.cost import Estimate
from retrieval.ingest.enrich.services import Pass, enrich, estimate_pass, remove_enrichment


class Command(DatabaseCommand):
    """Show what a pass would cost; run one after a word of consent."""

    help = "Let a model write context or questions for the chunks of a connection."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--connection", metavar="SLUG", required=True)
        parser.add_argument(
            "--chunks", type=int, metavar="N", help="chunks at the most (default: the ceiling of a pass)"
        )
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--estimate", action="store_true", help="only tell what a pass would cost")
        what.add_argument("--yes", action="store_true", help="run without asking")
        what.add_argument("--remove", action="store_true", help="take away what was written")

    def handle(self, *_: Any, **options: Any) -> None:
        connection = Connection.objects.filter(slug=options["connection"]).first()
        if connection is None:
            raise CommandError(f"There is no connection {options['connection']!r}.")
        try:
            if options["remove"]:
                self.stdout.write(f"{connection.name}: removed from {remove_enrichment(connection)} chunks.")
                return
            cost = estimate_pass(connection, limit=options["chunks"])
            self.stdout.write(f"{connection.name}: {_told(cost)}")
            if options["estimate"] or not cost.chunks:
                return
            if not options["yes"] and input("Run it? [y/N] ").strip().lower() not in {"y", "yes"}:
                return
            self._run(connection, options["chunks"])
        except CoreCubeError as error:
            raise CommandError(str(error)) from error

    def _run(self, connection: Connection, limit: int | None) -> None:
        with tqdm(unit=" chunks", disable=None, file=self.stderr) as bar:

            def progress(done: int, of: int) -> None:
                bar.total = of
                bar.update(done - bar.n)

            result = enrich(connection, limit=limit, progress=progress)
        self.stdout.write(f"{connection.name}: {_outcome(result)}")


def _told(cost: Estimate) -> str:
    price = "no price configured" if cost.price is None else f"about {cost.price:.4f} at the configured price"
    here = f"; questions for {cost.written_here} by the model on this machine" if cost.written_here else ""
    return (
        f"{cost.waiting} chunks wait; a pass takes {cost.chunks} in {cost.requests} requests: about {cost.tokens_sent}"
        f" tokens sent, {cost.tokens_answered} answered; {price}{here}."
    )


def _outcome(result: Pass) -> str:
    failed = f"; {result.failed} failed and stay as they are: {result.message}" if result.failed else ""
    return f"{result.enriched} chunks enriched{failed}"
