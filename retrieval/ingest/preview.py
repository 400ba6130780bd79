"""What a folder would become: parsed and chunked, neither embedded nor stored."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter

from corecube.connectors import ItemError, ItemProblem, SourceItem
from corecube.connectors.types import Connector
from retrieval.errors import IngestError
from retrieval.ingest.parsing import prepare_limited
from retrieval.ingest.preparation import Preparation, PreparedText
from retrieval.text.document import RawDocument


@dataclass(frozen=True, slots=True)
class PreviewedFile:
    """One file that would get in."""

    external_id: str
    source_type: str
    #: Tokens of each of its chunks.
    tokens: tuple[int, ...]
    #: Of reading, parsing and preparing.
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
    """Yield what each item of a source would become, or why it would be refused."""
    for item in connector.items():
        if isinstance(item, ItemProblem):
            yield item
            continue
        try:
            yield _previewed(item, connector, lambda raw: prepare(raw, how))
        except (ItemError, IngestError) as error:
            yield ItemProblem(item.external_id, error.reason, str(error))


def summaries(files: Iterable[PreviewedFile]) -> list[TypeSummary]:
    """Return a summary for each source type, by name."""
    by_type: dict[str, list[PreviewedFile]] = defaultdict(list)
    for file in files:
        by_type[file.source_type].append(file)
    return [_summary(source_type, found) for source_type, found in sorted(by_type.items())]


def _previewed(
    item: SourceItem,
    connector: Connector,
    prepare: Callable[[RawDocument], PreparedText],
) -> PreviewedFile:
    started = perf_counter()
    document = prepare(RawDocument(item.name, connector.read(item), item.media_type))
    tokens = tuple(chunk.draft.token_count for chunk in document.chunks)
    return PreviewedFile(item.external_id, document.source_type, tokens, perf_counter() - started)


def _summary(source_type: str, files: Sequence[PreviewedFile]) -> TypeSummary:
    tokens = [count for file in files for count in file.tokens]
    return TypeSummary(
        source_type=source_type,
        files=len(files),
        chunks=len(tokens),
        median_tokens=median(tokens),
        max_tokens=max(tokens),
        seconds=sum(file.seconds for file in files),
    )
