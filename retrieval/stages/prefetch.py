"""What other threads read while the query is embedded, which leaves a CPU core free."""

from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, Self, TypeVar

from retrieval.engine.pipeline import Stage, run_alone
from retrieval.engine.state import SearchState
from retrieval.stages.analyze import Analyze, with_terms

_Value = TypeVar("_Value")
Read = Callable[[SearchState], Any]  #: Returns what a stage waits for.


class Prefetch(Protocol):
    """Work for another thread, which a later stage waits for."""

    def begun(self, state: SearchState) -> SearchState:
        """Start the work and return the state with its futures."""


@dataclass(frozen=True, slots=True)
class PrefetchTerms:
    """Reads the query's terms, and then what needs nothing else of the stages before it."""

    analyze: Analyze
    executor: Executor
    then: Mapping[str, Read]  #: What to read next, in order, by the stage that waits for it.
    legs: tuple[Stage, ...] = ()  #: What to run after it: legs that need no vector.

    def only(self, leg: str) -> Self:
        """Return the same with only the leg of this name, if it is among the legs."""
        return replace(self, legs=tuple(it for it in self.legs if it.name == leg))

    def begun(self, state: SearchState) -> SearchState:
        """Return the state with futures of everything."""
        terms = Future[Any]()
        reads: dict[str, Read] = {**self.then, **{leg.name: partial(run_alone, leg) for leg in self.legs}}
        futures = {name: Future[Any]() for name in reads}

        def work() -> None:
            settle(terms, partial(self.analyze.read, state))
            for name, read in reads.items():
                # Without terms everything fails.
                settle(futures[name], partial(lambda read: read(with_terms(state, terms.result())), read))

        self.executor.submit(work)
        ahead = {name: future.result for name, future in {self.analyze.name: terms, **futures}.items()}
        return replace(state, prefetch={**state.prefetch, **ahead})


def settle(future: "Future[_Value]", call: Callable[[], _Value]) -> None:
    """Set a future to the value or the exception of a call."""
    try:
        future.set_result(call())
    except Exception as error:  # noqa: BLE001 -- handed to the caller by result()
        future.set_exception(error)
