"""Decoding of text: byte order marks, wide encodings, UTF-8, declared charsets, then a guess; no binary files."""

import codecs
from contextlib import suppress
from typing import Final

from charset_normalizer import CharsetMatches, from_bytes

from retrieval.errors import IngestError
from retrieval.ingest.parse.wide import count_controls, wide_encoding, wide_text

#: Each with the wide encoding that it marks. UTF-32 comes first: its little-endian mark begins with UTF-16's.
_MARKS: Final = (
    (codecs.BOM_UTF8, ""), (codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"), (b"", ""),
)  # fmt: skip
_SNIFFED_BYTES: Final = 8192
_GUESSED_BYTES: Final = 65536  #: Bytes for guessing the encoding; more would not improve the guess.
#: Maximum share of control characters: random bytes have 10 %, text in any charset almost none.
_MAX_CONTROLS: Final = 0.02
_STRAY_CONTROLS: Final = 4
_MAX_DAMAGED: Final = 0.01
_NEAR_DRAW: Final = 0.15  #: Uncertainty of the coherence (0 to 1, similarity to a language) of a short text.


def looks_binary(content: bytes, declared: str = "") -> bool:
    """Return whether bytes are not text in any charset; NUL occurs only in UTF-16 and UTF-32 text."""
    if _mark(content)[0]:
        return False
    sample = content[:_SNIFFED_BYTES]
    has_controls = count_controls(sample) > max(_STRAY_CONTROLS, _MAX_CONTROLS * len(sample))
    return (b"\0" in sample or has_controls) and not wide_encoding(content, declared)


def decode(content: bytes, declared: str = "") -> str:
    """Return the text of `content`; `declared` is the charset that the file or its source names.

    A byte order mark comes first, then detected UTF-16 or UTF-32, then valid UTF-8 (a wrong declaration is common, text
    that is valid UTF-8 by chance is not), then `declared`, then a guess. Raises IngestError: `unsupported_type` for
    binary content, `encoding` if no charset fits.
    """
    if looks_binary(content, declared):
        raise IngestError("unsupported_type", "The file is binary, not text.")
    unknown = IngestError("encoding", "The character encoding of the file was not recognized.")
    mark, marked = _mark(content)
    written = content.removeprefix(mark)
    if wide := marked if mark else wide_encoding(content, declared):
        text = wide_text(written, wide)
        if text.count("\ufffd") > _MAX_DAMAGED * len(text) + 1:
            raise unknown
        return text
    for encoding in filter(None, ("utf-8", declared)):
        with suppress(ValueError, LookupError):
            return written.decode(encoding)
    encoding = "utf-8" if _is_damaged_utf8(written) else _likeliest(from_bytes(written[:_GUESSED_BYTES]))
    if not encoding:
        raise unknown
    return written.decode(encoding, errors="replace")


def _mark(content: bytes) -> tuple[bytes, str]:
    return next((mark, wide) for mark, wide in _MARKS if content.startswith(mark))


def _is_damaged_utf8(content: bytes) -> bool:
    """Return whether nearly all characters outside ASCII are valid UTF-8, as in a cut or edited file."""
    text = content[:_GUESSED_BYTES].decode("utf-8", errors="replace")
    broken = text.count("\ufffd")
    valid = sum(not character.isascii() for character in text) - broken
    return valid > 10 * broken


def _likeliest(matches: CharsetMatches) -> str:
    """Return the best encoding; if others are nearly as good, prefer Windows-1252, the most common one."""
    best = matches.best()
    if best is None:
        return ""
    for match in matches:
        is_near = match.chaos <= best.chaos and match.coherence >= best.coherence - _NEAR_DRAW
        if is_near and "cp1252" in match.could_be_from_charset:
            return "cp1252"
    return best.encoding


def in_utf8(content: bytes, declared: str = "") -> bytes:
    """Return UTF-16 and UTF-32 as UTF-8 without a mark, other content unchanged. Raises IngestError `encoding`."""
    mark, marked = _mark(content)
    is_wide = marked if mark else wide_encoding(content, declared)
    return decode(content, declared).encode() if is_wide else content


def charset_of(media_type: str) -> str:
    """Return the charset parameter of a MIME type, empty if it has none."""
    parameters = (parameter.strip().partition("=") for parameter in media_type.split(";")[1:])
    return next((value.strip("\"' ") for name, _, value in parameters if name.strip().lower() == "charset"), "")
