"""Every number of the two documents that `consolidated@reference` follows, each against where it is.

The tables are written from the documents, under their headings. Numbers of sections are the same in the tuned preset.
"""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from corecube.errors import DatabaseUnavailableError
from retrieval.encoders import admission
from retrieval.encoders.breaker import BreakerState
from retrieval.encoders.cosine_scale import UNSCALED, CosineScale
from retrieval.encoders.embed_services import EmbedService
from retrieval.encoders.remote_encoder import RemoteEncoder
from retrieval.engine.admission_ladder import LadderConfig, PoolConfig
from retrieval.engine.deadline import SOFT_SHARE, Deadline
from retrieval.engine.state import Note, RequestFilter
from retrieval.presets.catalog import PRESETS
from retrieval.presets.consolidated.config import ConsolidatedConfig
from retrieval.presets.consolidated.evidence.cascade import Tier
from retrieval.presets.consolidated.evidence.depth import adaptive_top_k, over_fetched
from retrieval.presets.consolidated.evidence.phases import Phase, PhasedPipeline
from retrieval.presets.consolidated.evidence.rerank_guard import BreakerConfig
from retrieval.presets.consolidated.evidence.section_reading import SHIPPED, shipped
from retrieval.presets.consolidated.evidence.section_state import SectionAsk, SectionState
from retrieval.presets.consolidated.evidence.store_guard import StoreGuard
from retrieval.presets.consolidated.reference import reference_sections
from retrieval.presets.consolidated.stages.store import CheckStore
from retrieval.search import runtime
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from retrieval.text.document import CHUNK_PROFILES
from tests.retrieval.conftest import hit

REFERENCE = PRESETS["consolidated@reference"]
MEMO = shipped("property_memo")
COMPLEXITY = {"financial_analysis": 28, "risk_market": 11, "market_comparables": 30}
TOP_K = {
    "risk_dimension": 8,
    "exit_strategy": 30,
    "market_comparables": 30,
    "rental_comparables": 30,
    "sales_comparables": 30,
}
CAPS = {"market_comparables": 50, "rental_comparables": 50, "sales_comparables": 50}
SCORE_FLOORS = {
    "sponsor_background": 0.10,
    "exit_strategy": 0.10,
    "financial_analysis": 0.12,
    "risk_market": 0.14,
    "comparables_analysis": 0.15,
}
QUALITY_FLOORS = {"executive_summary": 0.35, "sponsor_background": 0.15}
SOURCES = {
    **dict.fromkeys(("risk_market", "market_analysis", "market_comparables"), (("costar",), ("excel",))),
    **dict.fromkeys(("financial_analysis", "key_metrics", "risk_financial"), (("excel",), ("costar",))),
    **dict.fromkeys(("investment_rationale", "exit_strategy"), (("excel",), ("costar",))),
    **dict.fromkeys(
        (
            *("sponsor_background", "risk_operational", "risk_regulatory"),
            *(it.name for it in MEMO.sections if it.name.startswith("property_")),
        ),
        ((), ("excel", "costar")),
    ),
}
SURVIVORS = {"financial_analysis": {"excel": 4}}
DEPTH = REFERENCE.defaults.depth


@pytest.mark.parametrize(
    ("field", "table"), [("complexity", COMPLEXITY), ("cap", CAPS), ("survivor_floors", SURVIVORS)]
)
def test_the_sections_numbers(field, table):
    assert {name: getattr(MEMO.section(name), field) for name in table} == table


def test_the_score_floors_and_the_default_of_every_other_section():
    named = {it.name: it.score_floor for it in MEMO.sections}
    assert named == {**dict.fromkeys(named, 0.18), **SCORE_FLOORS}


def test_the_quality_floors_and_the_default_of_every_other_section():
    named = {it.name: it.quality_floor for it in MEMO.sections}
    assert named == {**dict.fromkeys(named, 0.25), **QUALITY_FLOORS}


@pytest.mark.parametrize("name", SOURCES)
def test_which_sources_a_section_requires_and_which_are_optional(name):
    section = MEMO.section(name)
    assert (section.required, section.optional) == SOURCES[name]


def test_what_is_never_recovered_in_any_section():
    assert {it.never_recovered for it in MEMO.sections} == {("pdf", "user")}
    assert not any({"pdf", "user"} & set(it.required) for it in MEMO.sections)


def test_the_precedence():
    assert MEMO.precedence == ("user", "excel", "costar", "pdf")


