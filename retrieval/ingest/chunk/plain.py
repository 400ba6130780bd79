"""Chunks of documents without headings: paragraphs of a PDF, runs of plain text."""

from retrieval.ingest.chunk.packing import joined, packed
from retrieval.ingest.chunk.pieces import pieces_of
from retrieval.ingest.types import ChunkDraft, ChunkLimits, ParsedDocument, TokenCounter


def plain_chunks(document: ParsedDocument, counter: TokenCounter, limits: ChunkLimits) -> tuple[ChunkDraft, ...]:
    """Return the document's blocks packed to the target size, with the pages that each chunk spans."""
    pieces = (piece for block in document.blocks for piece in pieces_of(block, counter, target=limits.target))
    drafts = []
    for ordinal, group in enumerate(packed(pieces, counter, limits)):
        pages = [piece.page for piece in group if piece.page is not None]
        drafts.append(
            ChunkDraft(
                ordinal=ordinal,
                text=joined(group),
                heading_path=(),
                token_count=sum(piece.tokens for piece in group),
                page_start=min(pages, default=None),
                page_end=max(pages, default=None),
            )
        )
    return tuple(drafts)
