"""Paragraph chunks, for formats without reliable headings."""

from retrieval.ingest.chunk.draft import Draft, merge_small, written
from retrieval.ingest.chunk.fitting import fitting_pieces, sources
from retrieval.ingest.chunk.pack import Room, pack
from retrieval.text.document import ChunkDraft, ParsedDocument, TokenCounter


def chunk_by_paragraph(document: ParsedDocument, counter: TokenCounter, room: Room) -> tuple[ChunkDraft, ...]:
    """Return neighbouring paragraphs packed to the target, with their pages."""
    pieces = [piece for source in sources(document.blocks, counter, room) for piece in fitting_pieces(source, room)]
    drafts = [Draft((), packed.own, packed.repeated) for packed in pack(pieces, room, balanced=True)]
    return written(merge_small(drafts, room), room, document.title)
