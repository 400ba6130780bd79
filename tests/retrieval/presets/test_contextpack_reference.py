"""`contextpack@reference`: every number, field and step of its document, and what happens where it leaves one open."""

import inspect
import json
import uuid
from dataclasses import fields, replace

import pytest
from django.core.exceptions import ImproperlyConfigured

from corecube.errors import NotPermittedError
from retrieval.engine.state import DropReason
from retrieval.engine.types import PRIMARY, ChunkId, ScoreType
from retrieval.errors import OverridesError
from retrieval.index.types import Neighbour, Relation
from retrieval.llm.routing import is_model
from retrieval.models import LanguageModel, RoutingRule
from retrieval.presets.catalog import PRESETS
from retrieval.presets.contextpack import prompt
from retrieval.presets.contextpack.config import ContextPackConfig
from retrieval.presets.contextpack.judge import RelevanceConfig
from retrieval.presets.contextpack.pack import RerankResult, citations
from retrieval.presets.contextpack.packing import items, packed
from retrieval.presets.contextpack.stages.candidates import Candidates
from retrieval.presets.contextpack.stages.pack_context import ContextConfig
from retrieval.search import runtime
from retrieval.search.contextpack_reference import ReferencePack, retrieve
from retrieval.search.prepare import kept_relevance
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from tests.fake_llm import FakeLLM, Fault
from tests.obedient_model import fence_of, read
from tests.passages import made

REFERENCE = PRESETS["contextpack@reference"]
#: The document's numbers: its section, its field, the variable that sets it, our setting, its value.
NUMBERS = [
    ("RetrievalConfig", "neighbor_same_page", "RETRIEVAL_NEIGHBOR_SAME_PAGE", "neighbours.same_page", 1),
    ("RetrievalConfig", "neighbor_cross_page", "RETRIEVAL_NEIGHBOR_CROSS_PAGE", "neighbours.cross_page", 2),
    ("RetrievalConfig", "include_parents", "RETRIEVAL_INCLUDE_PARENTS", "neighbours.parents", True),
    ("RetrievalConfig", "final_max_tokens", "RETRIEVAL_FINAL_MAX_TOKENS", "context.budget_tokens", 12_000),
    (
        *("RetrievalConfig", "min_primary_hits_to_keep", "RETRIEVAL_MIN_PRIMARY_HITS_TO_KEEP"),
        *("context.min_primary", 3),
    ),
    ("RerankConfig", "max_candidates_to_rerank", "RERANK_MAX_CANDIDATES_TO_RERANK", "relevance.candidates", 50),
    ("RerankConfig", "return_top_n", "RERANK_RETURN_TOP_N", "relevance.top", 15),
    (
        *("RerankConfig", "max_text_chars_per_candidate", "RERANK_MAX_TEXT_CHARS_PER_CANDIDATE"),
        *("relevance.characters", 1200),
    ),
    ("RerankConfig", "strict_json_output", "RERANK_STRICT_JSON_OUTPUT", "relevance.strict_json", True),
]
#: The steps of "Retrieval Flow" as stages, and the two that a search here always has.
STAGES = {
    "Embed Query": ["analyze", "embed"],
    "Query Pinecone: top_k_dense": ["legs", "candidates"],
    "Fetch Candidate Texts": ["complete", "access"],
    "Rerank with LLM": ["judge_relevance"],
    "Assemble Context": ["neighbours", "pack_context"],
    "(ours)": ["answerability"],
}
RUBRIC = [(100, "answers the question directly"), (70, "only a part"), (40, "tangential"), (0, "unrelated")]
ASKED = "How long does draining the queue take?"
ANSWERING = "four minutes"


@pytest.mark.parametrize(("section", "name", "variable", "setting", "value"), NUMBERS)
def test_every_number_is_the_documents(section, name, variable, setting, value):
    assert variable == f"{'RERANK' if section == 'RerankConfig' else 'RETRIEVAL'}_{name.upper()}"
    assert REFERENCE.defaults.values()[setting] == value
    (line,) = [it for it in REFERENCE.lines if it.says.startswith(f"{name} ")]
    assert line.section == f"Configuration: {section}"
    assert line.values == {setting: value}


