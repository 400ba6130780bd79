"""`manage.py preview PATH`: show the result of an ingest without storing anything."""

from argparse import ArgumentParser
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from django.conf import settings
from tqdm import tqdm

from corecube.commands import DatabaseCommand
from corecube.connectors.folder import FolderConnector
from corecube.connectors.types import Connector, ItemError, ItemProblem
from retrieval.errors import IngestError
from retrieval.index import active
from retrieval.ingest.parsing import prepare_limited
from retrieval.ingest.preparation import Preparation, PreparedText
from retrieval.ingest.problems import advice
from retrieval.text.document import CHUNK_PROFILES, RawDocument


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


@dataclass(frozen=True, slots=True)
class PreviewedFile:
    """One file that would be indexed."""

    external_id: str
    source_type: str
    tokens: tuple[int, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class TypeSummary:
    """The files of one canonical source type."""

    source_type: str
    files: int
    chunks: int
    median_tokens: float
    max_tokens: int
    seconds: float


def preview(
    connector: Connector,
    *,
    how: Preparation,
    prepare: Callable[[RawDocument, Preparation], PreparedText] = prepare_limited,
) -> Iterator[PreviewedFile | ItemProblem]:
    """Yield the result for each item of a source, or why it would be refused."""
    for item in connector.items():
        if isinstance(item, ItemProblem):
            yield item
            continue
        started = perf_counter()
        try:
            document = prepare(RawDocument(item.name, connector.read(item), item.media_type), how)
        except (ItemError, IngestError) as error:
            yield ItemProblem(item.external_id, error.reason, str(error))
            continue
        tokens = tuple(chunk.draft.token_count for chunk in document.chunks)
        yield PreviewedFile(item.external_id, document.source_type, tokens, perf_counter() - started)


def summaries(files: Iterable[PreviewedFile]) -> list[TypeSummary]:
    """Return a summary for each source type, by name."""
    by_type: dict[str, list[PreviewedFile]] = defaultdict(list)
    for file in files:
        by_type[file.source_type].append(file)
    found = []
    for source_type, members in sorted(by_type.items()):
        tokens = [count for file in members for count in file.tokens]
        seconds = sum(file.seconds for file in members)
        found.append(TypeSummary(source_type, len(members), len(tokens), median(tokens), max(tokens), seconds))
    return found
