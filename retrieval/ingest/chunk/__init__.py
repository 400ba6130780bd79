"""Chunkers, chosen by source type. A new strategy is one module and its line in the registry."""

from collections.abc import Callable, Mapping
from typing import Final

from retrieval.ingest.chunk.headings import heading_chunks
from retrieval.ingest.chunk.plain import plain_chunks
from retrieval.ingest.types import ChunkDraft, ChunkLimits, ParsedDocument, TokenCounter

Chunker = Callable[[ParsedDocument, TokenCounter, ChunkLimits], tuple[ChunkDraft, ...]]

_CHUNKERS: Final[Mapping[str, Chunker]] = {
    "markdown": heading_chunks,
    "html": heading_chunks,
    "docx": heading_chunks,
    "pdf": plain_chunks,
    "text": plain_chunks,
}


def chunk(document: ParsedDocument, counter: TokenCounter, limits: ChunkLimits) -> tuple[ChunkDraft, ...]:
    """Return the document's chunks by the strategy of its source type, by paragraphs for a type without one."""
    return _CHUNKERS.get(document.source_type, plain_chunks)(document, counter, limits)


__all__ = ["chunk"]
