"""Bodies of HTTP answers, decompressed, never larger than they may be."""

import zlib
from collections.abc import Iterable, Mapping
from typing import Final

from corecube.connectors.setup import too_large
from corecube.connectors.types import ItemError

_BLOCK: Final = 1 << 16


def body_of(blocks: Iterable[bytes], headers: Mapping[str, str], limit: int) -> bytes:
    """Return a body, decompressed; raise ItemError as soon as it is larger than it may be."""
    if (announced := headers.get("content-length", "")).isdigit() and int(announced[:18]) > limit:
        raise too_large(int(announced[:18]), limit)
    encoding = headers.get("content-encoding", "identity").strip().lower()
    if encoding in {"", "identity"}:
        return _joined(blocks, limit)
    if encoding not in {"gzip", "x-gzip"}:
        raise ItemError("corrupt", "The server compresses the page in a way that was not asked for.")
    return _joined(_gunzipped(blocks, limit), limit)


def gunzip(content: bytes, limit: int) -> bytes:
    """Return gzip-compressed bytes as they were; raise ItemError "too_large" or "corrupt"."""
    return _joined(_gunzipped([content], limit), limit)


def _gunzipped(blocks: Iterable[bytes], limit: int) -> Iterable[bytes]:
    opened = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        for block in blocks:
            waiting = block
            while waiting and not opened.eof:
                yield opened.decompress(waiting, _BLOCK)
                waiting = opened.unconsumed_tail
    except zlib.error as error:
        raise ItemError("corrupt", "The compressed content is damaged.") from error
    if not opened.eof:
        raise ItemError("corrupt", f"The compressed content ends too early; the most is {limit} bytes.")


def _joined(blocks: Iterable[bytes], limit: int) -> bytes:
    parts = bytearray()
    for block in blocks:
        parts += block
        if len(parts) > limit:
            raise too_large(len(parts), limit)
    return bytes(parts)
