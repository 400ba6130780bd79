"""Recall: a search of the user's memory, then of all other connections, packed into one token budget."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final
from uuid import UUID

from corecube.access import Principal, ScopeRequest, scope_for
from corecube.errors import NotPermittedError
from corecube.models import Connection
from corecube.scope import ConnectionFacts
from retrieval.answers.memory.items import KIND, PROJECT, memory_in
from retrieval.engine.state import RequestFilter
from retrieval.engine.types import Hit, MemoryType, Passage, Ranking
from retrieval.models import Document, SearchRecord
from retrieval.presets.catalog import PRESETS
from retrieval.presets.helix.config import HelixConfig
from retrieval.ranking.packing import outside_in, pack
from retrieval.records.accesses import note_accesses
from retrieval.search import runtime
from retrieval.search.outcome import SearchOutcome
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from retrieval.stages.assemble import header

_MEMORY_HITS: Final = 100
_OTHER_HITS: Final = 50
_PRESET: Final = "helix"  #: The preferred preset: it is fast and supports memory types.


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What to recall. The fields after the budget filter only the memory."""

    query: str
    budget_tokens: int
    project: str = ""  #: Items of this project and of no project; empty for all.
    kinds: frozenset[MemoryType] = frozenset()
    since: datetime | None = None
    until: datetime | None = None
    surface: SearchRecord.Surface = SearchRecord.Surface.API

    @property
    def filter(self) -> RequestFilter:
        """The filter of the memory."""
        return RequestFilter(since=self.since, until=self.until, project=self.project, memory_types=self.kinds)


@dataclass(frozen=True, slots=True)
class RecalledItem:
    """A passage and its source."""

    passage: Passage
    connection: ConnectionFacts
    from_memory: bool
    kind: str = ""  #: Of a memory item; empty for other documents.
    project: str = ""

    @property
    def hit(self) -> Hit:
        """The hit of the passage."""
        return self.passage.hit


@dataclass(frozen=True, slots=True)
class Recalled:
    """The recalled items and their searches."""

    items: tuple[RecalledItem, ...]
    #: Ids of the stored traces: of the memory search, if there is a memory, and of the other search.
    trace_ids: tuple[UUID, ...]
    degraded: tuple[str, ...] = ()
    skipped: str = ""

    @property
    def token_count(self) -> int:
        """Tokens of all items with their headers."""
        return sum(item.passage.token_count for item in self.items)


def recall(question: Question, *, principal: Principal) -> Recalled:
    """Search as the principal and pack the hits, the best at both ends; raise as a search does."""
    scope = scope_for(principal)
    memory = memory_in(scope, principal.user)
    outcomes = [_search(question, principal, memory, of_memory=True)] if memory else []
    remembered = outcomes[0].hits if memory else ()
    ids = {hit.chunk_id.document_id for hit in remembered}
    documents = Document.objects.filter(connection=memory, pk__in=ids) if memory else Document.objects.none()
    facts = dict(documents.values_list("pk", "metadata"))
    others = _search(question, principal, memory, of_memory=False)
    ran = (*outcomes, others)
    # Each search computes the scope again: the second one may be wider.
    scopes = {hit.chunk_id: outcome.state.scope for outcome in ran for hit in outcome.hits}
    passages = outside_in(
        pack_in_turns(
            remembered,
            others.hits,
            budget_tokens=question.budget_tokens,
            limit=(others.config if isinstance(others.config, HelixConfig) else HelixConfig()).pack.max_passages,
            header=lambda number, hit: header(number, hit, scopes[hit.chunk_id]),
            count_tokens=runtime.resources().count_tokens,
        )
    )
    note_accesses(passage.hit.chunk_id.document_id for passage in passages)
    items = []
    for passage in passages:
        hit = passage.hit
        connection = scopes[hit.chunk_id].inclusion(hit.chunk.connection_id).connection
        own = facts.get(hit.chunk_id.document_id)
        kind, project = ("", "") if own is None else (own.get(KIND, ""), own.get(PROJECT, ""))
        items.append(RecalledItem(passage, connection, own is not None, kind, project))
    degraded = dict.fromkeys(code for outcome in ran for code in outcome.state.degraded)
    return Recalled(tuple(items), tuple(outcome.id for outcome in ran), tuple(degraded), others.skipped)


def _search(question: Question, principal: Principal, memory: Connection | None, *, of_memory: bool) -> SearchOutcome:
    slugs = (memory.slug,) if memory else ()
    request = SearchRequest(
        text=question.query,
        preset=usable_preset(principal),
        top_k=_MEMORY_HITS if of_memory else _OTHER_HITS,
        narrowing=ScopeRequest(include=slugs) if of_memory else ScopeRequest(exclude=slugs),
        filter=question.filter if of_memory else RequestFilter(),
        surface=question.surface,
    )
    return search(request, principal=principal)


def usable_preset(principal: Principal) -> str:
    """Return the preset for recall, or the first that the principal may use; raise NotPermittedError for none."""
    found = next((name for name in (_PRESET, *PRESETS) if principal.may_use(name)), None)
    if found is None:
        raise NotPermittedError("This API key may not use any preset.")
    return found


def pack_in_turns(
    memory: Ranking,
    rest: Ranking,
    *,
    budget_tokens: int,
    limit: int,
    header: Callable[[int, Hit], str],
    count_tokens: Callable[[str], int],
) -> tuple[Passage, ...]:
    """Return up to `limit` passages within the token budget, numbered from 1.

    First the memory with half of both limits, then the rest, then the remaining memory. Equal texts are packed once.
    """
    passages: tuple[Passage, ...] = ()
    for hits, share, count in (
        (memory, budget_tokens // 2, (limit + 1) // 2),
        (rest, budget_tokens, limit),
        (memory, budget_tokens, limit),
    ):
        taken = {passage.hit.chunk.content_hash for passage in passages}
        done = len(passages)
        more, _ = pack(
            tuple(hit for hit in hits if hit.chunk.content_hash not in taken)[: count - done],
            budget_tokens=share - sum(passage.token_count for passage in passages),
            header=lambda number, hit, done=done: header(number + done, hit),  # type: ignore[misc]
            count_tokens=count_tokens,
        )
        passages += tuple(replace(passage, number=passage.number + done) for passage in more)
    return passages
