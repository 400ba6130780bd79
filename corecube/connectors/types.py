"""Types that all connectors share: items, problems, capabilities and the connector protocols."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, Self, runtime_checkable

from corecube.errors import ConfigError, CoreCubeError


class ItemError(CoreCubeError, status=422, code="bad_file"):
    """One item of a source cannot be read."""

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class SourceItem:
    """An item of a source."""

    external_id: str  #: The source's id of the item, unique and stable within the connection.
    name: str  #: Display name; its suffix helps to choose the parser.
    uri: str  #: Address for users; empty without one.
    locator: str  #: The path or address by which the connector reads it.
    modified_at: datetime | None
    media_type: str = ""
    #: Changes whenever the bytes or the facts do (blob id, ETag, page version), so that an item of a known version
    #: is not read again. Empty if the source has no versions.
    version: str = ""
    #: Metadata from the source: author, labels, ancestors ...
    facts: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class ItemProblem:
    """An item that cannot be ingested, found while listing the source."""

    external_id: str
    reason: str  #: Stable code: unreadable, symlink, too_large ...
    message: str
    covers_subtree: bool = False  #: Whether everything below it is hidden too: a folder that cannot be listed.


@dataclass(frozen=True, slots=True)
class ItemGone:
    """A changed item that a full listing would not contain."""

    external_id: str


@dataclass(frozen=True, slots=True)
class Capability:
    """The result of one check of a source."""

    name: str  #: reach, authenticate, list or read.
    ok: bool
    message: str  #: The result or the reason of the failure, without secrets.

    @classmethod
    def passed(cls, name: str, message: str) -> Self:
        """Return a passed check."""
        return cls(name, ok=True, message=message)

    @classmethod
    def failed(cls, name: str, message: str) -> Self:
        """Return a failed check."""
        return cls(name, ok=False, message=message)


def require(capabilities: Iterable[Capability]) -> None:
    """Raise ConfigError with the message of the first failed check."""
    for capability in capabilities:
        if not capability.ok:
            raise ConfigError(capability.message)


class Connector(Protocol):
    """Reads one source.

    `items` yields everything in the source; items that it does not yield count as deleted. A source that cannot be
    listed completely therefore raises, and never ends early. `read` needs only the item, so that another process
    than the one that listed it may call it.
    """

    def check(self) -> None:
        """Raise ConfigError with the message of the first failed check."""
        require(self.preflight())

    def preflight(self) -> Iterator[Capability]:
        """Yield the results of the checks of the source in order, up to the first failure; nothing is stored."""
        ...

    def items(self) -> Iterator[SourceItem | ItemProblem]:
        """Yield the items in a stable order; an unreadable item is yielded as a problem, never raised.

        Does not fetch the bytes of items if the source allows that. Raises ConfigError or UnavailableError if the
        listing cannot be completed.
        """
        ...

    def read(self, item: SourceItem) -> bytes:
        """Return an item's bytes; raise ItemError."""
        ...


@runtime_checkable
class IncrementalConnector(Connector, Protocol):
    """A connector that can list changes without listing everything."""

    def changed_since(self, moment: datetime) -> Iterator[SourceItem | ItemProblem | ItemGone]:
        """Yield at least the items that were created or changed since then, without deletions.

        The time is by this machine's clock; the connector allows for a source whose clock differs.
        """
        ...
