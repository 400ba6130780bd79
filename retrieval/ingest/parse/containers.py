"""What lies in a file that is a container of parts: a zip archive, or the compound file of old Office programs."""

from collections.abc import Mapping
from io import BytesIO
from typing import Final

import olefile

from retrieval.errors import IngestError
from retrieval.ingest.parse.archive import checked_names

COMPOUND_START: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
ZIP_START: Final = b"PK\x03\x04"

_ENCRYPTED_PART: Final = "EncryptedPackage"
#: By the part that only files of this kind have.
_ZIPPED: Final[Mapping[str, str]] = {
    "word/document.xml": "docx",
    "xl/workbook.xml": "xlsx",
    "ppt/presentation.xml": "pptx",
    "META-INF/container.xml": "epub",
}
_COMPOUND: Final[Mapping[str, str]] = {
    "__properties_version1.0": "msg",
    "Workbook": "xls",
    "Book": "xls",
}
_OPEN_DOCUMENT: Final = b"application/vnd.oasis.opendocument."
_OPEN_KINDS: Final[Mapping[bytes, str]] = {b"spreadsheet": "ods", b"text": "odt", b"presentation": "odp"}
_REFUSED_ZIPPED: Final[Mapping[str, str]] = {
    "xl/workbook.bin": "This is a binary Excel workbook (.xlsb); save it as .xlsx.",
    "Index/Document.iwa": "Files of Apple's office programs cannot be read; export them to PDF.",
}
_REFUSED_COMPOUND: Final[Mapping[str, str]] = {
    "WordDocument": "This is a Word document of before 2007 (.doc); save it as .docx.",
    "PowerPoint Document": "This is a PowerPoint presentation of before 2007 (.ppt); save it as .pptx.",
}
_ARCHIVE: Final = "This is an archive; unpack it first and add its files."


def kind_of_zip(content: bytes) -> str:
    """Return docx, xlsx, pptx, epub, ods, odt or odp.

    Raises IngestError: `unsupported_type` for any other archive, and what `checked_names` raises.
    """
    names = checked_names(content)
    kind = next((kind for part, kind in _ZIPPED.items() if part in names), "")
    # OpenDocument files begin with their own type, which is never compressed.
    begin = content.find(_OPEN_DOCUMENT, 0, 200)
    if begin >= 0 and not kind:
        start = begin + len(_OPEN_DOCUMENT)
        if opened := next((kind for name, kind in _OPEN_KINDS.items() if content.startswith(name, start)), ""):
            return opened
        raise IngestError("unsupported_type", "This is an OpenDocument drawing or formula; save it as PDF.")
    if not kind:
        message = next((text for part, text in _REFUSED_ZIPPED.items() if part in names), _ARCHIVE)
        raise IngestError("unsupported_type", message)
    return kind


def kind_of_compound(content: bytes) -> str:
    """Return msg or xls.

    Raises IngestError: `encrypted` for an Office file with a password, `unsupported_type` for any other,
    `corrupt` for one whose parts cannot be listed.
    """
    parts = _compound_parts(content)
    if _ENCRYPTED_PART in parts or (not parts and _ENCRYPTED_PART.encode("utf-16-le") in content):
        raise IngestError("encrypted", "The file is protected by a password.")
    if not parts:
        raise IngestError("corrupt", "The file is damaged and cannot be read.")
    kind = next((kind for part, kind in _COMPOUND.items() if part in parts), "")
    if not kind:
        default = "The file is in an old Office format that cannot be read."
        message = next((text for part, text in _REFUSED_COMPOUND.items() if part in parts), default)
        raise IngestError("unsupported_type", message)
    return kind


def _compound_parts(content: bytes) -> frozenset[str]:
    """Return the names at the top of a compound file; none when it is damaged."""
    try:
        with olefile.OleFileIO(BytesIO(content)) as container:
            return frozenset(path[0] for path in container.listdir(streams=True, storages=False))
    except Exception:  # noqa: BLE001 - a reader of damaged files may fail in any way, and there are no names then
        return frozenset()
