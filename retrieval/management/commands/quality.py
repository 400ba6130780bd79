"""`manage.py quality`: the chunks that the quality filter would drop."""

from argparse import SUPPRESS, ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from corecube.commands import DatabaseCommand, connections_named
from retrieval.operations.quality_preview import live_minimum, preview


class Command(DatabaseCommand):
    """Show the chunks that the quality filter would drop, by connection, the lowest first."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--connection", metavar="SLUG", help="only this one (default: all)")
        parser.add_argument("--minimum", type=float, metavar="X", help="threshold from 0 to 1 (default: the live one)")
        parser.add_argument("--least", dest="minimum", type=float, help=SUPPRESS)  # the former name
        parser.add_argument("--limit", type=int, default=20, metavar="N", help="chunks per connection (default: 20)")

    def handle(self, *_: Any, **options: Any) -> None:
        minimum = live_minimum() if options["minimum"] is None else options["minimum"]
        if not 0 <= minimum <= 1:
            raise CommandError("--minimum must be between 0 and 1.")
        if options["limit"] < 0:
            raise CommandError("--limit must be 0 or more.")
        for connection in connections_named(options["connection"]):
            found = preview(connection, minimum=minimum, limit=options["limit"])
            self.stdout.write(f"{found.slug}: {found.dropped} of {found.chunks} chunks below {found.minimum:g}")
            for it in found.lowest:
                parts = ", ".join(f"{name} {share:.2f}" for name, share in it.parts.items())
                self.stdout.write(f"  {it.quality:.2f}  {it.title} #{it.ordinal} ({parts}): {it.beginning}")
