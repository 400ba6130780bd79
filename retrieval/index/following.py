"""Keeping a read model of this machine up to date: following the outbox, rebuilding, and its status.

A read model follows by transaction id, and its own commit says how far it is, so that the two cannot disagree. What is
taken over twice is the same as once: all of a document's chunks are taken out, and those that it has now are put in.
So it may be killed at any moment.
"""

import logging
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Final
from uuid import UUID

from retrieval.errors import ReadModelUnavailableError
from retrieval.index import outbox
from retrieval.index.folder import About, Folder
from retrieval.models import Document

logger = logging.getLogger(__name__)

Progress = Callable[[int], None]  #: Called with the chunks that are in the read model so far.
_CHANGES_AT_ONCE: Final = 2_000  #: Changes between two commits.
_DOCUMENTS_AT_ONCE: Final = 200  #: Documents whose chunks are read together.
#: What a chunk is in a read model: its document, and what tells it from every other.
Entry = tuple[UUID, Hashable]
PARTS: Final = 256  #: A part is the documents whose ids begin with one byte.
_PART_BITS: Final = 56  #: Bits behind that byte in the higher half of an id.
_HALF_BITS: Final = 64
_MAX_HALF: Final = 2**_HALF_BITS - 1
LATE_SECONDS: Final = 300.0  #: Seconds behind from which somebody should look.


@dataclass(frozen=True, slots=True)
class Followed:
    """What one pass did."""

    position: int  #: Transactions up to this one are in the read model.
    changes: int
    is_rebuilt: bool = False


@dataclass(frozen=True, slots=True)
class Content:
    """What of a read model can be read."""

    position: int  #: Transactions up to this one are in it.
    chunks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadModelStatus:
    """A read model as it is now."""

    label: str  #: "BM25 index"
    command: str  #: The subcommand of `manage.py` that updates it.
    is_enabled: bool
    #: Whether there is something to make it from: vectors need an embedding index.
    is_due: bool = True
    is_readable: bool = False
    #: Whether it was made from this database and with these settings; another one is about to be rebuilt.
    is_current: bool = False
    chunks: int = 0
    bytes: int = 0
    position: int = 0  #: Transactions up to this one are in it.
    lag: outbox.Lag = field(default_factory=lambda: outbox.Lag(0, 0.0))

    @property
    def problem(self) -> str:
        """The problem that an admin should know of; empty without one."""
        if not self.is_enabled or not self.is_due:
            return ""
        if not self.is_readable:
            return f"This machine has no readable {self.label} yet: run a worker or `manage.py {self.command} follow`."
        if not self.is_current:
            return "Made from another database or with other settings: must be rebuilt."
        late = self.lag.seconds >= LATE_SECONDS
        return f"{self.lag.seconds:.0f} seconds behind: is a worker running on this machine?" if late else ""


