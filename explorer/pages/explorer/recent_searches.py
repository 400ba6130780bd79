"""A cache of the Explorer's recent searches: another view of a search does not search again."""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Final

from corecube.access import Principal
from corecube.replicas import replicas
from corecube.scope import AccessScope
from retrieval.engine.caches import RecentCache
from retrieval.index import outbox
from retrieval.index.store import VectorIndex
from retrieval.search import runtime
from retrieval.search.live import live_search
from retrieval.search.outcome import SearchOutcome
from retrieval.search.request import SearchRequest
from retrieval.search.service import search


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

    def key(self, trace: str) -> Hashable:
        """Return the key of a search with this trace id: nobody else gets it."""
        principal = self.principal
        return trace, principal.user.pk, principal.key and principal.key.pk, principal.actor and principal.actor.pk

    def is_of(self, outcome: SearchOutcome) -> bool:
        """Return whether a search of the same request and principal had the same scope."""
        return outcome.state.scope == self.scope and outcome.state.is_admin == self.principal.is_admin


@dataclass(frozen=True, slots=True)
class CachedSearch:
    """A finished search, and what must be unchanged to show it again."""

    outcome: SearchOutcome
    request: SearchRequest
    index: VectorIndex
    mark: outbox.Mark  #: Set before the search.


#: A search takes up to a few MB, mostly for the texts of its pool.
_recent: Final = RecentCache[CachedSearch](entries=16, seconds=300, kind="recent_searches")


def searched(asking: Asking, trace: str) -> SearchOutcome:
    """Return the cached search with a trace id if it is the same and nothing in its scope has changed; else search.

    Raises what `retrieval.search.service.search` raises.
    """
    cached = _recent.get(asking.key(trace)) if trace else None
    if cached and _is_current(cached, asking):
        return cached.outcome
    mark = outbox.mark(asking.scope.connection_ids)
    # What an admin inspects takes part in no experiment: each view must be of one preset, and the same again.
    ask = search if asking.principal.user.is_admin else live_search
    outcome = ask(asking.request, principal=asking.principal)
    # The search reads the scope again; if it differs, the mark may not match.
    # A replica may lack changes before the mark.
    if outcome.is_recorded and outcome.resources and asking.is_of(outcome) and not replicas().each:
        # The cache must not hold models that are replaced later, nor what only the running search needs.
        light = replace(outcome, resources=None, pending=None, state=replace(outcome.state, prefetch={}))
        _recent.put(asking.key(str(outcome.id)), CachedSearch(light, asking.request, outcome.resources.index, mark))
    return outcome


def _is_current(cached: CachedSearch, asking: Asking) -> bool:
    """Return whether a cached search is valid for a request: same query, access, documents and index."""
    if cached.request != asking.request or not asking.is_of(cached.outcome):
        return False
    is_unchanged = outbox.mark(asking.scope.connection_ids, since=cached.mark) == cached.mark
    return is_unchanged and runtime.resources().index == cached.index