def test_every_section_that_requires_spreadsheets_has_a_floor_of_survivors():
    excel = {it.name for it in MEMO.sections if "excel" in it.required}
    assert excel == {it.name for it in MEMO.sections if "excel" in it.survivor_floors}


def test_the_complexity_table_and_the_configured_top_k_are_aligned():
    asked = {it.name: adaptive_top_k(it.complexity, cap=it.cap, documents=5, config=DEPTH) for it in MEMO.sections}
    assert {name: asked[name] for name in TOP_K} == TOP_K
    assert (min(asked.values()), max(asked.values())) == (8, 30)
    assert asked == {it.name: it.complexity for it in MEMO.sections}
    assert min(asked, key=asked.get) == "risk_dimension"
    assert {name for name, top_k in asked.items() if top_k == 30} == set(TOP_K) - {"risk_dimension"}


def test_the_comparables_have_the_measured_cap():
    assert {it.name for it in MEMO.sections if it.cap == 50} == {*CAPS, "comparables_analysis"}


@pytest.mark.parametrize("documents", [2, 5, 20])
@pytest.mark.parametrize("name", SHIPPED)
def test_a_cap_of_our_own_leaves_room_for_every_factor_and_for_over_fetching(name, documents):
    """So Stage C has something to choose from: 28 x 1.75 = 49, and 49 x 1.5 = 73.5."""
    for section in shipped(name).sections:
        if section.cap != CAPS["market_comparables"]:
            top_k = adaptive_top_k(section.complexity, cap=section.cap, documents=documents, config=DEPTH)
            assert top_k == adaptive_top_k(section.complexity, cap=200, documents=documents, config=DEPTH)
            fetched = over_fetched(top_k, cap=section.cap, config=DEPTH)
            assert fetched >= 1.5 * top_k, section.name
            assert over_fetched(top_k, cap=200, config=DEPTH) == fetched


#: (section of the document, setting, value); the documents' own numbers.
SETTINGS = [
    ("Adaptive top-k", "depth.few_documents", 2),
    ("Adaptive top-k", "depth.few_factor", 1.75),
    ("Adaptive top-k", "depth.some_documents", 10),
    ("Adaptive top-k", "depth.some_factor", 1.0),
    ("Adaptive top-k", "depth.many_factor", 1.5),
    ("Adaptive top-k", "depth.minimum", 8),
    ("Adaptive top-k", "question.cap", 50),
    ("Phases", "time.reserve_share", 0.15),
    ("Stage A", "primary.sparse_weight", 0.3),
    ("Stage A", "question.quality_floor", 0.25),
    ("Stage A", "question.score_floor", 0.18),
    ("Stage B", "sources.ceiling_seconds", 12.0),
    ("Stage B", "sources.max_protected", 8),
    ("Stage C", "depth.over_fetch", 1.5),
    ("Stage C", "depth.over_fetch_limit", 1.6),
    ("Recovery", "cascade.first_wait_seconds", 0.5),
    ("Recovery", "cascade.max_wait_seconds", 4.0),
    ("Recovery", "cascade.jitter", 0.25),
    ("Recovery", "cascade.structure_minimum", 3),
    ("Two tiers", "semantic_bm25.semantic", 0.7),
    ("Two tiers", "semantic_bm25.bm25", 0.3),
    ("Fallback", "rerank.chunk_ms", 25.0),
    ("Fallback", "rerank.split_above", 80),
    ("Fallback", "rerank.batch", 60),
    ("Circuit breaker", "breaker.failures", 3),
    ("Circuit breaker", "breaker.open_seconds", 60.0),
    ("Circuit breaker", "breaker.successes", 2),
    ("Density-adaptive floor", "density.cliff_ratio", 0.85),
    ("Density-adaptive floor", "density.cliff_drop", 0.05),
    ("Density-adaptive floor", "density.rate_from", 0.02),
    ("Density-adaptive floor", "density.rate_to", 0.40),
    ("After reranking", "precedence.fallback_share", 0.5),
]
#: What the documents describe without a number; ours, named in the lines' notes.
OPEN = {
    "structure.headings": 8,
    "question.complexity": 10,
    "depth.sparse_below": 200,
    "depth.sparse_factor": 1.25,
    "depth.degraded_factor": 1.5,
    "fusion.rank_constant": 60,
    "retry.below": 3,
    "retry.beyond_from": 0,
    "precedence.limit": 0.004,
    "precedence.min_margin": 0.005,
    "fairness.document_share": 0.5,
    "fairness.type_share": 0.75,
}
#: Numbers of the installation.
SERVER = [
    (PoolConfig(), {"connections": 96, "retrieval_slots": 16, "ingest_slots": 16}),
    (LadderConfig(), {"triage": 0.80, "triage_seconds": 2.0, "hard_reject": 0.88, "short_budget_reject": 0.90}),
    (LadderConfig(), {"short_budget_seconds": 12.0, "recovery_skip": 0.92}),
    (CHUNK_PROFILES["chunk_first"], {"target": 768, "overlap": 128}),
]
PHASES = [
    ("setup", ["analyze", "embed", "setup"]),
    ("validation", ["store", "validate"]),
    ("structural_routing", ["structure"]),
    ("primary", ["legs", "fuse", "complete", "access", "floors", "quota"]),
    ("chunk_retry", ["chunk_retry"]),
    ("recovery", ["recovery"]),
    ("assembly", ["sources", "freshness", "dedupe", "tighten", "rerank", "protect", "precedence", "fairness"]),
    ("packing", ["assemble", "answerability"]),
]


