"""The numbers that production use of these sections arrived at, each against where it stands."""

import pytest

from retrieval.engine.admission_ladder import LadderConfig, PoolConfig
from retrieval.engine.deadline import SOFT_SHARE
from retrieval.presets.consolidated.evidence.cascade import CascadeConfig
from retrieval.presets.consolidated.evidence.density import DensityConfig
from retrieval.presets.consolidated.evidence.depth import DepthConfig, adaptive_top_k, over_fetched
from retrieval.presets.consolidated.evidence.order import PrecedenceConfig
from retrieval.presets.consolidated.evidence.rerank_guard import BreakerConfig
from retrieval.presets.consolidated.evidence.scoring import RerankPlanConfig, SemanticBm25Config
from retrieval.presets.consolidated.evidence.section_reading import SHIPPED, shipped
from retrieval.presets.consolidated.stages.fuse import PrimaryConfig
from retrieval.presets.consolidated.stages.sources import SourceRecoveryConfig

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
DEPTH, DENSITY, LADDER = DepthConfig(), DensityConfig(), LadderConfig()


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


TABLE = [
    (DEPTH, {"few_documents": 2, "some_documents": 10, "few_factor": 1.75, "some_factor": 1.0, "many_factor": 1.5}),
    (PrimaryConfig(), {"sparse_weight": 0.3}),
    (DEPTH, {"minimum": 8, "over_fetch": 1.5, "over_fetch_limit": 1.6}),
    (SourceRecoveryConfig(), {"ceiling_seconds": 12.0, "max_protected": 8}),
    (CascadeConfig(), {"first_wait_seconds": 0.5, "max_wait_seconds": 4.0, "jitter": 0.25, "structure_minimum": 3}),
    (DENSITY, {"cliff_ratio": 0.85, "cliff_drop": 0.05, "rate_from": 0.02, "rate_to": 0.40}),
    (SemanticBm25Config(), {"semantic": 0.7, "bm25": 0.3}),
    (RerankPlanConfig(), {"chunk_ms": 25.0, "split_above": 80, "batch": 60}),
    (BreakerConfig(), {"failures": 3, "open_seconds": 60.0, "successes": 2}),
    (PrecedenceConfig(), {"fallback_share": 0.5}),
    (PoolConfig(), {"connections": 96, "retrieval_slots": 16, "ingest_slots": 16}),
    (LADDER, {"triage": 0.80, "triage_seconds": 2.0, "hard_reject": 0.88, "short_budget_reject": 0.90}),
    (LADDER, {"short_budget_seconds": 12.0, "recovery_skip": 0.92}),
]


@pytest.mark.parametrize(("config", "numbers"), TABLE)
def test_the_numbers_that_hold_for_every_section(config, numbers):
    assert {name: getattr(config, name) for name in numbers} == numbers


def test_the_floors_of_the_slots_and_the_share_of_the_soft_cancel():
    lows = {facts.name: facts.low for facts in PoolConfig.declared()}
    assert (lows["retrieval_slots"], lows["ingest_slots"]) == (16, 16)
    assert SOFT_SHARE == 0.85
