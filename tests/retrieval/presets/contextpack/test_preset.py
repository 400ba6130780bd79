"""The preset `contextpack` as a whole: its numbers, its stages, its pack, and what it keeps to itself."""

import re
from dataclasses import replace

import pytest

from corecube.errors import DatabaseUnavailableError, InvalidRequestError
from corecube.models import ApiKey
from retrieval.admin.preset_versions import promote, save_draft
from retrieval.engine.state import RequestFilter
from retrieval.engine.types import ScoreType
from retrieval.errors import OverridesError, RerankError, SearchTimeoutError
from retrieval.ingest.sync import sync_connection
from retrieval.models import Chunk, SearchRecord
from retrieval.presets.catalog import preset_named
from retrieval.presets.contextpack.config import ContextPackConfig
from retrieval.presets.contextpack.judge import RelevanceConfig, RubricScores
from retrieval.presets.contextpack.stages.neighbours import NeighboursConfig
from retrieval.presets.contextpack.stages.pack_context import ContextConfig
from retrieval.records.stored_outcome import recent_outcome, reopened
from retrieval.search import runtime
from retrieval.search.context_packs import retrieve
from retrieval.search.request import SearchRequest
from retrieval.search.service import search

#: What the description of the original sets, and what it is called here. Its model, gpt-4o, is a row of the language
#: models here, chosen by the routing rules.
DEFAULTS = {
    "neighbor_same_page": ("neighbours.same_page", 1),
    "neighbor_cross_page": ("neighbours.cross_page", 2),
    "include_parents": ("neighbours.parents", True),
    "final_max_tokens": ("context.budget_tokens", 12_000),
    "min_primary_hits_to_keep": ("context.min_primary", 3),
    "max_candidates_to_rerank": ("relevance.candidates", 50),
    "return_top_n": ("relevance.top", 15),
    "max_text_chars_per_candidate": ("relevance.characters", 1200),
    "strict_json_output": ("relevance.strict_json", True),
}
FERRY = (
    "The ferry leaves when the tide is high and the captain has checked the lamps, the ropes, both engines and the list"
    " of passengers; whoever comes late waits on the pier until the next crossing, which in winter may well be a day"
    " later because storms from the north close the harbour for hours."
)
IS = {"name": "title", "comparison_operator": "is"}
GUIDE = "\n\n".join(
    [
        "# Cold store\n\nThe cold store keeps samples at minus eighty degrees.",
        *(
            f"## Step {number}\n\n{'Open the hatch slowly and wait. ' * 40}Step {number} ends."
            for number in range(1, 6)
        ),
    ]
)


@pytest.mark.parametrize("name", DEFAULTS)
def test_the_defaults_are_those_of_the_description(name):
    ours, value = DEFAULTS[name]
    assert ContextPackConfig().values()[ours] == value


def test_the_pool_holds_as_many_as_are_judged():
    assert ContextPackConfig().fusion.pool == ContextPackConfig().relevance.candidates == 50


@pytest.fixture
def guide(world, sync_once):
    """Add a document of several sections to the runbooks."""
    (world.root / "runbooks" / "cold-store.md").write_text(GUIDE)
    sync_once(world.runbooks)
    return Chunk.objects.filter(document__title="Cold store").order_by("ordinal")


def find(world, name="bob", text="how do we roll back staging?", **more):
    return search(SearchRequest(text=text, preset="contextpack", **more), principal=world.principal(name))


def stages(outcome):
    return [span.stage for span in outcome.trace if not span.parent]


def test_a_question_finds_its_document_and_every_number_adds_up(world):
    outcome = find(world)
    assert outcome.hits[0].chunk.title == "Rolling back"
    assert all(sum(hit.contributions.values()) == pytest.approx(hit.score) for hit in outcome.hits)
    assert stages(outcome)[-6:] == [
        *("blend", "dedupe", "judge_relevance", "neighbours", "pack_context"),
        "answerability",
    ]
    assert {hit.score_type for hit in outcome.hits} == {ScoreType.MAPPED}
    assert outcome.state.answerability is not None
    assert outcome.state.degraded == ()