def test_the_model_is_the_documents():
    assert REFERENCE.defaults.relevance.model == "gpt-4o"
    assert ContextPackConfig().relevance.model == ""


@pytest.mark.usefixtures("world")
def test_the_stages_are_the_documents_steps_in_order():
    pipeline = REFERENCE.build(REFERENCE.defaults, runtime.resources())
    assert [stage.name for stage in pipeline.stages] == [name for names in STAGES.values() for name in names]
    assert pipeline.legs == REFERENCE.legs == ("dense",)


@pytest.mark.parametrize(("score", "words"), RUBRIC)
def test_the_rubric_is_the_documents(score, words):
    (line,) = [it for it in prompt.messages("?", ())[0]["content"].splitlines() if it.startswith(f"- {score}: ")]
    assert words in line


def test_the_fields_are_the_documents():
    assert [it.name for it in fields(ReferencePack)] == [
        *("query", "selected_chunks", "citations", "trace", "context_pack")
    ]
    assert {"chunk_id", "relevance_score", "answerability", "key_evidence"} <= {it.name for it in fields(RerankResult)}
    names = ["query", "filters", "cfg", "all_chunks", "llm_config"]
    assert list(inspect.signature(retrieve).parameters)[:5] == names


class TestEnvironment:
    def test_without_variables_it_is_the_reference(self):
        assert ContextPackConfig.from_env() == REFERENCE.defaults

    @pytest.mark.parametrize(("section", "name", "variable", "setting", "value"), NUMBERS)
    def test_a_variable_sets_its_number_alone(self, monkeypatch, section, name, variable, setting, value):  # noqa: ARG002 -- the table's columns
        is_switch = value is True
        monkeypatch.setenv(variable, "no" if is_switch else str(value * 2 if value < 5000 else 5000))
        changed = ContextPackConfig.from_env().values()
        expected = 0 if is_switch else value * 2 if value < 5000 else 5000
        assert changed == REFERENCE.defaults.values() | {setting: expected}

    def test_the_model_and_the_number_of_candidates_too(self, monkeypatch):
        monkeypatch.setenv("RERANK_MODEL", "gpt-5")
        monkeypatch.setenv("RETRIEVAL_TOP_K_DENSE", "30")
        config = ContextPackConfig.from_env()
        assert (config.relevance.model, config.dense.depth) == ("gpt-5", 30)

    @pytest.mark.parametrize(
        ("variable", "value", "problem"),
        [
            ("RETRIEVAL_FINAL_MAX_TOKENS", "plenty", "must be a whole number, not 'plenty'"),
            ("RETRIEVAL_FINAL_MAX_TOKENS", "99", "must be between 100 and 200000, not 99"),
            ("RERANK_RETURN_TOP_N", "1.5", "must be a whole number, not '1.5'"),
            ("RETRIEVAL_INCLUDE_PARENTS", "maybe", "must be yes or no, not 'maybe'"),
        ],
    )
    def test_a_bad_value_names_its_variable(self, monkeypatch, variable, value, problem):
        monkeypatch.setenv(variable, value)
        with pytest.raises(ImproperlyConfigured, match=f"^{variable} {problem}"):
            ContextPackConfig.from_env()


