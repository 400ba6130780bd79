"""Bytes to text: byte order marks, wide encodings, UTF-8, declared charsets, then a guess; never a binary file."""

import codecs
from typing import Final

from charset_normalizer import CharsetMatches, from_bytes

from retrieval.errors import IngestError
from retrieval.ingest.parse.wide import count_controls, wide_encoding, wide_text

#: Each with the wide encoding that it marks. UTF-32 comes first: its little-endian mark begins with UTF-16's.
_MARKS: Final = (
    (codecs.BOM_UTF8, ""),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (b"", ""),
)
_SNIFFED_BYTES: Final = 8192
#: A guess from this much is as good as one from everything, and its cost is bounded.
_GUESSED_BYTES: Final = 65536
#: Random bytes hold 10 % of these; text in any charset next to none.
_MAX_CONTROLS: Final = 0.02
#: So few are an accident in a text, however short.
_STRAY_CONTROLS: Final = 4
#: Share of characters that may be damaged in UTF-16 and UTF-32.
_MAX_DAMAGED: Final = 0.01
#: Coherence, from 0 to 1, says how much a guess reads like a language; on a few lines it is this uncertain.
_NEAR_DRAW: Final = 0.15


def looks_binary(content: bytes, declared: str = "") -> bool:
    """Return True for bytes that are text in no charset: a NUL is proof, but in UTF-16 and UTF-32."""
    if _mark(content)[0]:
        return False
    sample = content[:_SNIFFED_BYTES]
    has_controls = count_controls(sample) > max(_STRAY_CONTROLS, _MAX_CONTROLS * len(sample))
    return (b"\0" in sample or has_controls) and not wide_encoding(content, declared)


def decode(content: bytes, declared: str = "") -> str:
    """Return the text of `content`; `declared` is the charset that the file or its source names.

    A byte order mark wins, then what reads as UTF-16 or UTF-32, then valid UTF-8 (a wrong declaration
    is common, text that is valid UTF-8 by chance is not), then `declared`, then a guess. Raises
    IngestError: `unsupported_type` for binary content, `encoding` when no charset makes sense of it.
    """
    if looks_binary(content, declared):
        raise IngestError("unsupported_type", "The file is binary, not text.")
    mark, marked = _mark(content)
    written = content.removeprefix(mark)
    if wide := marked if mark else wide_encoding(content, declared):
        return _decoded_wide(written, wide)
    for encoding in ("utf-8", declared):
        text = _decoded(written, encoding)
        if text is not None:
            return text
    if _is_damaged_utf8(written):
        return written.decode("utf-8", errors="replace")
    return _guessed(written)


def _mark(content: bytes) -> tuple[bytes, str]:
    """Return the byte order mark and the wide encoding that it marks; empty where there is none."""
    return next((mark, wide) for mark, wide in _MARKS if content.startswith(mark))


def _decoded_wide(written: bytes, encoding: str) -> str:
    """Return the text, in which some damage is replaced; raise IngestError `encoding` where that is much."""
    text = wide_text(written, encoding)
    if text.count("\ufffd") > _MAX_DAMAGED * len(text) + 1:
        raise IngestError("encoding", "No character encoding makes sense of the file.")
    return text


def _decoded(content: bytes, encoding: str) -> str | None:
    if not encoding:
        return None
    try:
        return content.decode(encoding)
    except (ValueError, LookupError):
        return None


def _is_damaged_utf8(content: bytes) -> bool:
    """Return True when nearly all beyond ASCII is valid UTF-8: a cut or patched file, not another charset."""
    text = content[:_GUESSED_BYTES].decode("utf-8", errors="replace")
    broken = text.count("\ufffd")
    valid = sum(not character.isascii() for character in text) - broken
    return valid > 10 * broken


def _guessed(content: bytes) -> str:
    matches = from_bytes(content[:_GUESSED_BYTES])
    encoding = _likeliest(matches)
    if not encoding:
        raise IngestError("encoding", "No character encoding makes sense of the file.")
    return content.decode(encoding, errors="replace")


def _likeliest(matches: CharsetMatches) -> str:
    """Return the best encoding; Windows-1252 wins what is nearly a draw, since it is the commonest by far."""
    best = matches.best()
    if best is None:
        return ""
    for match in matches:
        is_near = match.chaos <= best.chaos and match.coherence >= best.coherence - _NEAR_DRAW
        if is_near and "cp1252" in match.could_be_from_charset:
            return "cp1252"
    return best.encoding


def in_utf8(content: bytes, declared: str = "") -> bytes:
    """Return text in UTF-16 or UTF-32 as UTF-8, without a mark; anything else as it is.

    Raises IngestError `encoding` for text that is damaged too much.
    """
    mark, marked = _mark(content)
    is_wide = marked if mark else wide_encoding(content, declared)
    return decode(content, declared).encode() if is_wide else content


def charset_of(media_type: str) -> str:
    """Return the charset parameter of a MIME type, empty when it has none."""
    parameters = (parameter.strip().partition("=") for parameter in media_type.split(";")[1:])
    return next((value.strip("\"' ") for name, _, value in parameters if name.strip().lower() == "charset"), "")
