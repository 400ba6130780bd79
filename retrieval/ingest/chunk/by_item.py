"""Chunks of a feed: each item separate, even a small one; a large one is split at its headings."""

from dataclasses import replace
from itertools import count, pairwise

from retrieval.ingest.chunk.by_heading import chunk_by_heading
from retrieval.ingest.chunk.pack import Room
from retrieval.text.document import BlockKind, ChunkDraft, ParsedDocument, TokenCounter


def chunk_by_item(document: ParsedDocument, counter: TokenCounter, room: Room) -> tuple[ChunkDraft, ...]:
    """Return the chunks of each item in turn; an item starts at a heading of the topmost level."""
    ordinals = count()
    blocks = document.blocks
    top = min((block.level for block in blocks if block.kind is BlockKind.HEADING), default=0)
    starts = [place for place, block in enumerate(blocks) if block.kind is BlockKind.HEADING and block.level == top]
    bounds = pairwise((0, *starts, len(blocks)))
    items = (replace(document, blocks=blocks[begin:end]) for begin, end in bounds if begin < end)
    drafts = (draft for item in items for draft in chunk_by_heading(item, counter, room))
    return tuple(replace(draft, ordinal=next(ordinals)) for draft in drafts)