class TestSections:
    """The tables of sections, in the section set as shipped."""

    @pytest.mark.parametrize(("field", "table"), [("complexity", COMPLEXITY), ("survivor_floors", SURVIVORS)])
    def test_the_sections_numbers(self, field, table):
        assert {name: getattr(MEMO.section(name), field) for name in table} == table

    def test_the_ceiling_of_the_comparables_is_that_of_every_section(self):
        assert {it.cap for it in reference_sections().sections} == {50}
        assert {name: MEMO.section(name).cap for name in CAPS} == CAPS

    def test_the_score_floors_and_the_default_of_every_other_section(self):
        named = {it.name: it.score_floor for it in MEMO.sections}
        assert named == {**dict.fromkeys(named, 0.18), **SCORE_FLOORS}

    def test_the_quality_floors_and_the_default_of_every_other_section(self):
        named = {it.name: it.quality_floor for it in MEMO.sections}
        assert named == {**dict.fromkeys(named, 0.25), **QUALITY_FLOORS}

    @pytest.mark.parametrize("name", SOURCES)
    def test_which_sources_a_section_requires_and_which_are_optional(self, name):
        section = MEMO.section(name)
        assert (section.required, section.optional) == SOURCES[name]

    def test_what_is_never_recovered_in_any_section(self):
        assert {it.never_recovered for it in MEMO.sections} == {("pdf", "user")}
        assert not any({"pdf", "user"} & set(it.required) for it in MEMO.sections)

    def test_the_precedence(self):
        assert reference_sections().precedence == ("user", "excel", "costar", "pdf")

    def test_every_section_that_requires_spreadsheets_has_a_floor_of_survivors(self):
        excel = {it.name for it in MEMO.sections if "excel" in it.required}
        assert excel == {it.name for it in MEMO.sections if "excel" in it.survivor_floors}

    def test_the_complexity_table_and_the_configured_top_k_are_aligned(self):
        sections = reference_sections().sections
        asked = {it.name: adaptive_top_k(it.complexity, cap=it.cap, documents=5, config=DEPTH) for it in sections}
        assert {name: asked[name] for name in TOP_K} == TOP_K
        assert (min(asked.values()), max(asked.values())) == (8, 30)
        assert asked == {it.name: it.complexity for it in MEMO.sections}
        assert min(asked, key=asked.get) == "risk_dimension"
        assert {name for name, top_k in asked.items() if top_k == 30} == set(TOP_K) - {"risk_dimension"}

    @pytest.mark.parametrize(
        ("name", "documents", "requested", "read"),
        [
            ("financial_analysis", 2, 49, 50),  # 28 x 1.75; 49 x 1.5 = 74, no more than 50
            ("financial_analysis", 5, 28, 42),
            ("financial_analysis", 11, 42, 50),  # 28 x 1.5 = 42
            ("market_comparables", 2, 50, 50),  # 30 x 1.75 = 53
            ("risk_market", 2, 20, 30),  # 11 x 1.75 = 19.25
            ("risk_dimension", 10, 8, 12),
        ],
    )
    def test_what_a_section_requests_and_reads(self, name, documents, requested, read):
        section = reference_sections().section(name)
        top_k = adaptive_top_k(section.complexity, cap=section.cap, documents=documents, config=DEPTH)
        assert (top_k, over_fetched(top_k, cap=section.cap, config=DEPTH)) == (requested, read)

    def test_which_sections_read_one_kind_of_content(self):
        hints = {it.name: it.hint for it in reference_sections().sections if it.hint}
        assert hints == {
            "financial_analysis": "table",
            "key_metrics": "figures",
            **dict.fromkeys((*CAPS, "comparables_analysis"), "table"),
        }

    @pytest.mark.parametrize("documents", [2, 5, 20])
    @pytest.mark.parametrize("name", SHIPPED)
    def test_a_cap_of_our_own_leaves_room_for_every_factor_and_for_over_fetching(self, name, documents):
        """In the tuned preset stage C has something to choose from: 28 x 1.75 = 49, and 49 x 1.5 = 73.5."""
        for section in shipped(name).sections:
            if section.cap != CAPS["market_comparables"]:
                top_k = adaptive_top_k(section.complexity, cap=section.cap, documents=documents, config=DEPTH)
                assert top_k == adaptive_top_k(section.complexity, cap=200, documents=documents, config=DEPTH)
                assert over_fetched(top_k, cap=section.cap, config=DEPTH) >= 1.5 * top_k, section.name