def test_passages_are_numbered_without_gaps_and_say_why_they_are_there(world, guide):
    outcome = find(world, text="cold store hatch", top_k=1)
    assert guide.count() > 3
    assert sorted(it.number for it in outcome.passages) == list(range(1, len(outcome.passages) + 1))
    assert [it.role for it in outcome.passages].count("primary") == 1
    assert outcome.passages[0].number == 1
    assert {it.role for it in outcome.passages} <= {"primary", "parent", "sibling"}
    assert len(outcome.passages) > 1
    assert all(it.header.startswith(f"### [{it.number}] ") for it in outcome.passages)


def test_no_two_candidates_say_the_same(world):
    for name, more in (("one", ""), ("two", " Bring gloves.")):
        (world.root / "runbooks" / f"{name}.md").write_text(f"# Tide table\n\n{FERRY}{more}")
    sync_connection(world.runbooks)
    outcome = find(world, top_k=1)
    assert outcome.hits[0].chunk.title == "Rolling back"
    assert [it.chunk.title for it in outcome.state.part(RubricScores).candidates].count("Tide table") == 1


def test_no_more_hits_are_packed_than_the_cap(world, guide):
    numbers = {"relevance.top": 2, "neighbours.parents": 0, "neighbours.same_page": 0}
    outcome = find(world, text="rollback queue hatch", top_k=5, overrides=numbers)
    assert [it.role for it in outcome.passages] == ["primary"] * 2
    details = [drop.detail for drop in outcome.state.drops if "limit" in drop.numbers]
    assert details[0] == "rank 3, at most 2 hits are packed"


def test_a_small_budget_drops_what_is_around_first(world, guide):
    whole = find(world, text="cold store hatch", top_k=1)
    limit = sum(it.token_count for it in whole.passages)
    cut = find(world, text="cold store hatch", top_k=1, overrides={"context.budget_tokens": max(100, limit - 1)})
    packed = next(span for span in cut.trace if span.stage == "pack_context")
    over = [drop for drop in packed.drops if "needed" in drop.numbers]
    assert len(over) == len(whole.passages) - len(cut.passages) == 1
    assert [it.role for it in cut.passages].count("primary") == 1
    assert re.match(r"(cross-page|sibling|parent) of \d+ tokens, 1 over the budget of", over[0].detail)
    assert over[0].numbers["needed"] == limit


def test_a_hit_too_many_that_stands_beside_a_better_one_is_packed_and_not_dropped(world, guide):
    outcome = find(world, text="cold store hatch", top_k=1)
    packed = {it.hit.chunk_id for it in outcome.passages}
    dropped = [drop.chunk_id for drop in outcome.state.drops]
    assert {hit.chunk_id for hit in outcome.state.hits[1:]} & packed
    assert packed.isdisjoint(dropped)
    assert len(set(dropped)) == len(dropped)


def test_hits_that_alone_exceed_the_budget_stay_and_a_note_says_so(world, guide):
    outcome = find(world, text="open the hatch slowly", top_k=3, overrides={"context.budget_tokens": 100})
    assert [it.role for it in outcome.passages] == ["primary"] * 3
    assert "pack_over_budget" in outcome.state.degraded


def test_the_least_quality_of_a_request_holds_for_what_is_around(world, guide):
    best = find(world, text="cold store hatch", top_k=1).hits[0].chunk_id
    guide.exclude(ordinal=best.ordinal).update(quality=0.5)
    assert len(find(world, text="cold store hatch", top_k=1).passages) > 1
    limited = find(world, text="cold store hatch", top_k=1, filter=RequestFilter(min_quality=0.8))
    assert [it.hit.chunk_id for it in limited.passages] == [best]


def test_the_kind_of_content_is_asked_of_hits_alone(world, guide):
    best = find(world, text="cold store hatch", top_k=1).hits[0].chunk_id
    Chunk.objects.update(hints=[])
    guide.filter(ordinal=best.ordinal).update(hints=["table"])
    limited = find(world, text="cold store hatch", top_k=1, filter=RequestFilter(hint="table"))
    assert [it.hit.chunk_id for it in limited.passages if it.is_hit] == [best]
    assert len(limited.passages) > 1


def test_what_is_around_can_be_late(world, guide, monkeypatch):
    def too_late(*_, **__):
        raise SearchTimeoutError

    monkeypatch.setattr("retrieval.presets.contextpack.stages.neighbours.neighbours_of", too_late)
    outcome = find(world, text="cold store hatch", top_k=1)
    assert [it.role for it in outcome.passages] == ["primary"]
    assert outcome.state.degraded == ("neighbours_timeout",)


