"""`manage.py graph`: the graph of names that link documents."""

from typing import Any

from django.core.management.base import CommandParser

from corecube.commands import DatabaseCommand, connections_named
from retrieval.index.graph_writer import count_common, fill_graph, forget_graph, graph_status


class Command(DatabaseCommand):
    """Show or build the graph of names that link documents."""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", choices=("build", "status"), nargs="?", default="status")
        parser.add_argument("--connection", metavar="SLUG", help="only this connection (default: all)")
        parser.add_argument("--anew", action="store_true", help="with build: delete the graph first")

    def handle(self, *_: Any, **options: Any) -> None:
        for connection in connections_named(options["connection"]):
            if options["action"] == "build":
                if options["anew"]:
                    forget_graph(connection.pk)
                filled = fill_graph(connection.pk)
                count_common(connection.pk)
                self.stdout.write(f"{connection.slug}: {filled} documents read.")
            else:
                status = graph_status(connection.pk)
                self.stdout.write(
                    f"{connection.slug}: {status.read} of {status.chunks} chunks read, {status.names} names of"
                    f" documents, {status.keys} keys in texts, {status.stated} stated links."
                )
