"""`manage.py preview PATH`: what a folder would become, without taking it in."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from tqdm import tqdm

from corecube.commands import DatabaseCommand
from corecube.connectors import ItemProblem
from corecube.connectors.folder import FolderConnector
from corecube.errors import CoreCubeError
from retrieval.index import active
from retrieval.ingest.preparation import Preparation
from retrieval.ingest.preview import PreviewedFile, preview, summaries
from retrieval.ingest.reasons import advice
from retrieval.text.document import CHUNK_PROFILES


class Command(DatabaseCommand):
    """Parse and chunk a folder; print a table by type and the files that are refused."""

    help = "Show what a folder would become: files, chunks and tokens by type, and what is refused. Stores nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", type=Path)
        parser.add_argument("--profile", choices=list(CHUNK_PROFILES), default="default", help="sizes of the chunks")

    def handle(self, *_: Any, **options: Any) -> None:
        connector = FolderConnector(options["path"].expanduser().absolute(), settings.CORECUBE_MAX_FILE_BYTES)
        try:
            connector.check()
            how = Preparation(limits=CHUNK_PROFILES[options["profile"]], tokenizer=active.encoder().tokenizer_file)
            found = preview(connector, how=how)
            results = list(tqdm(found, unit=" files", disable=None, file=self.stderr))
        except CoreCubeError as error:
            raise CommandError(str(error)) from error
        self._report([it for it in results if isinstance(it, PreviewedFile)])
        for problem in results:
            if isinstance(problem, ItemProblem):
                words = f"refused: {problem.external_id}: {problem.reason}: {problem.message} {advice(problem.reason)}"
                self.stdout.write(words.rstrip())

    def _report(self, files: list[PreviewedFile]) -> None:
        self.stdout.write("| type | files | chunks | median tokens | most tokens | seconds |")
        self.stdout.write("| --- | --- | --- | --- | --- | --- |")
        for row in summaries(files):
            numbers = f"{row.files:,} | {row.chunks:,} | {row.median_tokens:.0f} | {row.max_tokens:,}"
            self.stdout.write(f"| {row.source_type} | {numbers} | {row.seconds:.1f} |")