def test_what_is_around_can_fail_to_be_read(world, guide, monkeypatch):
    def is_down(*_, **__):
        raise DatabaseUnavailableError

    monkeypatch.setattr("retrieval.presets.contextpack.stages.neighbours.neighbours_of", is_down)
    outcome = find(world, text="cold store hatch", top_k=1)
    assert [it.role for it in outcome.passages] == ["primary"]
    assert outcome.state.degraded == ("neighbours_failed",)


class Reranker:
    name = "local"
    score_type = ScoreType.LOGIT
    blend_weight = None
    problem = ""

    def score(self, query, texts, *, timeout_seconds):  # noqa: ARG002 -- the protocol's
        return [2.0 if "queue" in text.lower() else -2.0 for text in texts]


def test_without_a_language_model_the_reranker_orders(world):
    tools = replace(runtime.resources(), reranker=Reranker())
    request = SearchRequest(text="rollback", preset="contextpack")
    outcome = search(request, principal=world.principal("bob"), resources=tools)
    # 100 / (1 + e^-2) = 88.08
    assert outcome.hits[0].score == pytest.approx(88.08, abs=0.01)
    assert outcome.hits[0].score_type is ScoreType.MAPPED
    assert outcome.hits[0].signals["rerank"] == 2.0
    notes = {note.code: note.text for span in outcome.trace for note in span.notes}
    assert "The score of local is used instead, on the same scale from 0 to 100." in notes["relevance_none"]


def test_the_blends_score_stands_in_where_the_reranker_fails_and_the_note_says_so(world):
    class Failing(Reranker):
        def score(self, *_, **__):
            raise RerankError("It failed.")

    tools = replace(runtime.resources(), reranker=Failing())
    request = SearchRequest(text="rollback", preset="contextpack")
    outcome = search(request, principal=world.principal("bob"), resources=tools)
    notes = {note.code: note.text for span in outcome.trace for note in span.notes}
    assert notes["relevance_none"].endswith("The blend's score is used instead, on the same scale from 0 to 100.")


@pytest.mark.usefixtures("guide")
def test_what_was_packed_is_there_again_when_a_search_is_reopened(world):
    outcome = find(world, text="cold store hatch", top_k=3)
    record, bob = SearchRecord.objects.get(), world.principal("bob")
    packed = [(it.number, it.hit.chunk_id, it.role, it.score) for it in outcome.passages]
    assert {it.role for it in outcome.passages} > {"primary"}
    assert [number for number, *_ in packed] != sorted(number for number, *_ in packed)
    for again in (reopened(record, bob, text="cold store hatch"), recent_outcome(record, bob)):
        assert [(it.number, it.hit.chunk_id, it.role, it.score) for it in again.passages] == packed
    hits = reopened(record, bob, text="cold store hatch").state.hits
    assert [it.chunk_id for it in hits] == [it.hit.chunk_id for it in outcome.passages if it.role == "primary"]


@pytest.mark.usefixtures("guide")
def test_what_stands_around_a_hit_has_no_score_in_a_chat(world, client):
    headers = {"Authorization": f"Bearer {world.key('bob')}"}
    asked = {"model": "contextpack", "messages": [{"role": "user", "content": "cold store hatch"}]}
    told = client.post(
        "/v1/chat/completions", asked | {"corecube": {"top_k": 1}}, content_type="application/json", headers=headers
    ).json()
    first, *others = told["search_results"]
    assert first["score"] > 0
    assert [it["score"] for it in others] == [None] * len(others) != []


