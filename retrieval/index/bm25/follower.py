"""Keeping the BM25 index of this machine up to date: following the outbox, rebuilding, and its status.

An index follows by transaction id, and its own commit says how far it is, so that the two cannot disagree. What is
taken over twice is the same as once: all of a document's chunks are taken out, and those that it has now are put in.
So it may be killed at any moment.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from django.conf import settings

from corecube.models import Connection
from retrieval.errors import Bm25UnavailableError
from retrieval.index import outbox
from retrieval.index.bm25 import schema
from retrieval.index.bm25.folder import About, Folder
from retrieval.index.bm25.reader import Reader, readable
from retrieval.index.bm25.writer import Writer
from retrieval.models import Document

logger = logging.getLogger(__name__)

Progress = Callable[[int], None]  #: Called with the chunks that are in the index so far.
_CHANGES_AT_ONCE: Final = 2_000  #: Changes between two commits, and documents whose chunks are read together.
_DOCUMENTS_AT_ONCE: Final = 200
_BUILD_THREADS: Final = 2
LATE_SECONDS: Final = 300.0  #: Seconds behind from which somebody should look.


@dataclass(frozen=True, slots=True)
class Followed:
    """What one pass did."""

    position: int  #: Transactions up to this one are in the index.
    changes: int
    is_rebuilt: bool = False


def folder() -> Folder:
    """Return the folder of this installation's BM25 indexes on this machine."""
    return Folder(settings.CORECUBE_BM25_DIR)


def follow(where: Folder | None = None, progress: Progress = lambda _: None) -> Followed | None:
    """Take over what changed; without an index that can follow, build one. None while another process does it."""
    where = where or folder()
    with where.locked() as is_locked:
        if not is_locked:
            return None
        where.clear()
        position = _position(where)
        if position is None:
            return _rebuilt(where, progress)
        try:
            return Followed(*_followed(where, position))
        except Bm25UnavailableError as error:
            logger.warning("bm25.broken error=%r", error.__cause__ or error)
            return _rebuilt(where, progress)


def rebuild(where: Folder | None = None, progress: Progress = lambda _: None) -> Followed | None:
    """Build a new index next to the searched one, and switch to it; None while another process writes."""
    where = where or folder()
    with where.locked() as is_locked:
        return _rebuilt(where, progress) if is_locked else None


def keep_up() -> bool:
    """Follow where this machine keeps an index; return whether it is well, and log what is wrong with it."""
    if not settings.CORECUBE_BM25:
        return True
    try:
        follow()
    except (Bm25UnavailableError, OSError) as error:
        logger.warning("bm25.failed error=%r", error.__cause__ or error)
        return False
    return True


def wanted_about() -> About:
    """Return what an index is made from that can follow this database."""
    return About(schema.SCHEMA_VERSION, settings.CORECUBE_TEXT_SEARCH_CONFIG, outbox.history())


def follower_name(where: Folder) -> str:
    """Return what an index is called among the followers."""
    return f"{outbox.BM25}{where.id}"


def _position(where: Folder) -> int | None:
    """Return how far the index is; None where there is none that can follow: a broken one, or another database's."""
    build = where.current
    if build is None or where.about(build) != wanted_about():
        return None
    try:
        position = Reader(where).view().position
    except Bm25UnavailableError as error:
        logger.warning("bm25.unreadable build=%s error=%r", build.name, error.__cause__ or error)
        return None
    # A position that no transaction has reached is of another past.
    return position if outbox.pruned_up_to() <= position < outbox.newest() else None


def _followed(where: Folder, position: int) -> tuple[int, int]:
    """Take over all that is settled by now; return the new position, and how many changes that took."""
    before = outbox.horizon()
    build, changes = where.current, 0
    if build is None:
        raise Bm25UnavailableError
    try:
        while entries := outbox.entries(after=position, before=before, limit=_CHANGES_AT_ONCE):
            with readable(), Writer(build, settings.CORECUBE_TEXT_SEARCH_CONFIG) as writer:
                documents, languages = sorted({document for document, _ in entries}), _languages()
                for first in range(0, len(documents), _DOCUMENTS_AT_ONCE):
                    some = documents[first : first + _DOCUMENTS_AT_ONCE]
                    writer.replace(some, outbox.chunk_texts(some, languages))
                writer.commit(entries[-1][1])
            position, changes = entries[-1][1], changes + len(entries)
    finally:
        outbox.follows(follower_name(where), position)
    if changes:
        logger.info("bm25.followed changes=%d position=%d", changes, position)
    return position, changes


def _rebuilt(where: Folder, progress: Progress) -> Followed:
    """Build from the current documents; changes during the build have a later transaction."""
    position = outbox.horizon() - 1
    outbox.follows(follower_name(where), min(position, _position(where) or position))
    build = where.begin(wanted_about())
    with readable(), Writer(build, settings.CORECUBE_TEXT_SEARCH_CONFIG, threads=_BUILD_THREADS) as writer:
        languages, after, chunks = _languages(), UUID(int=0), 0
        ids = Document.objects.order_by("pk").values_list("pk", flat=True)
        while documents := list(ids.filter(pk__gt=after)[:_DOCUMENTS_AT_ONCE]):
            chunks += writer.add(outbox.chunk_texts(documents, languages))
            after = documents[-1]
            progress(chunks)
        writer.commit(position)
    where.switch(build)
    logger.info("bm25.rebuilt build=%s chunks=%d position=%d", build.name, chunks, position)
    return Followed(*_followed(where, position), is_rebuilt=True)


def _languages() -> dict[int, str]:
    return dict(Connection.objects.exclude(language="").values_list("pk", "language"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bm25Status:
    """The index as it is now."""

    is_kept: bool
    is_readable: bool = False
    #: Whether it was made from this database and with these settings; another one is about to be rebuilt.
    is_current: bool = False
    chunks: int = 0
    bytes: int = 0
    position: int = 0  #: Transactions up to this one are in it.
    lag: outbox.Lag = field(default_factory=lambda: outbox.Lag(0, 0.0))

    @property
    def problem(self) -> str:
        """What is to be said of it; empty when nothing is."""
        if not self.is_kept:
            return ""
        if not self.is_readable:
            return "There is no readable BM25 index yet; a worker or `manage.py bm25 follow` builds it."
        if not self.is_current:
            return "It belongs to another database or other settings, and must be rebuilt."
        late = self.lag.seconds >= LATE_SECONDS
        return f"It is {self.lag.seconds:.0f} seconds behind: is a worker running on this machine?" if late else ""


def bm25_status() -> Bm25Status:
    """Look at the index and the outbox; a machine that keeps no index has neither looked at."""
    if not settings.CORECUBE_BM25:
        return Bm25Status(is_kept=False)
    where = folder()
    build = where.current
    try:
        view = Reader(where).view()
    except Bm25UnavailableError:
        return Bm25Status(is_kept=True)
    return Bm25Status(
        is_kept=True,
        is_readable=True,
        is_current=build is not None and where.about(build) == wanted_about(),
        chunks=view.chunks,
        bytes=where.size(),
        position=view.position,
        lag=outbox.lag(view.position),
    )
