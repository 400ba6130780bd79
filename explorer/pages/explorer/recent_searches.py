"""A cache of the Explorer's recent searches: another view of a search does not search again."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import Lock
from time import monotonic
from typing import Final

from corecube.access import Principal
from corecube.scope import AccessScope
from retrieval.index import outbox
from retrieval.index.store import VectorIndex
from retrieval.search import runtime
from retrieval.search.outcome import SearchOutcome
from retrieval.search.request import SearchRequest
from retrieval.search.service import search

#: The size of the cache, and its time to live. A search takes up to a few MB, mostly for the texts of its pool.
_ENTRIES: Final = 16
_SECONDS: Final = 300.0


@dataclass(frozen=True, slots=True)
class Asking:
    """A search as a page requests it."""

    request: SearchRequest
    principal: Principal
    whole: AccessScope  #: Everything that the principal may see now.

    @property
    def scope(self) -> AccessScope:
        """The scope of the search now, with the excluded connections that it would list."""
        without = self.request.narrowing.exclude
        included = (it.connection.id for it in self.whole.included if it.connection.slug not in without)
        return self.whole.only(included, reveal=self.request.reveal_excluded)

    def is_of(self, outcome: SearchOutcome) -> bool:
        """Return whether a search of the same request and principal had the same scope."""
        return outcome.state.scope == self.scope and outcome.state.is_admin == self.principal.is_admin


@dataclass(frozen=True, slots=True)
class CachedSearch:
    """A finished search, and what must be unchanged to show it again."""

    outcome: SearchOutcome
    request: SearchRequest
    principal: Principal
    index: VectorIndex
    mark: outbox.Mark  #: Set before the search.


@dataclass(frozen=True, slots=True)
class RecentSearches:
    """The recent searches by trace id, none older than `seconds`; thread-safe."""

    entries: int = _ENTRIES
    seconds: float = _SECONDS
    clock: Callable[[], float] = monotonic
    #: Time and search, the oldest first.
    _searches: OrderedDict[str, tuple[float, CachedSearch]] = field(
        default_factory=OrderedDict, init=False, repr=False, compare=False
    )
    _lock: Lock = field(default_factory=Lock, init=False, repr=False, compare=False)

    def get(self, trace: str) -> CachedSearch | None:
        """Return the search with a trace id; None if it is not cached."""
        with self._lock:
            self._evict()
            _, found = self._searches.get(trace, (0.0, None))
            return found

    def add(self, found: CachedSearch) -> None:
        """Cache a search and evict old ones."""
        with self._lock:
            self._searches[str(found.outcome.id)] = self.clock(), found
            self._evict()

    def _evict(self) -> None:
        while self._searches:
            at, _ = next(iter(self._searches.values()))
            if len(self._searches) <= self.entries and self.clock() - at < self.seconds:
                return
            self._searches.popitem(last=False)


_recent: Final = RecentSearches()


def searched(asking: Asking, trace: str) -> SearchOutcome:
    """Return the cached search with a trace id if it is the same and nothing in its scope has changed; else search.

    Raises what `retrieval.search.service.search` raises.
    """
    cached = _recent.get(trace)
    if cached and _is_current(cached, asking):
        return cached.outcome
    mark = outbox.mark(asking.scope.connection_ids)
    outcome = search(asking.request, principal=asking.principal)
    # The search reads the scope again; if it differs, the mark may not match.
    if outcome.is_recorded and outcome.resources and asking.is_of(outcome):
        # The cache must not hold models that are replaced later.
        light = replace(outcome, resources=None)
        _recent.add(CachedSearch(light, asking.request, asking.principal, outcome.resources.index, mark))
    return outcome


def _is_current(cached: CachedSearch, asking: Asking) -> bool:
    """Return whether a cached search is valid for a request: same query, access, documents and index."""
    if (cached.request, cached.principal) != (asking.request, asking.principal) or not asking.is_of(cached.outcome):
        return False
    is_unchanged = outbox.mark(asking.scope.connection_ids, since=cached.mark) == cached.mark
    return is_unchanged and runtime.resources().index == cached.index
