"""The plan of a benchmark: what it builds and measures."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from corecube.errors import InvalidRequestError
from retrieval.index.scans import ScanChoice

CONNECTIONS: Final = 100  #: All of one size, so that a scope of P connections contains P percent of the chunks.
_MIN_CHUNKS: Final = 1_000
_MAX_CHUNKS: Final = 5_000_000
_MAX_QUERIES: Final = 10_000
_MAX_PASSES: Final = 100
_MAX_READERS: Final = 1_000
_MAX_PROCESSES: Final = 64
#: Measured at 100,000 chunks, including sorting; the server's log needs additional space.
_BYTES_PER_CHUNK: Final = 14_000
_LOG_BYTES: Final = 2 * 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to build and measure. Raises InvalidRequestError for values out of range."""

    preset: str
    chunks: int  #: 1,000 to 5,000,000.
    scopes: tuple[int, ...]  #: Percent of the chunks in scope, 1 to 100, with a series of searches for each.
    queries: int
    seed: int
    passes: int = 1  #: Searches per query, 1 to 100, in passes over all queries.
    scan: ScanChoice = field(default_factory=ScanChoice)
    #: Numbers of concurrent readers over HTTP, 1 to 1,000, with a series of searches for each in the first scope.
    readers: tuple[int, ...] = ()
    web_processes: int = 1  #: Of the web server for the readers.

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> "Plan":
        """Return the plan from its fields in JSON."""
        lists = {name: tuple(fields[name]) for name in ("scopes", "readers")}
        return cls(**{**fields, **lists, "scan": ScanChoice(**fields["scan"])})

    @property
    def nested(self) -> bool:
        """Whether the first dimensions of the vectors are the most important, which a prefix scan needs."""
        return self.scan.scan == "prefix"

    def __post_init__(self) -> None:
        _require("the number of chunks", self.chunks, _MIN_CHUNKS, _MAX_CHUNKS)
        _require("the number of queries", self.queries, 1, _MAX_QUERIES)
        _require("the number of passes", self.passes, 1, _MAX_PASSES)
        _require("the seed", self.seed, 0, 2**32)
        for percent in self.scopes:
            _require("a scope's percentage", percent, 1, CONNECTIONS)
        for readers in self.readers:
            _require("the number of readers", readers, 1, _MAX_READERS)
        _require("the number of web processes", self.web_processes, 1, _MAX_PROCESSES)


def chunks_in(connection: int, chunks: int) -> int:
    """Return the share of `chunks` of the connection with this number, from 0."""
    return chunks * (connection + 1) // CONNECTIONS - chunks * connection // CONNECTIONS


def connections_in(percent: int) -> tuple[int, ...]:
    """Return the numbers of the connections in a scope of `percent` of the chunks, evenly distributed."""
    return tuple(number for number in range(CONNECTIONS) if number * percent % CONNECTIONS < percent)


def require_space(chunks: int, free_bytes: int) -> None:
    """Raise InvalidRequestError if a database of `chunks` chunks would not fit."""
    needed = chunks * _BYTES_PER_CHUNK + _LOG_BYTES
    if free_bytes < needed:
        raise InvalidRequestError(
            f"{chunks:,} chunks need about {needed / 2**30:.1f} GiB; {free_bytes / 2**30:.1f} GiB are free."
        )


def _require(what: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise InvalidRequestError(f"{what.capitalize()} must be between {low:,} and {high:,}, not {value:,}.")
