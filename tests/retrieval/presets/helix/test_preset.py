"""The preset `helix` as a whole: its stages, what it may reach, and its failure modes."""

from dataclasses import fields, is_dataclass, replace
from types import FunctionType, MethodType, ModuleType

import httpx
import openai
import pytest

from corecube.access import scope_for
from retrieval.encoders.late_interaction import LateInteraction, load_late_encoder
from retrieval.encoders.remote_encoder import RemoteEncoder
from retrieval.encoders.remote_reranker import RemoteReranker, RerankService
from retrieval.engine.types import ScoreType
from retrieval.index.bm25.follower import follower
from retrieval.models import Document, PresetVersion, SearchRecord
from retrieval.presets.catalog import PRESETS
from retrieval.presets.helix.config import HelixConfig
from retrieval.presets.helix.optional_rerank import OptionalRerankConfig
from retrieval.presets.helix.route_examples import trained_router
from retrieval.presets.helix.router.routes import RouterSource
from retrieval.search import runtime
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from tests.fakes import HashEncoder
from tests.word_models import write_late_model

pytestmark = pytest.mark.usefixtures("unhurried")

HELIX = PRESETS["helix"]


@pytest.fixture
def world(world, settings):
    """The cast with a BM25 index of what they have."""
    settings.CORECUBE_BM25 = True
    follower().rebuild()
    return world


def find(world, name, text, **more):
    return search(SearchRequest(text=text, preset="helix", **more), principal=world.principal(name))


def stages(outcome):
    return [span.stage for span in outcome.trace if not span.parent]


def test_a_question_finds_its_document_and_every_number_adds_up(world):
    outcome = find(world, "bob", "how do we roll back staging?")
    assert outcome.hits[0].chunk.title == "Rolling back"
    assert {hit.score_type for hit in outcome.hits} == {ScoreType.SIGNALS}
    assert all(sum(hit.contributions.values()) == pytest.approx(hit.score) for hit in outcome.hits)
    assert all({"similarity", "recency", "confidence"} <= set(hit.contributions) for hit in outcome.hits)
    assert stages(outcome)[:3] == ["embed", "analyze", "route"]
    assert stages(outcome)[-5:] == ["signals", "near_duplicates", "diversify", "pack", "answerability"]
    assert outcome.passages[0].number == 1
    assert outcome.state.answerability is not None
    assert outcome.state.degraded == ()


def test_the_best_passages_stand_at_both_ends(world):
    numbers = [passage.number for passage in find(world, "alice", "rollback").passages]
    assert len(numbers) > 2
    assert (numbers[0], numbers[-1]) == (1, 2)


def test_no_more_passages_are_packed_than_the_cap(world):
    outcome = find(world, "alice", "rollback", overrides={"pack.max_passages": 1})
    assert [passage.number for passage in outcome.passages] == [1]
    assert len(outcome.hits) > 1
    details = [drop.detail for drop in outcome.state.drops if "limit" in drop.numbers]
    assert details[0] == "rank 2, at most 1 passages"


def test_a_greeting_ends_the_search_at_the_router(world):
    examples = {"greeting": ["Hello"], "search": ["what is the limit of expenses"]}
    tools = runtime.resources().with_part(RouterSource, RouterSource(lambda: trained_router(HashEncoder(), examples)))
    request = SearchRequest(text="Hello", preset="helix")
    outcome = search(request, principal=world.principal("bob"), resources=tools)
    assert outcome.hits == outcome.passages == ()
    assert stages(outcome) == ["embed", "analyze", "route"]
    assert outcome.state.degraded == ()
    assert SearchRecord.objects.get().hit_count == 0


def reachable(root):
    """Return every object that a pipeline holds: through fields, attributes, closures, containers and bound methods."""
    found, waiting = {}, [root]
    while waiting:
        it = waiting.pop()
        if id(it) in found or isinstance(it, (str, bytes, int, float, type, ModuleType, type(None))):
            continue
        found[id(it)] = it
        waiting += held_by(it)
    return list(found.values())


def held_by(it):
    if isinstance(it, FunctionType):
        return [cell.cell_contents for cell in it.__closure__ or ()] + list(it.__defaults__ or ())
    if isinstance(it, MethodType):
        return [it.__self__, it.__func__]
    if isinstance(it, dict):
        return [*it.keys(), *it.values()]
    if isinstance(it, (list, tuple, set, frozenset)):
        return list(it)
    own = [getattr(it, one.name) for one in fields(it) if hasattr(it, one.name)] if is_dataclass(it) else []
    return own + list(getattr(it, "__dict__", {}).values())


class Tokens:
    def count(self, texts):
        return [len(text.split()) for text in texts]


