"""The Explorer's latest searches, kept in memory for a while: another view of one is not another search."""

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

#: Searches that a process keeps, and for how long. One takes up to a few MB, most of it the texts of its pool.
_ENTRIES: Final = 16
_SECONDS: Final = 300.0


@dataclass(frozen=True, slots=True)
class Asking:
    """A search as a page asks for it."""

    request: SearchRequest
    principal: Principal
    #: All that the principal may see now.
    whole: AccessScope

    @property
    def scope(self) -> AccessScope:
        """What the search would read now, and what it would list as excluded."""
        without = self.request.narrowing.exclude
        kept = (it.connection.id for it in self.whole.included if it.connection.slug not in without)
        return self.whole.only(kept, reveal=self.request.reveal_excluded)

    def is_of(self, outcome: SearchOutcome) -> bool:
        """Return whether a search of the same request and principal read what this one would."""
        return outcome.state.scope == self.scope and outcome.state.is_admin == self.principal.is_admin


@dataclass(frozen=True, slots=True)
class KeptSearch:
    """A finished search, and what has to be the same for it to be shown again."""

    outcome: SearchOutcome
    request: SearchRequest
    principal: Principal
    index: VectorIndex
    #: Of before the search.
    mark: outbox.Mark


@dataclass(frozen=True, slots=True)
class RecentSearches:
    """The latest searches by trace id, none older than `seconds`; safe to use from several threads."""

    entries: int = _ENTRIES
    seconds: float = _SECONDS
    clock: Callable[[], float] = monotonic
    #: When each was kept, and what; the oldest first.
    _kept: OrderedDict[str, tuple[float, KeptSearch]] = field(
        default_factory=OrderedDict, init=False, repr=False, compare=False
    )
    _lock: Lock = field(default_factory=Lock, init=False, repr=False, compare=False)

    def get(self, trace: str) -> KeptSearch | None:
        """Return the search with a trace id; None where it is not kept any more, or never was."""
        with self._lock:
            self._let_go()
            _, found = self._kept.get(trace, (0.0, None))
            return found

    def keep(self, found: KeptSearch) -> None:
        """Keep a search; the oldest one goes."""
        with self._lock:
            self._kept[str(found.outcome.id)] = self.clock(), found
            self._let_go()

    def _let_go(self) -> None:
        """Forget what is too old, or too much."""
        while self._kept:
            at, _ = next(iter(self._kept.values()))
            if len(self._kept) <= self.entries and self.clock() - at < self.seconds:
                return
            self._kept.popitem(last=False)


_recent: Final = RecentSearches()


def searched(asking: Asking, trace: str) -> SearchOutcome:
    """Return the search with a trace id where it is the very same one and nothing in its scope has changed since.

    Any other is made anew, and kept. Raises what `retrieval.search.service.search` raises.
    """
    kept = _recent.get(trace)
    return kept.outcome if kept and _is_current(kept, asking) else _searched_anew(asking)


def _is_current(kept: KeptSearch, asking: Asking) -> bool:
    """Return whether a kept search may be shown to who asks now: same question, access, documents and index."""
    if (kept.request, kept.principal) != (asking.request, asking.principal) or not asking.is_of(kept.outcome):
        return False
    is_unchanged = outbox.mark(asking.scope.connection_ids, since=kept.mark) == kept.mark
    return is_unchanged and runtime.resources().index == kept.index


def _searched_anew(asking: Asking) -> SearchOutcome:
    mark = outbox.mark(asking.scope.connection_ids)
    outcome = search(asking.request, principal=asking.principal)
    # The scope of the search is read anew; where it differs, so may what the mark counted.
    if outcome.is_recorded and outcome.resources and asking.is_of(outcome):
        # Models that were exchanged since must not be held for it.
        lasting = replace(outcome, resources=None)
        _recent.keep(KeptSearch(lasting, asking.request, asking.principal, outcome.resources.index, mark))
    return outcome
