"""`manage.py preview PATH`: show the result of an ingest without storing anything."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from tqdm import tqdm

from corecube.commands import DatabaseCommand
from corecube.connectors.folder import FolderConnector
from corecube.connectors.types import ItemProblem
from retrieval.index import active
from retrieval.ingest.preparation import Preparation
from retrieval.ingest.preview import PreviewedFile, preview, summaries
from retrieval.ingest.problems import advice
from retrieval.text.document import CHUNK_PROFILES


class Command(DatabaseCommand):
    """Show files, chunks and tokens of a folder by type, and the rejected files. Stores nothing."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", type=Path)
        parser.add_argument("--profile", choices=list(CHUNK_PROFILES), default="default", help="sizes of the chunks")

    def handle(self, *_: Any, **options: Any) -> None:
        connector = FolderConnector(options["path"].expanduser().absolute(), settings.CORECUBE_MAX_FILE_BYTES)
        connector.check()
        how = Preparation(limits=CHUNK_PROFILES[options["profile"]], tokenizer=active.encoder().tokenizer_file)
        found = preview(connector, how=how)
        results = list(tqdm(found, unit=" files", disable=None, file=self.stderr))
        self.stdout.write("| type | files | chunks | median tokens | max tokens | seconds |")
        self.stdout.write("| --- | --- | --- | --- | --- | --- |")
        for row in summaries([it for it in results if isinstance(it, PreviewedFile)]):
            numbers = f"{row.files:,} | {row.chunks:,} | {row.median_tokens:.0f} | {row.max_tokens:,}"
            self.stdout.write(f"| {row.source_type} | {numbers} | {row.seconds:.1f} |")
        for problem in results:
            if isinstance(problem, ItemProblem):
                text = f"rejected: {problem.external_id}: {problem.reason}: {problem.message} {advice(problem.reason)}"
                self.stdout.write(text.rstrip())
