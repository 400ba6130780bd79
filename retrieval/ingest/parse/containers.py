"""Files that contain parts (zip archives, compound files), and messages for files that cannot be read."""

import zipfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import PurePosixPath
from typing import Final

import olefile

from retrieval.errors import IngestError
from retrieval.text.document import RawDocument

_MAX_ENTRIES: Final = 10_000
_MAX_UNPACKED_BYTES: Final = 256 * 1024 * 1024
_MAX_RATIO: Final = 200
_HARMLESS_BYTES: Final = 16 * 1024 * 1024  #: A smaller archive is harmless at any compression ratio.
_IMAGE: Final = "This is an image. Images are not supported."
_ARCHIVE: Final = "This is an archive. Unpack it and add its files."
_SOUND: Final = "Audio and video are not supported."
_PROGRAM: Final = "This is a program, not a document."
_REFUSED_STARTS: Final[Mapping[bytes, str]] = {
    **dict.fromkeys((b"\xff\xd8\xff", b"\x89PNG\r\n", b"GIF8", b"BM", b"II*\0", b"MM\0*", b"<svg"), _IMAGE),
    **dict.fromkeys((b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"7z\xbc\xaf", b"Rar!", b"PK\x05\x06"), _ARCHIVE),
    **dict.fromkeys((b"ID3", b"OggS"), _SOUND),
    **dict.fromkeys((b"\x7fELF", b"MZ"), _PROGRAM),
}
_REFUSED_SUFFIXES: Final[Mapping[str, str]] = {
    **dict.fromkeys((".jpg", ".jpeg", ".png", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".heic", ".ico"), _IMAGE),
    **dict.fromkeys((".mp3", ".mp4", ".m4a", ".wav", ".ogg", ".mov", ".avi", ".mkv", ".webm"), _SOUND),
    **dict.fromkeys((".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar"), _ARCHIVE),
}
COMPOUND_START: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
ZIP_START: Final = b"PK\x03\x04"
_ENCRYPTED_PART: Final = "EncryptedPackage"
#: Kinds by a part that only their files have.
_ZIPPED: Final[Mapping[str, str]] = {
    "word/document.xml": "docx",
    "xl/workbook.xml": "xlsx",
    "ppt/presentation.xml": "pptx",
    "META-INF/container.xml": "epub",
}
_COMPOUND: Final[Mapping[str, str]] = {"__properties_version1.0": "msg", "Workbook": "xls", "Book": "xls"}
_OPEN_DOCUMENT: Final = b"application/vnd.oasis.opendocument."
_OPEN_KINDS: Final[Mapping[bytes, str]] = {b"spreadsheet": "ods", b"text": "odt", b"presentation": "odp"}
_REFUSED_ZIPPED: Final[Mapping[str, str]] = {
    "xl/workbook.bin": "This is a binary Excel workbook (.xlsb). Save it as .xlsx.",
    "Index/Document.iwa": "Apple iWork files are not supported. Export them to PDF.",
}
_REFUSED_COMPOUND: Final[Mapping[str, str]] = {
    "WordDocument": "This is an old Word document (.doc). Save it as .docx.",
    "PowerPoint Document": "This is an old PowerPoint presentation (.ppt). Save it as .pptx.",
}


def checked_names(content: bytes) -> frozenset[str]:
    """Return the names in a zip archive whose unpacked size is within limits.

    The sizes are those that the archive declares; zipfile unpacks no more. Raises IngestError: `corrupt` for another
    file, `too_large` if it would unpack to too much, `encrypted` if an entry needs a password.
    """
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise IngestError("corrupt", "The file is a damaged archive.") from error
    size = sum(entry.file_size for entry in entries)
    is_bomb = size > _HARMLESS_BYTES and size > _MAX_RATIO * len(content)
    if len(entries) > _MAX_ENTRIES or size > _MAX_UNPACKED_BYTES or is_bomb:
        raise IngestError("too_large", "The unpacked file exceeds the size limit.")
    if any(entry.flag_bits & 1 for entry in entries):
        raise IngestError("encrypted", "The file is protected by a password.")
    return frozenset(entry.filename for entry in entries)


def refusal(raw: RawDocument) -> IngestError:
    """Return the error for a file of an unsupported type, by its first bytes or else by its name."""
    by_start = next((why for start, why in _REFUSED_STARTS.items() if raw.content.startswith(start)), "")
    suffix = PurePosixPath(raw.name.replace("\\", "/")).suffix.lower()
    return IngestError(
        "unsupported_type", by_start or _REFUSED_SUFFIXES.get(suffix, "This file type is not supported.")
    )


def kind_of_zip(content: bytes) -> str:
    """Return docx, xlsx, pptx, epub, ods, odt or odp; raise IngestError `unsupported_type`, or as `checked_names`."""
    names = checked_names(content)
    kind = next((kind for part, kind in _ZIPPED.items() if part in names), "")
    # OpenDocument files begin with their own type, which is never compressed.
    begin = content.find(_OPEN_DOCUMENT, 0, 200)
    if begin >= 0 and not kind:
        start = begin + len(_OPEN_DOCUMENT)
        if opened := next((kind for name, kind in _OPEN_KINDS.items() if content.startswith(name, start)), ""):
            return opened
        raise IngestError("unsupported_type", "This is an OpenDocument drawing or formula. Save it as PDF.")
    if not kind:
        message = next((text for part, text in _REFUSED_ZIPPED.items() if part in names), _ARCHIVE)
        raise IngestError("unsupported_type", message)
    return kind


def kind_of_compound(content: bytes) -> str:
    """Return msg or xls. Raises IngestError: `encrypted` (a password), `unsupported_type`, `corrupt` (no parts)."""
    parts = _compound_parts(content)
    if _ENCRYPTED_PART in parts or (not parts and _ENCRYPTED_PART.encode("utf-16-le") in content):
        raise IngestError("encrypted", "The file is protected by a password.")
    if not parts:
        raise IngestError("corrupt", "The file is damaged and cannot be read.")
    kind = next((kind for part, kind in _COMPOUND.items() if part in parts), "")
    if not kind:
        default = "The file is in an old Office format that is not supported."
        message = next((text for part, text in _REFUSED_COMPOUND.items() if part in parts), default)
        raise IngestError("unsupported_type", message)
    return kind


def _compound_parts(content: bytes) -> frozenset[str]:
    try:
        with olefile.OleFileIO(BytesIO(content)) as container:
            return frozenset(path[0] for path in container.listdir(streams=True, storages=False))
    except Exception:  # noqa: BLE001 - the library may fail in any way on damaged files
        return frozenset()
