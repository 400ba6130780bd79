"""What every connector gives: items with stable names, and their bytes."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Protocol

from corecube.errors import CoreCubeError


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


@dataclass(frozen=True, slots=True)
class ItemProblem:
    """Something in the source that cannot be taken in, found while listing it."""

    external_id: str
    #: Stable word: unreadable, symlink, too_large ...
    reason: str
    message: str
    #: Whether it hides what lies below it as well: a folder that cannot be listed.
    covers_subtree: bool = False


class Connector(Protocol):
    """Reads one source."""

    def check(self) -> None:
        """Raise ConfigError when the source cannot be reached as configured."""
        ...

    def items(self) -> Iterator[SourceItem | ItemProblem]:
        """Yield what the source holds, in a stable order; a bad item is yielded as a problem, never raised."""
        ...

    def read(self, item: SourceItem) -> bytes:
        """Return an item's bytes; raise ItemError."""
        ...
