"""Messages between the limited process and the one that started it: lengths, bytes, and data as JSON.

The process that reads strangers' files is not trusted: what it answers is data and never code, of a bounded size and
checked field by field.
"""

import json
import struct
from collections.abc import Mapping
from dataclasses import asdict
from typing import IO, Any, Final

from pydantic import TypeAdapter

from retrieval.graph.addresses import Place
from retrieval.ingest.preparation import Preparation, PreparedText
from retrieval.text.document import ChunkLimits, RawDocument

_LENGTH: Final = struct.Struct("!Q")
#: The most that one part of a message may have; far above any item within its format's limits.
_MAX_BYTES: Final = 1024**3
#: The most that an answer may have: the chunks of 50 MiB of text with all that is worked out from them.
MAX_ANSWER_BYTES: Final = 256 * 1024**2
#: What an answer begins with: a text follows, or the reason for which there is none.
TEXT: Final = b"T"
REFUSAL: Final = b"R"
#: Bytes of a file that add a second to the time that it may take. A busy core prepares four times as many.
_BYTES_PER_SECOND: Final = 64 * 1024
_PREPARED: Final = TypeAdapter(PreparedText)


def allowed_seconds(seconds: float, size: int) -> float:
    """Return the time that an item of so many bytes may take, where a small one may take `seconds`."""
    return seconds + size / _BYTES_PER_SECOND


def write_part(stream: IO[bytes], content: bytes) -> None:
    """Write one part of a message."""
    stream.write(_LENGTH.pack(len(content)))
    stream.write(content)


def read_part(stream: IO[bytes], *, max_bytes: int = _MAX_BYTES) -> bytes:
    """Return the next part of a message; raise EOFError for one that is too long, or ends with the stream."""
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
    """Write a source item with what is to become of it, and send it off."""
    write_part(stream, json.dumps([raw.name, raw.media_type, asdict(how)]).encode())
    write_part(stream, raw.content)
    stream.flush()


def read_request(stream: IO[bytes]) -> tuple[RawDocument, Preparation]:
    """Return the next source item and what is to become of it; raise EOFError when there is none."""
    name, media_type, how = json.loads(read_part(stream))
    return RawDocument(name, read_part(stream), media_type), _preparation(how)


def _preparation(how: Mapping[str, Any]) -> Preparation:
    return Preparation(**{**how, "limits": ChunkLimits(**how["limits"]), "place": Place(**how["place"])})


def written_text(prepared: PreparedText) -> bytes:
    """Return a prepared text as JSON."""
    return _PREPARED.dump_json(prepared)


def read_text(written: bytes) -> PreparedText:
    """Return the text that `written_text` made; raise ValueError for anything else."""
    return _PREPARED.validate_json(written)
