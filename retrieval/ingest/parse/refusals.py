"""Why a file that no parser reads is refused, in words that say what to do."""

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final

from retrieval.errors import IngestError
from retrieval.text.document import RawDocument

_IMAGE: Final = "This is an image, and images are not read."
_SOUND: Final = "Sound and video are not read."
_ARCHIVE: Final = "This is an archive; unpack it first and add its files."
_PROGRAM: Final = "This is a program, not a document."
_STARTS: Final[Mapping[bytes, str]] = {
    b"\xff\xd8\xff": _IMAGE,
    b"\x89PNG\r\n": _IMAGE,
    b"GIF8": _IMAGE,
    b"BM": _IMAGE,
    b"II*\0": _IMAGE,
    b"MM\0*": _IMAGE,
    b"<svg": _IMAGE,
    b"\x1f\x8b": _ARCHIVE,
    b"BZh": _ARCHIVE,
    b"\xfd7zXZ": _ARCHIVE,
    b"7z\xbc\xaf": _ARCHIVE,
    b"Rar!": _ARCHIVE,
    b"PK\x05\x06": _ARCHIVE,
    b"ID3": _SOUND,
    b"OggS": _SOUND,
    b"\x7fELF": _PROGRAM,
    b"MZ": _PROGRAM,
}
_SUFFIXES: Final[Mapping[str, str]] = {
    **dict.fromkeys((".jpg", ".jpeg", ".png", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".heic", ".ico"), _IMAGE),
    **dict.fromkeys((".mp3", ".mp4", ".m4a", ".wav", ".ogg", ".mov", ".avi", ".mkv", ".webm"), _SOUND),
    **dict.fromkeys((".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar"), _ARCHIVE),
}


def refusal(raw: RawDocument) -> IngestError:
    """Return the error for a file whose type cannot be read; its first bytes count for more than its name."""
    by_start = next((why for start, why in _STARTS.items() if raw.content.startswith(start)), "")
    suffix = PurePosixPath(raw.name.replace("\\", "/")).suffix.lower()
    return IngestError("unsupported_type", by_start or _SUFFIXES.get(suffix, "Files of this type cannot be read."))