class TestNumbers:
    """Each setting, and the numbers of the installation."""

    @pytest.mark.parametrize(("_section", "setting", "value"), SETTINGS)
    def test_the_settings(self, _section, setting, value):
        assert REFERENCE.defaults.values()[setting] == value

    def test_the_lines_give_these_settings_and_no_others(self):
        given = {name: value for line in REFERENCE.lines for name, value in line.values.items()}
        assert given == {setting: value for _, setting, value in SETTINGS} | OPEN

    def test_what_no_line_gives_is_as_in_the_tuned_preset(self):
        tuned, values = ConsolidatedConfig().values(), REFERENCE.defaults.values()
        assert {name for name in values if values[name] != tuned[name]} == {"question.cap", "retry.beyond_from"}

    @pytest.mark.parametrize(("config", "numbers"), SERVER)
    def test_the_numbers_of_the_installation(self, config, numbers):
        assert {name: getattr(config, name) for name in numbers} == numbers

    def test_the_floors_of_the_slots_and_the_share_of_the_soft_cancel(self):
        lows = {facts.name: facts.low for facts in PoolConfig.declared()}
        assert (lows["retrieval_slots"], lows["ingest_slots"]) == (16, 16)
        assert SOFT_SHARE == REFERENCE.defaults.soft_share == 0.85
        assert admission.MIN_CALLS == 2

    def test_the_contexts_of_chunks_are_written_30_at_once_for_300_chunks(self, settings):
        assert (settings.CORECUBE_ENRICH_CONCURRENCY, settings.CORECUBE_ENRICH_CHUNKS) == (30, 300)

    def test_documents_and_queries_have_models_of_one_family_cut_to_1024_dimensions(self):
        service = EmbedService(
            kind="voyage", model="voyage-4-large", query_model="voyage-4", dim=1024, shorten="service"
        )
        bodies = [service.body(["text"], is_query=is_query) for is_query in (False, True)]
        assert [(it["model"], it["input_type"], it["output_dimension"]) for it in bodies] == [
            ("voyage-4-large", "document", 1024),
            ("voyage-4", "query", 1024),
        ]


