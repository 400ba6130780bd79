"""Addresses of the console's pages."""

from functools import lru_cache
from typing import Final
from urllib.parse import urlencode
from uuid import UUID

from django.urls import reverse

from retrieval.engine.types import ChunkId

#: The size of the cache of addresses: a page repeats the same documents, and building an address is slow.
_MAX_ADDRESSES: Final = 4096


def document_url(chunk_id: ChunkId, run_as: str) -> str:
    """Return the address of a chunk in its document, viewed as `run_as` if that is set."""
    query = f"?{urlencode({'as': run_as})}" if run_as else ""
    return f"{_document_path(chunk_id.document_id)}{query}#chunk-{chunk_id.ordinal}"


@lru_cache(maxsize=_MAX_ADDRESSES)
def _document_path(document_id: UUID) -> str:
    return reverse("explorer:document", args=[document_id])
