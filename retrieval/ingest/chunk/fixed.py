"""Chunks without sections: packed paragraphs, or a fixed size with overlap for text without structure."""

from typing import Final

from retrieval.ingest.chunk.draft import Draft, merge_small, written
from retrieval.ingest.chunk.fitting import fitting_pieces, sources
from retrieval.ingest.chunk.pack import Room, pack
from retrieval.ingest.chunk.spans import split, tokenised
from retrieval.text.document import ChunkDraft, ParsedDocument, TokenCounter

#: A sentence of more than a fourth of the target is split at a word, so that chunks are filled.
_SENTENCE_SHARE: Final = 4


def chunk_by_paragraph(document: ParsedDocument, counter: TokenCounter, room: Room) -> tuple[ChunkDraft, ...]:
    """Return neighbouring paragraphs packed to the target, with their pages."""
    pieces = [piece for source in sources(document.blocks, counter, room) for piece in fitting_pieces(source, room)]
    drafts = [Draft((), packed.own, packed.repeated) for packed in pack(pieces, room, balanced=True)]
    return written(merge_small(drafts, room), room, document.title)


def chunk_fixed(document: ParsedDocument, counter: TokenCounter, room: Room) -> tuple[ChunkDraft, ...]:
    """Return chunks filled to the target, split at the end of a sentence or line near it."""
    max_length = max(1, room.target // _SENTENCE_SHARE)
    pieces = [piece for block in document.blocks for piece in split(tokenised(block, counter), max_length)]
    drafts = [Draft((), packed.own, packed.repeated) for packed in pack(pieces, room, balanced=False)]
    return written(merge_small(drafts, room), room, document.title)