class TestStages:
    """The order of phases and stages, and what they do otherwise than in the tuned preset."""

    @pytest.fixture
    def built(self, world):  # noqa: ARG002 -- makes the embedding index
        """Return a function that builds the pipeline, by default with the installation's resources."""
        return lambda tools=None: REFERENCE.build(REFERENCE.defaults, tools or runtime.resources())

    def test_the_order(self, built):
        assert [(phase.name, [it.name for it in phase.stages]) for phase in built().phases] == PHASES

    def test_the_tiers(self):
        assert [*Tier] == [Tier.DOCUMENTS, Tier.STRUCTURE, Tier.COMPARTMENT, Tier.INDEXES, Tier.LEXICAL]

    def test_floors_grades_and_cliffs_are_on_the_cosine_itself(self, built):
        tools = replace(runtime.resources(), scale=lambda _: CosineScale(0.5, is_measured=True))
        stages = {it.name: it for it in built(tools).stages}
        assert {stages[name].scale for name in ("floors", "recovery", "tighten")} == {UNSCALED}
        assert stages["floors"].scale.nearness_of(hit(1, cosine=0.17)) == 0.17

    def test_every_other_index_is_swept_by_cosines_as_they_are_services_too(self, built):
        others = next(it for it in built().stages if it.name == "recovery").tiers.other_indexes
        assert (others.scales, others.includes_services) == (None, True)

    def test_a_section_has_the_documents_numbers_whatever_an_admin_made_of_it(self, world):
        section = replace(MEMO.section("financial_analysis"), complexity=9, score_floor=0.9, keep=4)
        asked = SectionAsk(section_set=replace(MEMO, sections=(section,)), section=section)
        request = SearchRequest(text="rollback", preset=REFERENCE.name, section=asked)
        found = search(request, principal=world.principal("alice")).state.part(SectionState)
        # 4 documents in a sparse compartment: 28 x 1.25 = 35.
        assert (found.ask.section, found.top_k) == (reference_sections().section("financial_analysis"), 35)

    def test_another_sets_section_keeps_its_numbers(self, world):
        report = shipped("report")
        asked = SectionAsk(section_set=report, section=report.section("how_it_works"))
        request = SearchRequest(text="rollback", preset=REFERENCE.name, section=asked)
        assert search(request, principal=world.principal("alice")).state.part(SectionState).ask == asked

    def test_an_empty_pool_is_retried_without_its_documents_before_recovery(self, world):
        named = world.vault.documents.values_list("pk", flat=True)
        request = SearchRequest(
            text="rollback staging", preset=REFERENCE.name, filter=RequestFilter(documents=frozenset(named))
        )
        outcome = search(request, principal=world.principal("bob"))
        assert outcome.hits
        assert "chunk_retry_beyond" in outcome.state.degraded
        assert not any(it["event"] == "recovery_tier_result" for it in outcome.state.events)

    def test_what_the_installation_lacks_is_said(self, world):
        outcome = search(SearchRequest(text="rollback", preset=REFERENCE.name), principal=world.principal("bob"))
        assert outcome.hits
        assert {"one_embedding_model", "rerank_none"} <= set(outcome.state.degraded)

    @pytest.mark.parametrize(("query_model", "codes"), [("m", []), ("", ["one_embedding_model"])])
    def test_a_service_with_a_model_for_queries_is_what_the_document_has(self, built, query_model, codes):
        service = EmbedService(kind="voyage", model="m-large", query_model=query_model, dim=8)
        remote = RemoteEncoder(service, SimpleNamespace(path="", count=len))
        stages = {it.name: it for it in built(replace(runtime.resources(), encoder=remote)).stages}
        assert [note.code for note in stages["store"].lacking] == codes


class TestStore:
    """The breaker of the store, which the validation phase checks."""

    @pytest.fixture
    def run(self, state, clock):
        """Return a function that runs a search in which the store does something."""
        breaker = StoreGuard(clock).breaker(BreakerConfig())

        def search_by(does, *, seconds=20.0):
            phases = (Phase("validation", (CheckStore(),)), Phase("primary", (does,)))
            pipeline = PhasedPipeline.of(phases, breaker)
            return pipeline.run(replace(state, deadline=Deadline.after(seconds, clock))), breaker.state

        return search_by

    def test_three_searches_that_it_failed_pause_it_for_a_minute_and_two_that_work_end_that(self, run, clock):
        for _ in range(3):
            run(Store(timed_out=True))
        store = Store()
        after, breaker = run(store)
        assert (after.degraded, breaker, store.calls) == (("store_breaker_open",), BreakerState.OPEN, 0)
        clock.now += 60
        assert [run(store)[1] for _ in range(2)] == [BreakerState.HALF_OPEN, BreakerState.CLOSED]

    def test_a_request_with_too_little_time_is_no_failure(self, run):
        for _ in range(5):
            assert run(Store(timed_out=True), seconds=0.5)[1] is BreakerState.CLOSED

    def test_a_database_that_is_gone_is_a_failure(self, run):
        for _ in range(3):
            with pytest.raises(DatabaseUnavailableError):
                run(Store(error=DatabaseUnavailableError()))
        assert run(Store())[0].degraded == ("store_breaker_open",)


class Store:
    """A stage that reads the store."""

    name = "dense"
    needs = gives = frozenset()
    optional = False

    def __init__(self, *, timed_out=False, error=None):
        self.timed_out, self.error, self.calls = timed_out, error, 0

    def __call__(self, state):
        self.calls += 1
        if self.error:
            raise self.error
        return state.noted(Note("dense_timeout", "", degraded=True)) if self.timed_out else state