class TestFormulas:
    def test_candidates_are_ordered_by_cosine_and_the_higher_of_two_counts(self, searched):
        one, two, three = (replace(made(number, "text").hit, facts=None) for number in (1, 2, 3))
        dense = tuple(replace(hit, score=score, score_type=ScoreType.COSINE) for hit, score in [(one, 0.9), (two, 0.6)])
        other = tuple(
            replace(hit, score=score, score_type=ScoreType.COSINE) for hit, score in [(three, 0.8), (two, 0.7)]
        )
        hits = Candidates()(replace(searched, rankings={"dense": dense, "dense_2": other})).hits
        assert [(hit.chunk_id, hit.score) for hit in hits] == [
            *((one.chunk_id, 0.9), (three.chunk_id, 0.8), (two.chunk_id, 0.7))
        ]
        assert hits[2].ranks == {"dense": 2, "dense_2": 2}
        assert hits[2].contributions == {"dense": 0.7}

    def test_a_section_is_dropped_as_a_whole_by_hand(self):
        # A hit with two chunks of its section and one across the page, of 10 tokens each.
        hit = made(1, "hit").hit
        around = [
            Neighbour(other(hit, ordinal), relation, hit.chunk_id)
            for ordinal, relation in [(1, Relation.PARENT), (2, Relation.PARENT), (9, Relation.CROSS_PAGE)]
        ]
        # 40 tokens are 5 over the budget: the cross-page neighbour goes, and 30 fit.
        assert roles(hit, around, 35) == ["primary", "parent", "parent"]
        # 30 are 1 over it: of the section both go. Chunk by chunk one would stay.
        assert roles(hit, around, 29) == ["primary"]
        assert roles(hit, around, 29, whole_sections=False) == ["primary", "parent"]
        # The hit stays whatever the budget is.
        assert roles(hit, around, 1) == ["primary"]

    def test_a_citation_names_the_document_by_id(self):
        hit = made(1, "text", "Travel policy", ("Rail", "Seats")).hit
        facts = replace(hit.chunk, page_start=3, page_end=4, source_type="excel", row_start=12, row_end=40)
        document = hit.chunk_id.document_id
        assert citations((replace(hit, facts=facts),), by_id=True) == (
            f"Doc: {document} | Page: 3-4 | Section: Rail > Seats | Rows: 12-40",
        )

    @pytest.mark.parametrize(
        ("served", "is_it"),
        [
            *(("gpt-4o", True), ("openai/gpt-4o", True), ("gpt-4o-2024-08-06", True)),
            *(("gpt-4o-mini", False), ("gpt-4", False), ("my-gpt-4o", False)),
        ],
    )
    def test_a_model_is_known_by_its_name(self, served, is_it):
        assert is_model(served, "gpt-4o") is is_it
        assert is_model(served, "")


def other(hit, ordinal):
    facts = replace(hit.chunk, content_hash=f"hash {ordinal}")
    return replace(hit, chunk_id=ChunkId(hit.chunk_id.document_id, hit.chunk_id.ordinal + ordinal), facts=facts)


def roles(hit, around, budget, *, whole_sections=True):
    packing = packed(
        items((hit,), around),
        budget_tokens=budget,
        min_primary=3,
        header=lambda number, _: f"[{number}]",
        count_tokens=lambda texts: [10] * len(texts),
        whole_sections=whole_sections,
    )
    return [str(it.item.role) for it in packing.kept]


@pytest.fixture
def searched(world):
    return find(world).state


def find(world, name="bob", text=ASKED, **more):
    return search(SearchRequest(text=text, preset=REFERENCE.name, **more), principal=world.principal(name))


@pytest.fixture
def guide(world, sync_once):
    """Add a document of several sections to the runbooks."""
    text = "\n\n".join(f"## Step {number}\n\n{'Open the hatch slowly and wait. ' * 40}" for number in range(1, 6))
    (world.root / "runbooks" / "cold-store.md").write_text(f"# Cold store\n\n{text}")
    sync_once(world.runbooks)


