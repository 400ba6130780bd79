"""Parsing of source items in any format. A new format is one module and one entry in `formats`."""

from retrieval.errors import IngestError
from retrieval.ingest.parse.formats import format_of
from retrieval.text.document import ParsedDocument, RawDocument

__all__ = ["parse"]


def parse(raw: RawDocument) -> ParsedDocument:
    """Return the text, title and metadata of a source item.

    Raises IngestError, and nothing else, with one of the reasons `empty`, `unsupported_type`,
    `corrupt`, `encrypted`, `no_text`, `too_large`, `encoding`. The message contains no content of the file.
    """
    if not raw.content.strip():
        raise IngestError("empty", "The file is empty.")
    found = format_of(raw)
    if len(raw.content) > found.max_bytes:
        raise IngestError("too_large", f"The file is larger than {found.max_bytes // 1024**2} MiB.")
    try:
        return found.parse(raw)
    except IngestError:
        raise
    except MemoryError as error:
        raise IngestError("too_large", "The file needs more memory than the limit allows.") from error
    except Exception as error:
        # A library may fail in any way on a damaged file, and one file must not stop a sync.
        raise IngestError("corrupt", "The file is damaged and cannot be read.") from error