@pytest.mark.usefixtures("guide")
class TestPack:
    def test_it_holds_what_the_passages_hold(self, world):
        pack = retrieve("cold store hatch", principal=world.principal("bob"))
        assert pack.query == "cold store hatch"
        assert len(pack.citations) == len(pack.selected_chunks) > 1
        assert all(it.citation == line for it, line in zip(pack.selected_chunks, pack.citations, strict=True))
        assert "Doc: Cold store | Page: n/a | Section: Step 2" in pack.citations
        assert all(it.facts.text in pack.context_pack for it in pack.selected_chunks)
        assert pack.context_pack.startswith("### [1] ")
        assert all(it.score is not None for it in pack.selected_chunks if it.role == "primary")

    def test_the_trace_tells_candidates_results_tokens_and_expansion(self, world):
        pack = retrieve("cold store hatch", principal=world.principal("bob"))
        trace = pack.trace
        assert {it.chunk_id for it in trace.rerank_results} == {it.chunk_id for it in trace.candidates}
        assert [it.rank for it in trace.candidates] == list(range(1, len(trace.candidates) + 1))
        scores = [it.relevance_score for it in trace.rerank_results]
        assert scores == sorted(scores, reverse=True)
        assert not any(it.is_judged for it in trace.rerank_results)
        assert trace.final_token_count == sum(it.token_count for it in pack.selected_chunks)
        assert set(trace.expansion) == {"primary", "parent", "sibling", "cross_page"}
        assert sum(it["packed"] for it in trace.expansion.values()) == len(pack.selected_chunks)
        assert all(it["packed"] <= it["found"] for it in trace.expansion.values())

    def test_the_whole_text_fits_the_tokens_that_are_told(self, world):
        pack = retrieve("cold store hatch", principal=world.principal("bob"))
        count = runtime.resources().count_tokens
        assert count(pack.context_pack) <= pack.trace.final_token_count <= 12_000

    def test_it_says_by_itself_that_its_best_hits_exceed_the_budget(self, world):
        bob = world.principal("bob")
        whole = retrieve("open the hatch slowly", principal=bob).trace
        assert (whole.budget_tokens, whole.degraded) == (12_000, ())
        small = ContextPackConfig(context=ContextConfig(budget_tokens=100))
        over = retrieve("open the hatch slowly", config=small, principal=bob).trace
        assert over.final_token_count > over.budget_tokens == 100
        assert over.degraded == ("pack_over_budget",)

    def test_fifteen_hits_are_packed_where_nobody_asks_for_fewer(self, world):
        retrieve("rollback", principal=world.principal("bob"))
        assert SearchRecord.objects.get().top_k == 15

    def test_filters_leave_documents_by_their_facts(self, world, guide):
        document = guide.first().document
        principal = world.principal("bob")
        by_id = ({"doc_id": str(document.pk)}, {"doc_id": document.pk}, {"doc_id": [document.pk]})
        for filters in (*by_id, {"title": "cold store"}, {"title": ["Cold store", "Other\0"]}):
            pack = retrieve("rollback hatch", filters, principal=principal)
            assert {it.chunk_id.document_id for it in pack.selected_chunks} == {document.pk}
        assert retrieve("rollback", {"title": "Cold\0store\ud800"}, principal=principal).selected_chunks == ()
        assert retrieve("rollback", {"title": "Breach of March"}, principal=principal).selected_chunks == ()
        with pytest.raises(InvalidRequestError):
            retrieve("rollback", {f"field {number}": "x" for number in range(30)}, principal=principal)

    def test_a_config_changes_numbers_for_one_request(self, world):
        config = ContextPackConfig(neighbours=NeighboursConfig(parents=0, same_page=0, cross_page=0))
        pack = retrieve("cold store hatch", config=config, principal=world.principal("bob"))
        assert {it.role for it in pack.selected_chunks} == {"primary"}
        dear = ContextPackConfig(relevance=RelevanceConfig(candidates=100))
        with pytest.raises(OverridesError):
            retrieve("cold store", config=dear, principal=world.principal("bob"))

    def test_a_config_holds_also_where_it_says_what_is_shipped(self, world):
        preset = preset_named("contextpack")
        draft = save_draft(preset=preset, values={"relevance.top": 20}, note="", actor=world.alice)
        promote(preset=preset, number=draft.number, actor=world.alice)
        bob = world.principal("bob")
        retrieve("cold store hatch", principal=bob)
        retrieve("cold store hatch", config=ContextPackConfig(), principal=bob)
        assert list(SearchRecord.objects.order_by("at").values_list("top_k", flat=True)) == [20, 15]

    def test_tokens_are_counted_as_they_are_now(self, world):
        Chunk.objects.update(token_count=1)
        pack = retrieve("cold store hatch", principal=world.principal("bob"))
        assert runtime.resources().count_tokens(pack.context_pack) <= pack.trace.final_token_count

    def test_documents_with_one_title_are_told_apart(self, world):
        for name in ("one", "two"):
            text = f"# Weekly report\n\nThe hatch of plant {name} is open."
            (world.root / "runbooks" / f"{name}.md").write_text(text)
        sync_connection(world.runbooks)
        pack = retrieve("weekly report hatch plant", principal=world.principal("bob"))
        lines = [it for it in pack.citations if it.startswith("Doc: Weekly report")]
        assert len(set(lines)) == len(lines) == 2

    def test_nobody_gets_anything_without_a_grant(self, world):
        pack = retrieve("cold store hatch", principal=world.principal("charlie"))
        assert (pack.selected_chunks, pack.citations, pack.context_pack) == ((), (), "")
        assert (pack.trace.candidates, pack.trace.rerank_results) == ((), ())

    def test_what_is_hidden_is_in_no_part_of_it(self, world):
        pack = retrieve("rollback zanzibar tangerine breach costs", principal=world.principal("bob"))
        asked = str(replace(pack, query=""))
        assert not [word for word in ("zanzibar", "tangerine", "48,200", "Breach") if word in asked]


