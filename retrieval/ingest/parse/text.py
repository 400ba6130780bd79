"""Plain text: paragraphs between blank lines, with their line breaks."""

import re
from typing import Final

from retrieval.ingest.parse.decoding import charset_of, decode
from retrieval.ingest.parse.finish import finished, tidy
from retrieval.text.document import Block, BlockKind, ParsedDocument, RawDocument

_BLANK_LINES: Final = re.compile(r"\n\s*\n")


def parse_text(raw: RawDocument) -> ParsedDocument:
    """Return the paragraphs of a text file in any encoding."""
    text = tidy(decode(raw.content, charset_of(raw.media_type)))
    blocks = (Block(BlockKind.PARAGRAPH, paragraph) for paragraph in _BLANK_LINES.split(text))
    return finished(raw, source_type="text", blocks=blocks)
