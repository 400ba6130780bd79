"""`manage.py encodings`: the vectors of sentences, and the sparse and token vectors of optional models."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from corecube.commands import DatabaseCommand, connections_named
from corecube.models import Connection
from retrieval.encoders.embedders import sparse_encoder, token_encoder
from retrieval.index.encodings import Encodings, count_encodings, drop_encodings
from retrieval.ingest.encodings import fill_encodings, local_encoder
from retrieval.models import Chunk


class Command(DatabaseCommand):
    """Show, build or drop the vectors of sentences, and the sparse and token vectors of the configured models."""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", choices=("build", "drop", "status"), nargs="?", default="status")
        parser.add_argument("--connection", metavar="SLUG", help="only this connection (default: all)")

    def handle(self, *_: Any, **options: Any) -> None:
        act = {"build": self._build, "drop": self._drop, "status": self._show}[options["action"]]
        for connection in connections_named(options["connection"]):
            act(connection)

    def _build(self, connection: Connection) -> None:
        with self.bar("chunks") as bar:
            made = fill_encodings(connection.pk, bar.update)
        if not made:
            raise CommandError(
                "No model on this machine makes any: sentences need a local embedding model, the others"
                " CORECUBE_SPARSE_MODEL or CORECUBE_TOKEN_MODEL."
            )
        self.stdout.write(f"{connection.slug}: " + ", ".join(f"{count} {kind}" for kind, count in made.items()))

    def _drop(self, connection: Connection) -> None:
        for kind in Encodings:
            self.stdout.write(f"{connection.slug}: {drop_encodings(kind, connection.pk)} {kind.value} dropped")

    def _show(self, connection: Connection) -> None:
        chunks = Chunk.objects.filter(connection_id=connection.pk).count()
        models = {
            Encodings.SENTENCES: local_encoder(),
            Encodings.SPARSE: sparse_encoder(),
            Encodings.TOKENS: token_encoder(),
        }
        for kind, model in models.items():
            if model is None:
                self.stdout.write(f"{connection.slug}: no model for {kind.value} vectors is configured")
                continue
            count = count_encodings(kind, connection.pk, model_key=kind.key(model))
            self.stdout.write(f"{connection.slug}: {count} of {chunks} chunks have {kind.value} by {model.name}")