class TestRetrieve:
    def test_nobody_sees_anything_without_a_principal(self, world):  # noqa: ARG002 -- there are documents
        with pytest.raises(NotPermittedError):
            retrieve("rollback", None, None, [], None)

    def test_the_documents_example_runs_and_finds_what_the_filter_allows(self, world, guide):  # noqa: ARG002 -- the document
        document = find(world, text="cold store hatch").hits[0].chunk_id.document_id
        result = retrieve(
            "What is the hatch?",
            filters={"doc_id": str(document)},
            cfg=ContextPackConfig.from_env(),
            all_chunks=[],
            llm_config=None,
            principal=world.principal("bob"),
        )
        assert result.query == "What is the hatch?"
        assert {it["doc_id"] for it in result.selected_chunks} == {str(document)}
        assert result.citations == [it["citation"] for it in result.selected_chunks]
        assert all(line.startswith(f"Doc: {document} | Page: n/a | Section: ") for line in result.citations)
        assert all(it["text"] in result.context_pack for it in result.selected_chunks)

    def test_the_trace_has_the_documents_names(self, world, guide):  # noqa: ARG002 -- the document
        trace = retrieve("cold store hatch", principal=world.principal("bob")).trace
        cosines = [it["score"] for it in trace["pinecone_candidates"]]
        assert cosines == sorted(cosines, reverse=True) != []
        assert trace["pinecone_candidates"] is trace["candidates"]
        assert {it["chunk_id"] for it in trace["rerank_results"]} == {it["chunk_id"] for it in trace["candidates"]}
        assert 0 < trace["final_token_count"] <= trace["budget_tokens"] == 12_000
        assert set(trace["expansion_stats"]) == {PRIMARY, "parent", "sibling", "cross_page"}
        json.dumps(trace)

    def test_what_bob_may_not_see_is_in_no_pack_of_his(self, world):
        ledger = {str(it.pk) for it in world.ledger.documents.all()}
        seen = {
            name: retrieve("What did the rollback in March cost?", principal=world.principal(name))
            for name in ("alice", "bob")
        }
        found = {name: {it["doc_id"] for it in pack.selected_chunks} for name, pack in seen.items()}
        assert ledger & found["alice"]
        assert not ledger & found["bob"]
        chunks = {it["chunk_id"].partition(":")[0] for it in seen["bob"].trace["pinecone_candidates"]}
        assert not ledger & chunks

    def test_chunks_that_a_caller_brings_are_not_read(self, world):
        bob = world.principal("bob")
        brought = retrieve("rollback", all_chunks=[{"text": "Forged."}], principal=bob)
        assert brought.selected_chunks == retrieve("rollback", principal=bob).selected_chunks

    def test_a_larger_budget_is_taken_up_to_what_the_installation_allows(self, world, settings):
        bob, larger = (
            world.principal("bob"),
            ContextPackConfig.from_env().with_values({"context.budget_tokens": 20_000}),
        )
        with pytest.raises(OverridesError):
            retrieve("rollback", cfg=larger, principal=bob)
        settings.CORECUBE_MAX_CONTEXT_TOKENS = 20_000
        assert retrieve("rollback", cfg=larger, principal=bob).trace["budget_tokens"] == 20_000
        with pytest.raises(OverridesError):
            retrieve("rollback", cfg=replace(larger, context=ContextConfig(budget_tokens=20_001)), principal=bob)

    def test_the_api_has_both_versions(self, world, client):
        def post(**more):
            headers = {"Authorization": f"Bearer {world.key('bob')}"}
            body = {"query": "rollback", **more}
            return client.post("/api/v1/context-pack", body, content_type="application/json", headers=headers)

        told = post(preset="contextpack@reference").json()
        document = told["selected_chunks"][0]["document_id"]
        assert told["citations"][0].startswith(f"Doc: {uuid.UUID(document)} | Page: ")
        assert told["trace"]["pinecone_candidates"] == told["trace"]["candidates"] != []
        assert post().json()["trace"]["pinecone_candidates"] is None
        assert post(preset="corecube").status_code == 422


def judging(body):
    """Score by the rubric: what names the four minutes answers."""
    found = [
        (number, ANSWERING in text)
        for number, text in read(body["messages"][1]["content"], fence_of(body["messages"]))[1]
    ]
    results = [
        {
            "id": number,
            "relevance_score": 100 if it else 40,
            "answerability": it,
            "key_evidence": ANSWERING if it else "",
        }
        for number, it in found
    ]
    return json.dumps({"results": results})


