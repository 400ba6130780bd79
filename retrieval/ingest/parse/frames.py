"""Messages between a parsing process and the one that started it: lengths and bytes, documents as JSON.

The process that reads strangers' files is not trusted: what it answers is data and never code.
"""

import json
import struct
from collections.abc import Mapping
from dataclasses import fields
from typing import IO, Any, Final

from retrieval.ingest.types import Block, BlockKind, Hyperlink, ParsedDocument, RawDocument

_LENGTH: Final = struct.Struct("!Q")
_FIELDS: Final = tuple(field.name for field in fields(Block))
#: The most that one part of a message may have; far above any document within its format's limits.
_MOST_BYTES: Final = 1024**3


def write_part(stream: IO[bytes], content: bytes) -> None:
    """Write one part of a message."""
    stream.write(_LENGTH.pack(len(content)))
    stream.write(content)


def read_part(stream: IO[bytes]) -> bytes:
    """Return the next part of a message; raise EOFError when the stream ends before it does."""
    length = _LENGTH.unpack(_exactly(stream, _LENGTH.size))[0]
    if length > _MOST_BYTES:
        raise EOFError
    return _exactly(stream, length)


def _exactly(stream: IO[bytes], length: int) -> bytes:
    content = stream.read(length)
    if len(content) < length:
        raise EOFError
    return content


def write_raw(stream: IO[bytes], raw: RawDocument) -> None:
    """Write a source item and send it off."""
    write_part(stream, json.dumps([raw.name, raw.media_type]).encode())
    write_part(stream, raw.content)
    stream.flush()


def read_raw(stream: IO[bytes]) -> RawDocument:
    """Return the next source item; raise EOFError when there is none."""
    name, media_type = json.loads(read_part(stream))
    return RawDocument(name, read_part(stream), media_type)


def written_document(document: ParsedDocument) -> dict[str, Any]:
    """Return a document as what JSON can hold."""
    return {
        "title": document.title,
        "source_type": document.source_type,
        "metadata": dict(document.metadata),
        "blocks": [[getattr(block, name) for name in _FIELDS] for block in document.blocks],
    }


def read_document(written: Mapping[str, Any]) -> ParsedDocument:
    """Return the document that `written_document` made; raise an error of any kind for anything else."""
    blocks = tuple(_block(dict(zip(_FIELDS, values, strict=True))) for values in written["blocks"])
    return ParsedDocument(written["title"], blocks, written["source_type"], dict(written["metadata"]))


def _block(facts: dict[str, Any]) -> Block:
    links = tuple(Hyperlink(str(text), str(target)) for text, target in facts["links"])
    return Block(**{**facts, "kind": BlockKind(facts["kind"]), "path": tuple(facts["path"]), "links": links})
