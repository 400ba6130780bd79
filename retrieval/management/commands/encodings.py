"""Look at what optional models made of chunks, or make what is missing."""

from typing import Any

from django.core.management.base import CommandError, CommandParser
from tqdm import tqdm

from corecube.commands import DatabaseCommand
from corecube.errors import CoreCubeError
from corecube.models import Connection
from retrieval.encoders.encodings import key_of, sparse_encoder, token_encoder
from retrieval.index.encodings import Encodings, count_encodings, drop_encodings
from retrieval.ingest.encodings import fill_encodings
from retrieval.models import Chunk


class Command(DatabaseCommand):
    """`encodings status` counts, `encodings build` makes what is missing, `encodings drop` takes all of it away."""

    help = "Show, build or drop the sparse vectors and token vectors of the models that the settings name."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", choices=("build", "drop", "status"), nargs="?", default="status")
        parser.add_argument("--connection", metavar="SLUG", help="only this connection; all of them unless it is said")

    def handle(self, *_: Any, **options: Any) -> None:
        connections = Connection.objects.order_by("slug")
        if options["connection"]:
            connections = connections.filter(slug=options["connection"])
            if not connections:
                raise CommandError(f"There is no connection {options['connection']!r}.")
        act = {"build": self._build, "drop": self._drop, "status": self._show}[options["action"]]
        try:
            for connection in connections:
                act(connection)
        except CoreCubeError as error:
            raise CommandError(str(error)) from error

    def _build(self, connection: Connection) -> None:
        with tqdm(unit=" chunks", disable=None, file=self.stderr, leave=False) as bar:
            made = fill_encodings(connection.pk, bar.update)
        if not made:
            raise CommandError("No model is chosen: set CORECUBE_SPARSE_MODEL or CORECUBE_TOKEN_MODEL.")
        self.stdout.write(f"{connection.slug}: " + ", ".join(f"{count} {kind}" for kind, count in made.items()))

    def _drop(self, connection: Connection) -> None:
        for kind in Encodings:
            self.stdout.write(f"{connection.slug}: {drop_encodings(kind, connection.pk)} {kind.value} dropped")

    def _show(self, connection: Connection) -> None:
        chunks = Chunk.objects.filter(connection_id=connection.pk).count()
        for kind, model in ((Encodings.SPARSE, sparse_encoder()), (Encodings.TOKENS, token_encoder())):
            if model is None:
                self.stdout.write(f"{connection.slug}: no model of {kind.value} vectors is chosen")
                continue
            count = count_encodings(kind, connection.pk, model_key=key_of(model))
            self.stdout.write(f"{connection.slug}: {count} of {chunks} chunks have {kind.value} by {model.name}")
