"""Plain text and RTF."""

import re
from dataclasses import replace
from typing import Final

from striprtf.striprtf import rtf_to_text

from retrieval.errors import IngestError
from retrieval.ingest.parse.decoding import charset_of, decode, in_utf8
from retrieval.ingest.parse.finish import finished, tidy, title_from_name
from retrieval.ingest.parse.plain import plain_blocks
from retrieval.text.document import Block, BlockKind, ParsedDocument, RawDocument


def parse_text(raw: RawDocument) -> ParsedDocument:
    """Return a text file in any encoding, with the structure that its layout shows."""
    blocks = plain_blocks(tidy(decode(raw.content, charset_of(raw.media_type))))
    if [block.kind for block in blocks].count(BlockKind.HEADING) == 1 and blocks[0].level:
        # The name of the whole text is no section.
        blocks[0] = replace(blocks[0], kind=BlockKind.PARAGRAPH, level=0)
    # A first line in capitals is no better name than the file's.
    return finished(raw, source_type="text", blocks=blocks, explicit_title=title_from_name(raw.name))


_CODE_PAGE: Final = re.compile(rb"\\ansicpg(\d{3,5})\b")
_SNIFFED_BYTES: Final = 1024


def parse_rtf(raw: RawDocument) -> ParsedDocument:
    """Return the paragraphs of a rich text file, without objects. Raises IngestError: `corrupt`, `empty`."""
    content = in_utf8(raw.content).lstrip(b"\xef\xbb\xbf \t\r\n")
    if not content.startswith(b"{\\rtf"):
        raise IngestError("corrupt", "The file is not rich text (RTF).")
    found = _CODE_PAGE.search(content[:_SNIFFED_BYTES])
    encoding = f"cp{int(found[1])}" if found else "cp1252"
    try:
        b"".decode(encoding)
    except LookupError:
        encoding = "cp1252"
    text = rtf_to_text(content.decode("latin-1"), encoding, "replace")  # type: ignore[no-untyped-call] # bare library
    paragraphs = tidy(text).split("\n")
    blocks = (Block(BlockKind.PARAGRAPH, paragraph) for paragraph in paragraphs)
    return finished(raw, source_type="rtf", blocks=blocks)
