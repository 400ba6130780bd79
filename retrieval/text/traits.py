"""Traits of a chunk's text that are stored with it. Pure."""

from dataclasses import dataclass
from typing import ClassVar

from retrieval.text.document import ChunkDraft
from retrieval.text.hints import hints_of
from retrieval.text.language import language_of
from retrieval.text.minhash import minhash


@dataclass(frozen=True, slots=True)
class ChunkTraits:
    """Traits of one chunk's text."""

    #: The encoding of bytes when traits pass between processes.
    __pydantic_config__: ClassVar = {"ser_json_bytes": "base64", "val_json_bytes": "base64"}
    #: "english"; empty if not detected.
    language: str = ""
    #: table, code, definition ... in alphabetical order.
    hints: tuple[str, ...] = ()
    #: MinHash signature, 128 bytes; empty for a text without words.
    minhash: bytes = b""


def traits_of(draft: ChunkDraft, *, source_type: str) -> ChunkTraits:
    """Return the traits of a chunk of a document of a canonical source type."""
    return ChunkTraits(
        language="" if source_type == "code" else language_of(draft.text),
        hints=hints_of(draft.text, heading_path=draft.heading_path, source_type=source_type),
        minhash=minhash(draft.text),
    )