@pytest.fixture
def fake():
    kept_relevance.cache_clear()
    with FakeLLM() as running:
        running.says(judging)
        yield running


def stored(slug, service, model, **more):
    return LanguageModel.objects.create(
        slug=slug, name=slug, base_url=service.url, model=model, max_retries=0, timeout_seconds=5, **more
    )


def scored_by(outcome):
    return [event["model"] for span in outcome.trace for event in span.events if event["event"] == "relevance_spent"]


class TestModel:
    def test_without_a_language_model_the_cosine_orders_and_the_search_is_degraded(self, world):
        outcome = find(world)
        assert outcome.state.degraded == ("relevance_none",)
        assert {hit.score_type for hit in outcome.hits} == {ScoreType.MAPPED}
        assert [hit.score for hit in outcome.hits] == [
            pytest.approx(100 * hit.signals["cosine"]) for hit in outcome.hits
        ]

    def test_gpt_4o_scores_though_another_is_the_default(self, world, fake):
        stored("usual", fake, "fake-small", is_default=True)
        stored("named", fake, "openai/gpt-4o")
        outcome = find(world)
        assert scored_by(outcome) == ["named"]
        assert {body["model"] for body in fake.requests} == {"openai/gpt-4o"}
        assert outcome.state.degraded == ()
        assert [hit.score for hit in outcome.hits][:2] == [100, 40]
        assert ANSWERING in outcome.hits[0].chunk.text

    def test_another_model_scores_where_there_is_no_gpt_4o_and_the_search_is_degraded(self, world, fake):
        stored("usual", fake, "fake-small", is_default=True)
        outcome = find(world)
        assert (scored_by(outcome), outcome.state.degraded) == (["usual"], ("relevance_other_model",))
        assert outcome.hits[0].score == 100

    def test_the_default_scores_where_gpt_4o_fails(self, world, fake):
        stored("usual", fake, "fake-small", is_default=True)
        with FakeLLM() as broken:
            broken.fault = Fault.ERROR
            stored("named", broken, "gpt-4o")
            outcome = find(world)
        assert (scored_by(outcome), outcome.state.degraded) == (["usual"], ("relevance_other_model",))

    def test_the_rules_of_users_and_compartments_come_first(self, world, fake):
        stored("named", fake, "gpt-4o", is_default=True)
        RoutingRule.objects.create(user=world.bob, language_model=stored("bobs", fake, "fake-small"))
        assert scored_by(find(world)) == ["bobs"]
        RoutingRule.objects.create(compartment=world.runbooks.compartment, language_model=None)
        outcome = find(world, "alice")
        assert (scored_by(outcome), outcome.state.degraded) == ([], ("relevance_forbidden",))

    def test_a_request_names_its_own(self, world, fake):
        stored("named", fake, "gpt-4o", is_default=True)
        stored("mine", fake, "fake-mine")
        config = RelevanceConfig(model="fake-mine")
        trace = retrieve(ASKED, llm_config=config, principal=world.principal("bob")).trace
        assert {body["model"] for body in fake.requests} == {"fake-mine"}
        assert trace["degraded"] == []
        assert trace["rerank_results"][0] == {
            "chunk_id": trace["rerank_results"][0]["chunk_id"],
            "relevance_score": 100,
            "answerability": True,
            "key_evidence": ANSWERING,
            "is_judged": True,
        }

    def test_only_what_the_model_was_shown_is_returned(self, world, fake):
        stored("named", fake, "gpt-4o", is_default=True)
        outcome = find(world, overrides={"relevance.candidates": 1})
        assert [hit.score_type for hit in outcome.hits] == [ScoreType.RUBRIC]
        assert [drop.reason for drop in outcome.state.drops] == [DropReason.RERANK_CUT]

    def test_a_question_over_the_same_candidates_is_scored_once(self, world, fake):
        stored("named", fake, "gpt-4o", is_default=True)
        assert [find(world).hits[0].score for _ in range(2)] == [100, 100]
        assert len(fake.requests) == 1
