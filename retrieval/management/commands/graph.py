"""Look at the graph of names, or make it anew."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from corecube.commands import DatabaseCommand
from corecube.models import Connection
from retrieval.index.common_mentions import count_common
from retrieval.index.graph_writer import fill_graph, forget_graph, graph_status


class Command(DatabaseCommand):
    """`graph status` says how much of each connection is in the graph, `graph build` reads what is missing."""

    help = "Show or build the graph of names by which documents lead to each other."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", choices=("build", "status"), nargs="?", default="status")
        parser.add_argument("--connection", metavar="SLUG", help="only this connection; all of them unless it is said")
        parser.add_argument("--anew", action="store_true", help="with build: forget what there is, and read everything")

    def handle(self, *_: Any, **options: Any) -> None:
        connections = Connection.objects.order_by("slug")
        if options["connection"]:
            connections = connections.filter(slug=options["connection"])
            if not connections:
                raise CommandError(f"There is no connection {options['connection']!r}.")
        for connection in connections:
            if options["action"] == "build":
                self._build(connection, anew=options["anew"])
            else:
                self._show(connection)

    def _build(self, connection: Connection, *, anew: bool) -> None:
        if anew:
            forget_graph(connection.pk)
        filled = fill_graph(connection.pk)
        count_common(connection.pk)
        self.stdout.write(f"{connection.slug}: {filled} documents read.")

    def _show(self, connection: Connection) -> None:
        status = graph_status(connection.pk)
        self.stdout.write(
            f"{connection.slug}: {status.read} of {status.chunks} chunks read, {status.names} names of documents,"
            f" {status.keys} keys in texts, {status.stated} stated links."
        )
