"""What other threads read while the query is embedded, which leaves a CPU core free."""

from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar

from retrieval.engine.pipeline import run_alone
from retrieval.engine.state import SearchState
from retrieval.stages.analyze import Analyze
from retrieval.stages.dense import FILES, Dense
from retrieval.stages.fulltext import Fulltext

_Value = TypeVar("_Value")


class Prefetch(Protocol):
    """Work for another thread, which a later stage waits for."""

    def begun(self, state: SearchState) -> SearchState:
        """Start the work and return the state with its futures."""


@dataclass(frozen=True, slots=True)
class PrefetchTerms:
    """Reads the query's terms, and then what needs nothing else of the stages before it."""

    analyze: Analyze
    executor: Executor
    then: Mapping[str, Callable[[SearchState], Any]]  #: What to read next, in order, by the stage that waits for it.

    def begun(self, state: SearchState) -> SearchState:
        """Return the state with futures of everything."""
        futures = {name: Future[Any]() for name in (self.analyze.name, *self.then)}
        self.executor.submit(self._read, state, futures)
        return replace(state, prefetch={**state.prefetch, **{name: it.result for name, it in futures.items()}})

    def _read(self, state: SearchState, futures: Mapping[str, "Future[Any]"]) -> None:
        terms = futures[self.analyze.name]
        settle(terms, partial(self.analyze.read, state))
        for name, read in self.then.items():
            # Without terms everything fails.
            settle(futures[name], partial(lambda read: read(replace(state, terms=terms.result())), read))


def prefetched_legs(dense: Dense, fulltext: Fulltext) -> Mapping[str, Callable[[SearchState], Any]]:
    """Return how to read what the vector leg needs besides a vector, and to run the full-text leg, which needs none."""
    return {FILES: dense.open_files, fulltext.name: partial(run_alone, fulltext)}


def settle(future: "Future[_Value]", call: Callable[[], _Value]) -> None:
    """Set a future to the value or the exception of a call."""
    try:
        future.set_result(call())
    except Exception as error:  # noqa: BLE001 -- handed to the caller by result()
        future.set_exception(error)