FORBIDDEN = (RemoteEncoder, RemoteReranker, httpx.Client, httpx.AsyncClient, openai.OpenAI, openai.AsyncOpenAI)


def talking(held):
    """Return those objects that ask a service or a language model."""
    return [
        it
        for it in held
        if isinstance(it, FORBIDDEN)
        or (hasattr(it, "stream") and hasattr(it, "is_extractive"))
        or type(it).__module__.split(".")[0] in {"httpx", "openai", "requests", "urllib3"}
    ]


@pytest.mark.usefixtures("world")
class TestWhatItCanReach:
    def test_no_language_model_and_no_network_client(self):
        reranker = RemoteReranker.__new__(RemoteReranker)
        tools = replace(runtime.resources(), reranker=reranker)
        held = reachable(HELIX.build(HelixConfig(), tools))
        assert len(held) > 50
        assert talking(held) == []

    def test_neither_does_a_reranker_bring_one(self, tmp_path):
        write_late_model(tmp_path, {"rollback": (1, 0, 0), "queue": (0, 1, 0)})
        local = LateInteraction(load_late_encoder(tmp_path))
        config = HelixConfig(rerank=OptionalRerankConfig(candidates=30))
        held = reachable(HELIX.build(config, replace(runtime.resources(), reranker=local)))
        assert any(it is local for it in held)
        assert talking(held) == []

    def test_a_service_that_reranks_is_left_out(self):
        service = RemoteReranker(RerankService(kind="tei", url="http://localhost:1/rerank"))
        config = HelixConfig(rerank=OptionalRerankConfig(candidates=30))
        pipeline = HELIX.build(config, replace(runtime.resources(), reranker=service))
        assert "rerank" in str(pipeline)
        assert talking(reachable(pipeline)) == []

    def test_the_walk_finds_what_is_there(self):
        reranker = RemoteReranker.__new__(RemoteReranker)
        tools = replace(runtime.resources(), reranker=reranker)
        held = reachable(PRESETS["corecube"].build(PRESETS["corecube"].defaults, tools))
        assert any(it is reranker for it in held)

    def test_a_service_for_embedding_is_left_alone(self, world):
        remote = RemoteEncoder.__new__(RemoteEncoder)
        remote.name, remote.tokenizer = "remote", Tokens()
        tools = replace(runtime.resources(), encoder=remote)
        assert not any(it is remote for it in reachable(HELIX.build(HelixConfig(), tools)))
        outcome = search(
            SearchRequest(text="roll back staging", preset="helix"), principal=world.principal("bob"), resources=tools
        )
        assert outcome.hits[0].chunk.title == "Rolling back"
        assert outcome.state.degraded == ("embed_remote",)


@pytest.mark.parametrize("preset", PRESETS)
class TestLeaks:
    """Whatever the preset, what is out of scope is in nothing that a search gives back."""

    QUERY = "rollback zanzibar tangerine breach costs"

    @pytest.fixture(autouse=True)
    def impatient(self, unhurried):  # noqa: ARG002 -- asked for what it does
        """Let the tiers of the recovery of missing sources follow each other without a wait."""
        version = PresetVersion.objects.get(preset="consolidated")
        version.values |= dict.fromkeys(("cascade.first_wait_seconds", "cascade.max_wait_seconds"), 0.0)
        version.save()

    def ask(self, world, preset, name):
        return search(SearchRequest(text=self.QUERY, preset=preset, top_k=100), principal=world.principal(name))

    def test_hits_drops_and_traces_are_of_the_scope_alone(self, world, preset):
        outcome = self.ask(world, preset, "bob")
        allowed = set(Document.objects.in_scope(scope_for(world.principal("bob"))).values_list("pk", flat=True))
        hidden = {str(it) for it in Document.objects.exclude(pk__in=allowed).values_list("pk", flat=True)}
        assert {hit.chunk_id.document_id for hit in outcome.hits} <= allowed
        assert {drop.chunk_id.document_id for drop in outcome.state.drops} <= allowed
        told = f"{SearchRecord.objects.get().trace}{[passage.hit.chunk.text for passage in outcome.passages]}"
        assert [it for it in hidden if it in told] == []
        assert "zanzibar" not in str([passage.hit.chunk.text for passage in outcome.passages])

    def test_nobody_gets_anything_without_a_grant(self, world, preset):
        outcome = self.ask(world, preset, "charlie")
        assert (outcome.hits, outcome.passages) == ((), ())

    def test_the_hidden_changes_no_score(self, world, preset):
        def scores():
            return [(hit.chunk_id, round(hit.score, 3)) for hit in self.ask(world, preset, "bob").hits]

        before = scores()
        for connection in (world.vault, world.ledger):
            connection.delete()
        assert scores() == before
