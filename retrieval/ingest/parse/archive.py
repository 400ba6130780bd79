"""Limits for formats that are zip archives, checked before anything is unpacked."""

import zipfile
from io import BytesIO
from typing import Final

from retrieval.errors import IngestError

_MAX_ENTRIES: Final = 10_000
_MAX_BYTES: Final = 256 * 1024 * 1024
_MAX_RATIO: Final = 200
#: Below this an archive is harmless however well it is packed.
_HARMLESS_BYTES: Final = 16 * 1024 * 1024


def checked_names(content: bytes) -> frozenset[str]:
    """Return the names in a zip archive whose unpacked size is within limits.

    The sizes are the ones that the archive declares; zipfile unpacks no more than those. Raises
    IngestError: `corrupt` when it is no archive, `too_large` when it would unpack to too much,
    `encrypted` when an entry needs a password.
    """
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise IngestError("corrupt", "The file is a damaged archive.") from error
    size = sum(entry.file_size for entry in entries)
    is_bomb = size > _HARMLESS_BYTES and size > _MAX_RATIO * len(content)
    if len(entries) > _MAX_ENTRIES or size > _MAX_BYTES or is_bomb:
        raise IngestError("too_large", "The file unpacks to more than the limit.")
    if any(entry.flag_bits & 1 for entry in entries):
        raise IngestError("encrypted", "The file is protected by a password.")
    return frozenset(entry.filename for entry in entries)
