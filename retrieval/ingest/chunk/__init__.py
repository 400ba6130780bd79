"""Parsed documents to chunks. A new strategy is one function and one entry in the registry."""

from collections.abc import Callable, Mapping
from typing import Final

from retrieval.ingest.chunk.by_code import chunk_by_code
from retrieval.ingest.chunk.by_heading import chunk_by_heading, chunk_by_item
from retrieval.ingest.chunk.by_record import chunk_by_record
from retrieval.ingest.chunk.fixed import chunk_by_paragraph, chunk_fixed
from retrieval.ingest.chunk.pack import Room
from retrieval.ingest.chunk.parents import with_parents
from retrieval.text.document import ChunkDraft, ChunkLimits, ParsedDocument, TokenCounter

__all__ = ["chunk"]

Chunker = Callable[[ParsedDocument, TokenCounter, Room], tuple[ChunkDraft, ...]]

_CHUNKERS: Final[Mapping[str, Chunker]] = {
    "code": chunk_by_code,
    "json": chunk_by_record,
    **dict.fromkeys(("markdown", "html", "notebook", "rst", "docx", "pptx", "epub", "email"), chunk_by_heading),
    **dict.fromkeys(("feed", "excel", "csv"), chunk_by_item),
    "pdf": chunk_by_paragraph,
    "text": chunk_fixed,
}


def chunk(document: ParsedDocument, counter: TokenCounter, limits: ChunkLimits) -> tuple[ChunkDraft, ...]:
    """Return the document's chunks in reading order, with ordinals from 0.

    No chunk is empty or has more than `limits.limit` tokens or `limits.max_characters`, and every word of the document
    is in a chunk's text or heading path. Source types without a strategy are chunked by paragraphs. Token counts are
    sums of counts per block, each block tokenised once; for a tokenizer that joins blocks they are close estimates.
    """
    room = Room(
        target=limits.target, limit=limits.limit, overlap=limits.overlap, separator=len(counter.token_spans("\n\n"))
    )
    drafts = _CHUNKERS.get(document.source_type, chunk_by_paragraph)(document, counter, room)
    return with_parents(drafts, limits.section)
