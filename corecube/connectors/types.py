"""What every connector gives: items with stable names, and their bytes."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, Protocol, Self, runtime_checkable

from corecube.errors import ConfigError, CoreCubeError


class ItemError(CoreCubeError):
    """One item of a source cannot be read."""

    status: ClassVar[int] = 422
    code: ClassVar[str] = "bad_file"

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class SourceItem:
    """One thing that a source holds."""

    #: What the source calls it, unique and stable within the connection.
    external_id: str
    #: Name as people know it; its suffix helps to choose the parser.
    name: str
    #: Where a person can open it; empty when nowhere.
    uri: str
    #: What the connector itself reads it by: a path, an address.
    locator: str
    modified_at: datetime | None
    media_type: str = ""
    #: Changes whenever the bytes or the facts do (blob id, ETag, page version), so that an item whose version is
    #: known need not be read. Empty where only reading tells.
    version: str = ""
    #: What the source says of the item beside its bytes: author, labels, ancestors ...
    facts: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class ItemProblem:
    """Something in the source that cannot be taken in, found while listing it."""

    external_id: str
    #: Stable word: unreadable, symlink, too_large ...
    reason: str
    message: str
    #: Whether it hides what lies below it as well: a folder that cannot be listed.
    covers_subtree: bool = False


@dataclass(frozen=True, slots=True)
class ItemGone:
    """Something that changed, and that a listing of everything would not show, or not any more."""

    external_id: str


@dataclass(frozen=True, slots=True)
class Capability:
    """One thing that a source must allow, and whether it does."""

    #: reach, authenticate, list or read.
    name: str
    ok: bool
    #: What was found, or why it failed; it holds no secret.
    message: str

    @classmethod
    def passed(cls, name: str, message: str) -> Self:
        """Return a capability that is there."""
        return cls(name, ok=True, message=message)

    @classmethod
    def failed(cls, name: str, message: str) -> Self:
        """Return a capability that is missing."""
        return cls(name, ok=False, message=message)


def require(capabilities: Iterable[Capability]) -> None:
    """Try capabilities in order; raise ConfigError with the message of the first that is missing."""
    for capability in capabilities:
        if not capability.ok:
            raise ConfigError(capability.message)


class Connector(Protocol):
    """Reads one source.

    What `items` yields is all that the source holds: what is missing from it is gone. A source that cannot be
    listed to its end therefore raises, and never ends early. `read` needs nothing but the item, so that another
    process than the one that listed it may call it.
    """

    def check(self) -> None:
        """Raise ConfigError when the source cannot be reached as configured."""
        ...

    def items(self) -> Iterator[SourceItem | ItemProblem]:
        """Yield what the source holds, in a stable order; a bad item is yielded as a problem, never raised.

        Costs as little as the source allows: no item's bytes are fetched only to list it. Raises ConfigError or
        UnavailableError where the listing cannot be had as a whole.
        """
        ...

    def read(self, item: SourceItem) -> bytes:
        """Return an item's bytes; raise ItemError."""
        ...


class ProbedConnector(Connector, Protocol):
    """A connector that can say, before anything is stored, what a source allows."""

    def preflight(self) -> Iterator[Capability]:
        """Yield the capabilities in the order in which they are needed; it ends with the first that is missing."""
        ...


@runtime_checkable
class IncrementalConnector(ProbedConnector, Protocol):
    """A connector that can tell what changed without listing everything."""

    def changed_since(self, moment: datetime) -> Iterator[SourceItem | ItemProblem | ItemGone]:
        """Yield at least the items that were made or changed since then; deletions only `items` shows.

        The moment is by this machine's clock; the connector allows for a source whose clock differs.
        """
        ...
