"""Parsed documents to chunks. A new strategy is one function and one entry in the registry."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from retrieval.ingest.chunk.by_code import chunk_by_code
from retrieval.ingest.chunk.by_heading import chunk_by_heading, chunk_by_item, chunk_by_paragraph, chunk_text
from retrieval.ingest.chunk.by_record import chunk_by_record
from retrieval.ingest.chunk.merging import filled
from retrieval.ingest.chunk.pack import Room
from retrieval.text.document import ChunkDraft, ChunkLimits, ParsedDocument, TokenCounter

__all__ = ["chunk"]

Chunker = Callable[[ParsedDocument, TokenCounter, Room], tuple[ChunkDraft, ...]]

_CHUNKERS: Final[Mapping[str, Chunker]] = {
    "code": chunk_by_code,
    "json": chunk_by_record,
    **dict.fromkeys(("markdown", "html", "notebook", "rst", "docx", "pptx", "epub", "email", "pdf"), chunk_by_heading),
    **dict.fromkeys(("feed", "excel", "csv"), chunk_by_item),
    "text": chunk_text,
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


def with_parents(drafts: Sequence[ChunkDraft], max_tokens: int) -> tuple[ChunkDraft, ...]:
    """Return the chunks with the first and the last ordinal of their parent section.

    A section is all text under one heading path, including subsections; a chunk's parent is the largest section of at
    most `max_tokens` tokens. If a single heading has more, its chunks fill several parents one after the other. Parents
    do not overlap: all chunks of a parent have the same one.
    """
    bounds = {
        draft.ordinal: (section[0].ordinal, section[-1].ordinal)
        for section in _sections(list(drafts), 0, max_tokens)
        for draft in section
    }
    return tuple(
        replace(draft, section_start=bounds[draft.ordinal][0], section_end=bounds[draft.ordinal][1]) for draft in drafts
    )


def _sections(run: list[ChunkDraft], depth: int, max_tokens: int) -> Iterator[list[ChunkDraft]]:
    if sum(draft.token_count for draft in run) <= max_tokens:
        yield run
    elif all(len(draft.heading_path) <= depth for draft in run):
        yield from filled(run, lambda draft: draft.token_count, max_tokens)
    else:
        for _, below in groupby(run, key=lambda draft: draft.heading_path[: depth + 1]):
            yield from _sections(list(below), depth + 1, max_tokens)
