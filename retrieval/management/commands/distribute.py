"""`manage.py distribute`: the documents on several machines."""

from typing import Any

from django.core.management.base import CommandParser

from corecube.commands import DatabaseCommand
from retrieval.index.distribution import distribute, undo


class Command(DatabaseCommand):
    """Distribute the documents over the machines of a Citus cluster, or take them back. Installs nothing.

    Stop the workers and the web server first, and start them afterwards.
    """

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--shards", type=int, metavar="N", help="shards of each table (default: 2 for each worker)")
        parser.add_argument("--dry-run", action="store_true", help="only show what would be moved")
        parser.add_argument("--undo", action="store_true", help="move everything back to the coordinator")

    def handle(self, *_: Any, **options: Any) -> None:
        if options["undo"]:
            undo(is_dry=options["dry_run"], report=self.stdout.write)
        else:
            distribute(shards=options["shards"], is_dry=options["dry_run"], report=self.stdout.write)
