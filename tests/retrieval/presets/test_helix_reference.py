"""`helix@reference`: every number of its document, read from there, and what its pipeline does with them."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from corecube.access import scope_for
from retrieval.encoders.remote_reranker import RemoteReranker, RerankService
from retrieval.engine.deadline import Deadline
from retrieval.engine.query import read_query
from retrieval.engine.state import SearchState
from retrieval.evaluation.bench.budget import BUDGETS, TOTAL_MS
from retrieval.index import active
from retrieval.index.bm25.follower import follower
from retrieval.ingest.sync import sync_connection
from retrieval.presets.catalog import PRESETS
from retrieval.presets.helix.optional_rerank import MAX_PAIRS, QueuedTier
from retrieval.presets.helix.stages.signals import RankedAs
from retrieval.search import runtime
from tests.retrieval.presets.helix.test_preset import FORBIDDEN, reachable

REFERENCE = PRESETS["helix@reference"]

#: The document's sections, its words and its numbers, by the setting that holds each.
NUMBERS = [
    ("3. Hybrid retrieve: dense top-100", "dense.depth", 100),
    ("3. Hybrid retrieve: BM25 top-100", "bm25.depth", 100),
    ("4. RRF fuse: k = 60", "fusion.rank_constant", 60),
    ("4. RRF fuse: ranked top-100", "fusion.pool", 100),
    ("5. Graph expansion: the top-100 becomes the seed set", "associate.seeds", 100),
    ("5. Graph expansion: 1-2 hop", "associate.hops", 2),
    ("5. Graph expansion: ~120-160 candidates", "associate.pool", 160),
    ("3 Ranking: min-max normalized within the pool", "signals.min_span", 0),
    ("3 Ranking: sim from RRF-fused rank", "signals.fused_share", 1),
    ("3 Ranking: 0.995/hr", "signals.hourly_decay", 0.995),
    ("3 Ranking: weights per memory type", "signals.own_weights", 1),
    ("2. Scope: memory type as pre-filter", "route.filters_type", 1),
    ("5 Rerank: off by default", "rerank.candidates", 0),
    ("7 Packing: Jaccard ~0.8", "near_duplicates.min_similarity", 0.8),
    ("7 Packing: MMR lambda = 0.5", "diversify.relevance", 0.5),
    ("7 Packing: max sim of any pair", "diversify.min_cosine", 0),
]
#: The table "memory type: sim, recency, salience, confidence, graph".
WEIGHTS = {
    "episodic": (0.35, 0.30, 0.15, 0.10, 0.10),
    "semantic": (0.40, 0.05, 0.20, 0.20, 0.15),
    "procedural": (0.45, 0.10, 0.25, 0.15, 0.05),
    "decision": (0.35, 0.10, 0.25, 0.25, 0.05),
    "code": (0.50, 0.15, 0.10, 0.10, 0.15),
}
#: The latency budget: milliseconds by the number of the stage; 3a and 3b run in parallel.
LATENCY = {"1": 8, "2": 3, "3a": 25, "3b": 15, "4": 2, "5": 30, "6": 8, "7": 10, "8": 6}
NOW = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.mark.parametrize(("says", "setting", "value"), NUMBERS)
def test_a_number_of_the_document_is_that_of_the_setting(says, setting, value):
    assert REFERENCE.defaults.values()[setting] == value, says


@pytest.mark.parametrize(("memory_type", "weights"), WEIGHTS.items())
def test_a_memory_type_has_the_documents_weights(memory_type, weights):
    names = ("similarity", "recency", "salience", "confidence", "graph")
    own = REFERENCE.defaults.values()
    assert tuple(own[f"signals.{memory_type}.{name}"] for name in names) == weights
    assert sum(weights) == pytest.approx(1.0)


def test_the_latency_table_is_shown_and_is_what_the_benchmark_compares_with():
    assert {budget.step.split()[0]: budget.milliseconds for budget in BUDGETS} == LATENCY
    said = [line.says for line in REFERENCE.lines if line.section == "Latency budget"]
    assert [says.split()[0] for says in said[1:]] == list(LATENCY)
    assert [float(says.removesuffix(" ms").rpartition(" ")[2]) for says in said[1:]] == list(LATENCY.values())
    # BM25 runs beside the vectors: 92 ms of 150, and 58 are left.
    assert sum(LATENCY.values()) - LATENCY["3b"] == TOTAL_MS - 58 == 92
    assert f"{TOTAL_MS:g} ms" in said[0]


def test_a_cross_encoder_on_a_cpu_gets_the_top_thirty_at_most():
    assert MAX_PAIRS == 30


@pytest.fixture
def world(world, settings):
    """The cast with a BM25 index of what they have."""
    settings.CORECUBE_BM25 = True
    follower().rebuild()
    return world


def tools(**more):
    return replace(runtime.resources(active.encoder()), **more)


def ran(world, text, *, name="bob", resources=None, **overrides):
    """Return the state after a search with time enough."""
    state = SearchState(
        query=read_query(text, characters=500),
        scope=scope_for(world.principal(name)),
        deadline=Deadline.after(60.0),
        now=NOW,
        top_k=10,
    )
    config = REFERENCE.defaults.with_values(overrides)
    return REFERENCE.build(config, resources or tools()).run(state)


def notes(state, code):
    return [note.text for span in state.trace for note in span.notes if note.code == code]


@pytest.mark.usefixtures("world")
class TestPipeline:
    def test_its_stages_are_the_documents_in_their_order(self):
        assert str(REFERENCE.build(REFERENCE.defaults, tools())) == (
            "embed >> analyze >> route >> (dense | bm25) >> fuse >> associate >> complete >> access >> signals"
            " >> near_duplicates >> diversify >> pack >> answerability"
        )

    def test_it_reaches_no_language_model_and_no_service(self):
        service = RemoteReranker(RerankService(kind="tei", url="http://localhost:1/rerank"))
        held = reachable(REFERENCE.build(REFERENCE.defaults, tools(reranker=service)))
        assert [it for it in held if isinstance(it, FORBIDDEN)] == []

    def test_in_the_async_tier_it_reaches_the_reranking_service_and_no_language_model(self):
        service = RemoteReranker(RerankService(kind="tei", url="http://localhost:1/rerank"))
        queued = tools(reranker=service).with_part(QueuedTier, QueuedTier())
        held = reachable(REFERENCE.build(REFERENCE.defaults, queued))
        assert any(it is service for it in held)
        assert [it for it in held if hasattr(it, "stream") and hasattr(it, "is_extractive")] == []

    def test_what_only_the_tuned_version_has_is_not_shown(self):
        assert REFERENCE.base == "helix"
        assert type(REFERENCE.defaults).unused >= {"graph.named", "quality.minimum"}


class TestSearch:
    def test_a_question_finds_its_document_and_every_number_adds_up(self, world):
        state = ran(world, "how do we roll back staging?")
        assert state.hits[0].chunk.title == "Rolling back"
        assert state.degraded == ()
        assert all(sum(hit.contributions.values()) == pytest.approx(hit.score) for hit in state.hits)
        numbers = [passage.number for passage in state.passages]
        assert (numbers[0], numbers[-1]) == (1, 2)

    def test_similarity_is_the_fused_score_over_the_pool(self, world):
        state = ran(world, "roll back staging queue", **{"near_duplicates.min_similarity": 1.0})
        rrf = {hit.chunk_id: hit.signals["rrf"] for hit in state.hits}
        low, high = min(rrf.values()), max(rrf.values())
        assert high > low
        for hit in state.hits:
            assert hit.signals["similarity"] == pytest.approx((rrf[hit.chunk_id] - low) / (high - low))

    def test_each_hit_is_ranked_with_the_weights_of_its_own_type(self, world):
        path = world.root / "runbooks" / "adr.md"
        path.write_text("# Decision: how we roll back staging\n\nWe decided to roll back staging by hand.\n")
        sync_connection(world.runbooks)
        state = ran(world, "roll back staging")
        ranked = state.part(RankedAs)
        types = {str(ranked.of(hit)) for hit in state.hits}
        assert len(types) > 1
        for hit in state.hits:
            weights = WEIGHTS[ranked.of(hit)]
            assert hit.contributions["similarity"] == pytest.approx(weights[0] * hit.signals["similarity"])
        (text,) = notes(state, "ranked_as")
        assert text.startswith("Ranked with the weights of each hit's memory type: ")

    def test_an_index_that_is_not_int8_is_searched_as_it_is_with_a_note(self, world):
        (text,) = notes(ran(world, "rollback"), "dense_storage")
        assert text == "The document stores vectors as int8; this index is halfvec."
        int8 = tools()
        int8 = replace(int8, index=replace(int8.index, scan="int8"))
        assert notes(ran(world, "rollback", resources=int8), "dense_storage") == []