@dataclass(frozen=True, slots=True)
class Follower(ABC):
    """Keeps one read model of this machine up to date."""

    folder: Folder

    label: ClassVar[str]
    command: ClassVar[str]  #: Its subcommand of `manage.py`, with which its name in the outbox begins.

    @property
    @abstractmethod
    def is_enabled(self) -> bool:
        """Whether the settings want it on this machine."""

    @abstractmethod
    def about(self) -> About | None:
        """Return what a build of now would be made from; None while there is nothing to build from."""

    @abstractmethod
    def content(self) -> Content:
        """Return what is in the searched build; raise ReadModelUnavailableError."""

    @abstractmethod
    def replace(self, build: Path, batches: Iterator[Sequence[UUID]], position: int) -> None:
        """Take out all that is in a build of these documents, put in what they have now, and commit the position."""

    @abstractmethod
    def fill(self, build: Path, batches: Iterator[Sequence[UUID]], position: int, progress: Progress) -> int:
        """Put these documents in an empty build, commit the position, and return the number of chunks."""

    @abstractmethod
    def held(self, build: Path, part: int) -> Iterable[Entry]:
        """Return the chunks in a build of a part of the documents; raise ReadModelUnavailableError."""

    @abstractmethod
    def stored(self, build: Path, documents: Sequence[UUID]) -> Iterable[Entry]:
        """Return the chunks that a build should have of these documents, as the database is now."""

    @property
    def name(self) -> str:
        """The name under which the outbox knows how far it is."""
        return f"{self.command}-{self.folder.id}"

    def follow(self, progress: Progress = lambda _: None) -> Followed | None:
        """Take over what changed; without a build that can follow, make one. None while another process does it."""
        with self.folder.locked() as is_locked:
            if not is_locked:
                return None
            self.folder.clear()
            position = self._position()
            if position is None:
                return self._rebuilt(progress)
            try:
                return Followed(*self._followed(position))
            except ReadModelUnavailableError as error:
                logger.warning("%s.broken error=%r", self.command, error.__cause__ or error)
                return self._rebuilt(progress)

    def rebuild(self, progress: Progress = lambda _: None) -> Followed | None:
        """Make a new build next to the searched one, and switch to it; None while another process writes."""
        with self.folder.locked() as is_locked:
            return self._rebuilt(progress) if is_locked else None

    def reconcile(self, part: int) -> int | None:
        """Compare a part of the documents, 0 to 255, with the database, and replace those that differ.

        Returns the number of replaced documents; None if another process writes, or nothing is there that can follow.
        Changes that are yet to be followed are no difference. Raises ReadModelUnavailableError.
        """
        with self.folder.locked() as is_locked:
            position, build = self._position() if is_locked else None, self.folder.current
            if position is None or build is None:
                return None
            held = Counter(self.held(build, part))
            stored = Counter(chain.from_iterable(self.stored(build, it) for it in _documents(*high_halves(part))))
            differing = {document for document, _ in (held - stored) + (stored - held)}
            # Read last: whatever was changed in what is compared has an entry by now.
            differing -= outbox.changed_after(position, differing)
            if differing:
                self.replace(build, _batches(sorted(differing)), position)
                logger.warning("%s.reconciled documents=%d part=%d", self.command, len(differing), part)
            return len(differing)

    def keep_up(self) -> bool:
        """Follow where this machine keeps it; return whether it is well, and log what is wrong with it."""
        return self._is_well(self.follow)

    def keep_consistent(self, part: int) -> bool:
        """Compare a part where this machine keeps it; return whether it is well, and log what is wrong with it."""
        return self._is_well(partial(self.reconcile, part))

    def _is_well(self, step: Callable[[], object]) -> bool:
        if not self.is_enabled:
            return True
        try:
            step()
        except (ReadModelUnavailableError, OSError) as error:
            logger.warning("%s.failed error=%r", self.command, error.__cause__ or error)
            return False
        return True

    def status(self) -> ReadModelStatus:
        """Look at the read model and the outbox; where it is not kept, at neither."""
        if not self.is_enabled:
            return self._status(is_enabled=False)
        about, build = self.about(), self.folder.current
        try:
            content = self.content()
        except ReadModelUnavailableError:
            return self._status(is_due=about is not None)
        return self._status(
            is_due=about is not None,
            is_readable=True,
            is_current=build is not None and self.folder.about(build) == about,
            chunks=content.chunks,
            bytes=self.folder.size(),
            position=content.position,
            lag=outbox.lag(content.position),
        )

    def _status(self, *, is_enabled: bool = True, **facts: Any) -> ReadModelStatus:  # noqa: ANN401 -- the status's fields
        return ReadModelStatus(label=self.label, command=self.command, is_enabled=is_enabled, **facts)

    def _position(self) -> int | None:
        """Return how far it is; None where nothing is there that can follow: a broken one, or another database's."""
        build = self.folder.current
        if build is None or self.folder.about(build) != self.about():
            return None
        try:
            position = self.content().position
        except ReadModelUnavailableError as error:
            logger.warning("%s.unreadable build=%s error=%r", self.command, build.name, error.__cause__ or error)
            return None
        # A position that no transaction has reached is of another past.
        return position if outbox.pruned_up_to() <= position < outbox.newest() else None

    def _followed(self, position: int) -> tuple[int, int]:
        """Take over all that is settled by now; return the new position, and how many changes that took."""
        before = outbox.horizon()
        build, changes = self.folder.current, 0
        if build is None:
            raise ReadModelUnavailableError
        try:
            while entries := outbox.entries(after=position, before=before, limit=_CHANGES_AT_ONCE):
                documents = sorted({document for document, _ in entries})
                self.replace(build, _batches(documents), entries[-1][1])
                position, changes = entries[-1][1], changes + len(entries)
        finally:
            outbox.follows(self.name, position)
        if changes:
            logger.info("%s.followed changes=%d position=%d", self.command, changes, position)
        return position, changes

    def _rebuilt(self, progress: Progress) -> Followed:
        """Build from the current documents; changes during the build have a later transaction."""
        about, position = self.about(), outbox.horizon() - 1
        if about is None:
            return Followed(position, 0)
        outbox.follows(self.name, min(position, self._position() or position))
        build = self.folder.begin(about)
        chunks = self.fill(build, _documents(), position, progress)
        self.folder.switch(build)
        logger.info("%s.rebuilt build=%s chunks=%d position=%d", self.command, build.name, chunks, position)
        return Followed(*self._followed(position), is_rebuilt=True)


def _batches(documents: Sequence[UUID]) -> Iterator[Sequence[UUID]]:
    for first in range(0, len(documents), _DOCUMENTS_AT_ONCE):
        yield documents[first : first + _DOCUMENTS_AT_ONCE]


def high_halves(part: int) -> tuple[int, int]:
    """Return the first and the last higher half that the id of a document of a part can have."""
    return part << _PART_BITS, ((part + 1) << _PART_BITS) - 1


def _documents(first: int = 0, last: int = _MAX_HALF) -> Iterator[Sequence[UUID]]:
    """Yield the ids of the documents with these higher halves, in batches in the order of their ids."""
    start, end = UUID(int=first << _HALF_BITS), UUID(int=(last << _HALF_BITS) + _MAX_HALF)
    ids = Document.objects.filter(pk__lte=end).order_by("pk").values_list("pk", flat=True)
    while documents := list(ids.filter(pk__gte=start)[:_DOCUMENTS_AT_ONCE]):
        yield documents
        start = UUID(int=documents[-1].int + 1)
