"""Messages between the limited process and its parent: lengths, bytes, and data as JSON.

The process that parses untrusted files is not trusted: its answers are data and never code, of limited size and
validated field by field.
"""

import json
import struct
from dataclasses import asdict
from typing import IO, Final

from pydantic import TypeAdapter

from retrieval.graph.addresses import Place
from retrieval.ingest.preparation import Preparation, PreparedText
from retrieval.text.document import ChunkLimits, RawDocument

_LENGTH: Final = struct.Struct("!Q")
_MAX_BYTES: Final = 1024**3  #: Maximum size of one part of a message; far above any item within its format's limits.
MAX_ANSWER_BYTES: Final = 256 * 1024**2  #: Maximum size of an answer: the prepared chunks of 50 MiB of text.
TEXT: Final = b"T"  #: First byte of an answer with a text, and of one with a reason instead.
REFUSAL: Final = b"R"
#: Bytes of a file that add a second to its time limit. A busy core prepares four times as many.
_BYTES_PER_SECOND: Final = 64 * 1024
PREPARED: Final = TypeAdapter(PreparedText)  #: A prepared text as JSON; ValueError for anything else.


def allowed_seconds(seconds: float, size: int) -> float:
    """Return the time limit for an item of `size` bytes, where `seconds` is the limit for a small one."""
    return seconds + size / _BYTES_PER_SECOND


def write_part(stream: IO[bytes], content: bytes) -> None:
    """Write one part of a message."""
    stream.write(_LENGTH.pack(len(content)))
    stream.write(content)


def read_part(stream: IO[bytes], *, max_bytes: int = _MAX_BYTES) -> bytes:
    """Return the next part of a message; raise EOFError for one that is too long or incomplete."""
    length = _LENGTH.unpack(_exactly(stream, _LENGTH.size))[0]
    if length > max_bytes:
        raise EOFError
    return _exactly(stream, length)


def _exactly(stream: IO[bytes], length: int) -> bytes:
    content = stream.read(length)
    if len(content) < length:
        raise EOFError
    return content


def write_request(stream: IO[bytes], raw: RawDocument, how: Preparation) -> None:
    """Write a source item with its preparation, and flush the stream."""
    write_part(stream, json.dumps([raw.name, raw.media_type, asdict(how)]).encode())
    write_part(stream, raw.content)
    stream.flush()


def read_request(stream: IO[bytes]) -> tuple[RawDocument, Preparation]:
    """Return the next source item and its preparation; raise EOFError if there is none."""
    name, media_type, how = json.loads(read_part(stream))
    preparation = Preparation(**{**how, "limits": ChunkLimits(**how["limits"]), "place": Place(**how["place"])})
    return RawDocument(name, read_part(stream), media_type), preparation
