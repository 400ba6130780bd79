"""What is worked out from a chunk's text and stored beside it. Pure."""

from dataclasses import dataclass
from typing import ClassVar

from retrieval.text.document import ChunkDraft
from retrieval.text.hints import hints_of
from retrieval.text.language import language_of
from retrieval.text.minhash import minhash


@dataclass(frozen=True, slots=True)
class ChunkTraits:
    """Facts of one chunk's text."""

    #: How pydantic writes and reads bytes when traits pass between processes.
    __pydantic_config__: ClassVar = {"ser_json_bytes": "base64", "val_json_bytes": "base64"}
    #: "english"; empty where nothing tells.
    language: str = ""
    #: table, code, definition ... in alphabetical order.
    hints: tuple[str, ...] = ()
    #: MinHash signature, 128 bytes; empty for a text without words.
    minhash: bytes = b""


def traits_of(draft: ChunkDraft, *, source_type: str) -> ChunkTraits:
    """Return the traits of a chunk of a document of that canonical source type."""
    return ChunkTraits(
        language="" if source_type == "code" else language_of(draft.text),
        hints=hints_of(draft.text, heading_path=draft.heading_path, source_type=source_type),
        minhash=minhash(draft.text),
    )
