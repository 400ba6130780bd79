"""Running every judged query of a collection through the production path, and measuring."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Final, Protocol

from corecube import process
from corecube.access import Principal, ScopeRequest
from corecube.models import Connection
from retrieval.engine.state import Span
from retrieval.engine.types import Ranking
from retrieval.errors import SearchTimeoutError
from retrieval.evaluation.corpus import document_names, evaluation_principal, first_vectors, ingested
from retrieval.evaluation.datasets import Dataset, JudgedQuery
from retrieval.evaluation.latency import latency_ms, times_of
from retrieval.evaluation.ordering import ordering
from retrieval.evaluation.stress import Stress, misspelled, with_false_links
from retrieval.evaluation.unjudged import without_judge
from retrieval.index import active
from retrieval.models import SearchRecord, Sync
from retrieval.ranking.measures import collection_measures
from retrieval.search import runtime
from retrieval.search.outcome import SearchOutcome
from retrieval.search.relevance import kept_relevance
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from retrieval.stages.resources import Resources

#: Hits asked for, so that measures cut at 100 see all they need.
DEPTH: Final = 100
_WARM_UP: Final = 5
#: The legs' fusion alone, among the legs.
_FUSED: Final = "fused"


class JudgedCollection(Protocol):
    """Questions with their judgments."""

    @property
    def name(self) -> str:
        """What tables call it."""
        ...

    @property
    def queries(self) -> Sequence[JudgedQuery]:
        """The questions, at least one."""
        ...

    @property
    def qrels(self) -> Mapping[str, Mapping[str, int]]:
        """Grade by query id, then document id."""
        ...


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One preset's figures on one collection."""

    preset: str
    dataset: str
    queries: int
    #: Mean over the queries, by the names in `collection_measures`.
    measures: dict[str, float]
    #: The same of each leg's own ranking, by the leg's name: fusing legs is worth it where it beats all of them. And of
    #: "fused", their fusion alone: what comes behind it is worth it where it beats that.
    legs: dict[str, dict[str, float]]
    latency_ms: dict[str, dict[str, float]]
    #: Mean tokens of the packed context.
    packed_tokens: float = 0.0
    #: Searches that fell back or were cut short, by a deadline that a busy machine missed for one: they say nothing of
    #: the preset.
    degraded: int = 0
    #: What the final order rests on, by the number of searches that it ordered: "model", "reranker", "blend", "signals"
    #: and the like. Searches without a hit are in none.
    ordered_by: dict[str, int] = field(default_factory=dict)


def evaluate(
    dataset: Dataset,
    *,
    preset: str,
    progress: Callable[[Sync], None],
    stress: Stress | None = None,
    is_judged: bool = False,
) -> Evaluation:
    """Return the preset's figures on the collection, which is ingested first unless it is there already.

    With `stress` the collection is made harder first; one with links that mislead is ingested beside the plain one.
    See `measured` for `is_judged`.
    """
    evaluation_principal()
    if stress is not None:
        dataset = _stressed(dataset, stress, progress)
    return measured(dataset, [ingested(dataset, progress)], preset=preset, is_judged=is_judged)


def measured(
    questions: JudgedCollection,
    connections: Sequence[Connection],
    *,
    preset: str,
    depth: int = DEPTH,
    is_judged: bool = False,
) -> Evaluation:
    """Ask every question of these connections alone, `depth` hits each, and return the preset's figures.

    Measures beyond the depth count what was not asked for as not found. A search whose time is up before it has
    anything to show found nothing. With `is_judged` the installation's language model judges candidates where the
    preset has it do so, at its cost; without, none is asked.
    """
    principal = evaluation_principal()
    names = document_names(connections)
    narrowing = ScopeRequest(include=tuple(connection.slug for connection in connections))
    runs: dict[str, dict[str, list[str]]] = {preset: {}}
    totals: list[float] = []
    traces: list[tuple[Span, ...]] = []
    tokens = degraded = 0
    ordered_by: Counter[str] = Counter()
    warm_up = questions.queries[:_WARM_UP]
    for place, query in enumerate((*warm_up, *questions.queries)):
        if place == len(warm_up):
            _begin_to_measure()
        started = perf_counter()
        request = SearchRequest(text=query.text, preset=preset, top_k=depth, narrowing=narrowing)
        # With a model handed in, no query's vector is kept from the warm-up.
        tools = runtime.resources(active.encoder())
        outcome = _found(request, principal, tools if is_judged else without_judge(tools))
        if place < len(warm_up):
            continue
        totals.append((perf_counter() - started) * 1000)
        if outcome is None:
            degraded += 1
        else:
            traces.append(times_of(outcome.trace))
            tokens += sum(passage.token_count for passage in outcome.passages)
            degraded += bool(outcome.state.degraded)
            ordered_by.update(ordering(hit) for hit in outcome.hits[:1])
            for name, ranking in {preset: outcome.hits, **outcome.state.rankings, **_fused(outcome.trace)}.items():
                runs.setdefault(name, {})[query.id] = document_ranking(ranking, names)
    SearchRecord.objects.filter(user=principal.user).delete()
    measures = {name: collection_measures(questions.qrels, run) for name, run in runs.items()}
    return Evaluation(
        preset=preset,
        dataset=questions.name,
        queries=len(questions.queries),
        measures=measures.pop(preset),
        legs=measures,
        latency_ms=dict(latency_ms(totals, traces)),
        packed_tokens=tokens / len(questions.queries),
        degraded=degraded,
        ordered_by=dict(ordered_by.most_common()),
    )


def _begin_to_measure() -> None:
    # What was judged to warm up would be known; and a web server that has loaded all this does not stop to collect it.
    kept_relevance.cache_clear()
    process.freeze_garbage()


def _found(request: SearchRequest, principal: Principal, resources: Resources) -> SearchOutcome | None:
    """Return what a search finds; None where its time was up before it had anything to show."""
    try:
        return search(request, principal=principal, resources=resources)
    except SearchTimeoutError:
        return None


def _fused(trace: Sequence[Span]) -> dict[str, Ranking]:
    """Return what fusing the legs left, before anything else changed the order."""
    spans = [span for span in trace if span.stage == "fuse"]
    return {_FUSED: spans[0].left} if spans else {}


def _stressed(dataset: Dataset, stress: Stress, progress: Callable[[Sync], None]) -> Dataset:
    if stress is Stress.TYPOS:
        return misspelled(dataset)
    plain = ingested(dataset, progress)
    return with_false_links(dataset, first_vectors(plain, index=active.active_index(active.encoder()).id))


def document_ranking(hits: Ranking, names: dict[Any, str]) -> list[str]:
    """Return the documents of a ranking of chunks by external id, each at its best chunk's place."""
    return list(dict.fromkeys(names[hit.chunk_id.document_id] for hit in hits))
