"""Run the judged queries of a collection through the production path and measure the results."""

import gc
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Final

from corecube.access import Principal, ScopeRequest
from corecube.models import Connection
from retrieval.engine.state import Span
from retrieval.engine.types import Hit, Ranking, ScoreType
from retrieval.errors import NoJudgeError, SearchTimeoutError
from retrieval.evaluation.corpus import document_names, evaluation_principal, first_vectors, ingested
from retrieval.evaluation.datasets import Dataset, JudgedQueries
from retrieval.evaluation.latency import latency_ms, times_of
from retrieval.evaluation.stress import Stress, in_one_case, misspelled, with_common_titles, with_false_links
from retrieval.index import active
from retrieval.models import SearchRecord, Sync
from retrieval.presets.contextpack.judge import Judge, Judged, RelevanceConfig
from retrieval.ranking.measures import collection_measures
from retrieval.search import runtime
from retrieval.search.outcome import SearchOutcome
from retrieval.search.prepare import kept_relevance
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from retrieval.stages.resources import Resources

DEPTH: Final = 100  #: Number of hits: enough for measures with the cutoff 100.
_WARM_UP: Final = 5
_MODEL: Final = "model"
_RERANKER: Final = "reranker"
_ORDERED_BY: Final[Mapping[ScoreType, str]] = {
    ScoreType.RUBRIC: _MODEL,
    ScoreType.LOGIT: _RERANKER,
    ScoreType.RELEVANCE: _RERANKER,
    ScoreType.MAXSIM: _RERANKER,
}


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The figures of a preset on a collection."""

    preset: str
    dataset: str
    queries: int
    measures: dict[str, float]  #: Mean over the queries, by the names in `collection_measures`.
    #: The measures of each search leg's ranking, and of "fused", the ranking before later stages. Fusion is useful if
    #: it beats all legs, later stages if they beat the fusion.
    legs: dict[str, dict[str, float]]
    latency_ms: dict[str, dict[str, float]]
    packed_tokens: float = 0.0
    #: Searches with a fallback or an early stop, such as a deadline missed on a busy machine: not the preset's fault.
    degraded: int = 0
    #: Number of searches by what ordered their hits: "model", "reranker", "blend", "signals" ... Searches without hits
    #: are not counted.
    ordered_by: dict[str, int] = field(default_factory=dict)


def evaluate(
    dataset: Dataset,
    *,
    preset: str,
    progress: Callable[[Sync], None],
    stress: Stress | None = None,
    is_judged: bool = False,
) -> Evaluation:
    """Return a preset's figures on a collection, ingested if it is not, harder under `stress`; see `measured`."""
    evaluation_principal()
    if stress is Stress.TYPOS:
        dataset = misspelled(dataset)
    elif stress is Stress.LINKS:
        original = ingested(dataset, progress)
        vectors = first_vectors(original, index=active.active_index(active.encoder()).id)
        dataset = with_false_links(dataset, vectors)
    elif stress is Stress.TITLES:
        dataset = with_common_titles(dataset)
    elif stress is not None:
        dataset = in_one_case(dataset, stress)
    return measured(dataset, [ingested(dataset, progress)], preset=preset, is_judged=is_judged)


def measured(
    questions: JudgedQueries,
    connections: Sequence[Connection],
    *,
    preset: str,
    depth: int = DEPTH,
    is_judged: bool = False,
) -> Evaluation:
    """Search these connections for every question, with `depth` hits each, and return the preset's figures.

    Measures with a higher cutoff count missing hits as not found. A search that times out without hits found nothing.
    With `is_judged` presets may use the installation's language model to judge candidates, which has a cost.
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
            # Judgments from the warm-up must not be cached; and like a web server, do not collect what is loaded now.
            kept_relevance.cache_clear()
            gc.freeze()
        started = perf_counter()
        request = SearchRequest(text=query.text, preset=preset, top_k=depth, narrowing=narrowing)
        # Passing the encoder avoids the cache of query vectors from the warm-up.
        resources = runtime.resources(active.encoder())
        outcome = _found(request, principal, resources if is_judged else without_judge(resources))
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


def _found(request: SearchRequest, principal: Principal, resources: Resources) -> SearchOutcome | None:
    """Return the outcome of a search; None if it timed out without hits."""
    try:
        return search(request, principal=principal, resources=resources)
    except SearchTimeoutError:
        return None


def _fused(trace: Sequence[Span]) -> dict[str, Ranking]:
    """Return the fused ranking, before later stages change the order."""
    return next(({"fused": span.left} for span in trace if span.stage == "fuse"), {})


def document_ranking(hits: Ranking, names: dict[Any, str]) -> list[str]:
    """Return the external ids of the documents in a ranking of chunks, each at the rank of its best chunk."""
    return list(dict.fromkeys(names[hit.chunk_id.document_id] for hit in hits))


def ordering(hit: Hit) -> str:
    """Return what ordered a hit: "model" (a judging language model), "reranker", or its score type, such as "blend"."""
    if hit.score_type is ScoreType.MAPPED:
        first = ScoreType.BLEND if "blend" in hit.signals else ScoreType.COSINE
        return _RERANKER if "rerank" in hit.signals else first.value
    return _ORDERED_BY.get(hit.score_type, hit.score_type.value)


def without_judge(resources: Resources) -> Resources:
    """Return the resources without a judging language model."""

    def no_judge(question: str, hits: Ranking, *, config: RelevanceConfig, seconds: float) -> Judged:  # noqa: ARG001 -- the protocol's
        raise NoJudgeError

    return resources.with_part(Judge, Judge(no_judge))