class TestApi:
    @pytest.fixture
    def ask(self, client, world):
        def ask_as(name="bob", /, **body):
            headers = {"Authorization": f"Bearer {world.key(name)}"} if name else {}
            return client.post("/api/v1/context-pack", body, content_type="application/json", headers=headers)

        return ask_as

    @pytest.mark.usefixtures("guide")
    def test_it_works(self, ask):
        answer = ask(query="cold store hatch")
        assert answer.status_code == 200
        told = answer.json()
        assert [it["citation"] for it in told["selected_chunks"]] == told["citations"]
        assert told["selected_chunks"][0]["number"] == 1
        assert told["selected_chunks"][0]["role"] == "primary"
        assert told["trace"]["final_token_count"] == sum(it["token_count"] for it in told["selected_chunks"])
        assert set(told["trace"]["expansion_stats"]) == {"primary", "parent", "sibling", "cross_page"}
        assert told["trace"]["rerank_results"][0]["judged"] is False
        assert (told["trace"]["budget_tokens"], told["degraded"]) == (12_000, [])
        assert SearchRecord.objects.get(pk=told["trace_id"]).preset == "contextpack"

    @pytest.mark.usefixtures("guide")
    def test_filters_and_numbers_of_a_request(self, ask):
        filters = {"conditions": [{"name": "title", "comparison_operator": "is", "value": "Cold store"}]}
        told = ask(query="rollback hatch", filters=filters, top_k=1, overrides={"neighbours.parents": 0}).json()
        assert {it["title"] for it in told["selected_chunks"]} == {"Cold store"}
        assert "parent" not in {it["role"] for it in told["selected_chunks"]}

    @pytest.mark.parametrize("value", ["a\0b", ["a\0b"]])
    def test_a_filter_may_ask_for_what_no_store_can_hold(self, ask, value):
        answer = ask(query="rollback", filters={"conditions": [{**IS, "value": value}]})
        assert (answer.status_code, answer.json()["selected_chunks"]) == (200, [])

    @pytest.mark.parametrize(
        ("body", "code"),
        [
            ({"query": " "}, "empty_query"),
            ({"query": "x", "overrides": {"relevance.candidates": 100}}, "invalid_overrides"),
            ({"query": "x", "scope": {"include": ["vault"]}}, "unknown_connection"),
            ({"query": "x", "draft": True}, "not_permitted"),
            ({"query": "x", "filters": {"conditions": [{**IS, "value": float("inf")}]}}, "invalid_request"),
        ],
    )
    def test_refusals(self, ask, body, code):
        answer = ask(**body)
        assert (answer.status_code >= 400, answer.json()["error"]["code"]) == (True, code)

    @pytest.mark.usefixtures("db")
    def test_it_needs_a_key(self, client):
        assert client.post("/api/v1/context-pack", {"query": "x"}, content_type="application/json").status_code == 401

    def test_a_key_that_may_not_use_the_preset_is_refused(self, world, client):
        key, secret = ApiKey.issue(user=world.bob, name="narrow")
        ApiKey.objects.filter(pk=key.pk).update(presets=["helix"])
        headers = {"Authorization": f"Bearer {secret}"}
        answer = client.post("/api/v1/context-pack", {"query": "x"}, content_type="application/json", headers=headers)
        assert answer.status_code == 403

    @pytest.mark.usefixtures("guide")
    def test_it_hides_from_charlie(self, ask):
        assert ask("charlie", query="cold store hatch").json()["selected_chunks"] == []
