"""A preview of a folder: its files are parsed and chunked, but neither embedded nor stored."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from statistics import median
from time import perf_counter

from corecube.connectors.types import Connector, ItemError, ItemProblem
from retrieval.errors import IngestError
from retrieval.ingest.parsing import prepare_limited
from retrieval.ingest.preparation import Preparation, PreparedText
from retrieval.text.document import RawDocument


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
