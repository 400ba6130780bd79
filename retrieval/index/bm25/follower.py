"""Keeping the BM25 index of this machine up to date."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar, Final
from uuid import UUID

from django.conf import settings

from corecube.models import Connection
from retrieval.index import outbox
from retrieval.index.bm25 import schema
from retrieval.index.bm25.reader import Reader, readable
from retrieval.index.bm25.writer import Writer, fingerprint
from retrieval.index.folder import About, Folder
from retrieval.index.following import Content, Entry, Follower, Progress, high_halves

_BUILD_THREADS: Final = 2


class Bm25Follower(Follower):
    """Follows the database with the BM25 index."""

    label: ClassVar[str] = "BM25 index"
    command: ClassVar[str] = "bm25"

    @property
    def is_enabled(self) -> bool:
        """Whether this machine has a BM25 index."""
        return bool(settings.CORECUBE_BM25)

    def about(self) -> About:
        """Return the schema, the language and the database."""
        language = settings.CORECUBE_TEXT_SEARCH_CONFIG
        return {"schema": schema.SCHEMA_VERSION, "language": language, "database": outbox.history()}

    def content(self) -> Content:
        """Return what is in the searched build; raise Bm25UnavailableError."""
        view = Reader(self.folder).view()
        return Content(view.position, view.chunks)

    def replace(self, build: Path, batches: Iterator[Sequence[UUID]], position: int) -> None:
        """Replace the texts of these documents' chunks; raise Bm25UnavailableError."""
        languages = _languages()
        with readable(), Writer(build, settings.CORECUBE_TEXT_SEARCH_CONFIG) as writer:
            for documents in batches:
                writer.replace(documents, outbox.chunk_texts(documents, languages))
            writer.commit(position)

    def fill(self, build: Path, batches: Iterator[Sequence[UUID]], position: int, progress: Progress) -> int:
        """Add the texts of these documents' chunks; raise Bm25UnavailableError."""
        languages, chunks = _languages(), 0
        with readable(), Writer(build, settings.CORECUBE_TEXT_SEARCH_CONFIG, threads=_BUILD_THREADS) as writer:
            for documents in batches:
                chunks += writer.add(outbox.chunk_texts(documents, languages))
                progress(chunks)
            writer.commit(position)
        return chunks

    def held(self, build: Path, part: int) -> Iterator[Entry]:  # noqa: ARG002 -- what is searched
        """Yield the chunks in the index, each with its fingerprint; raise Bm25UnavailableError."""
        for chunk, found in Reader(self.folder).view().fingerprints(*high_halves(part)):
            yield chunk.document_id, (chunk.ordinal, found)

    def stored(self, build: Path, documents: Sequence[UUID]) -> Iterator[Entry]:  # noqa: ARG002 -- of any build
        """Yield the chunks of the database, each with its fingerprint."""
        for chunk in outbox.chunk_texts(documents, _languages()):
            yield chunk.document_id, (chunk.ordinal, fingerprint(chunk))


def follower() -> Bm25Follower:
    """Return what keeps the BM25 index of this installation on this machine."""
    return Bm25Follower(Folder(settings.CORECUBE_BM25_DIR))


def _languages() -> dict[int, str]:
    return dict(Connection.objects.exclude(language="").values_list("pk", "language"))
