"""What is known to go wrong with searches like those of `helix`: each is provoked, and held off by the whole preset."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest
from django.conf import settings
from django.db import connection as database
from django.utils import timezone
from pgvector import HalfVector

from corecube.errors import ConfigError
from corecube.models import Connection
from retrieval.encoders import load_encoder
from retrieval.engine.state import DropReason
from retrieval.engine.types import MemoryType, ScoreType
from retrieval.errors import EncoderError, OverridesError
from retrieval.index import active
from retrieval.index.bm25.follower import follower
from retrieval.index.enrichment import EnrichedChunk, store_enrichment
from retrieval.models import Chunk, Document, DocumentAccess, EmbeddingIndex, PresetVersion
from retrieval.presets.catalog import PRESETS
from retrieval.presets.helix.config import HelixConfig
from retrieval.presets.helix.optional_rerank import OptionalRerankConfig, optional_rerank
from retrieval.presets.helix.route_examples import Routers, trained_router
from retrieval.presets.helix.router.question import Routing
from retrieval.presets.helix.router.routes import RouterSource, shipped_examples
from retrieval.presets.helix.stages.signals import RankedAs
from retrieval.search import runtime, warm_up
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from tests.fakes import HashEncoder
from tests.retrieval.index.conftest import rebuild as rebuild_hnsw

HELIX = PRESETS["helix"]


@pytest.fixture
def shelf(governed, sync_once, settings):
    """Return a function that has these pages taken in, over a fresh BM25 index, and gives the world back.

    Time is no matter here: no search is cut short on a busy machine.
    """
    settings.CORECUBE_BM25 = True
    patient = {"deadline_ms": 60_000}
    PresetVersion.objects.create(preset="helix", number=1, status="live", values=patient, created_by=governed.alice)

    def hold(pages: Mapping[str, str]):
        for name, text in pages.items():
            (governed.root / "runbooks" / name).write_text(text)
        sync_once(governed.runbooks)
        follower().rebuild()
        return governed

    return hold


def find(world, text, *, resources=None, **more):
    """Search as Bob. Without a router of its own nothing is skipped: words that are hashed are like any greeting."""
    request = SearchRequest(text=text, preset="helix", **more)
    tools = resources or replace(runtime.resources(), parts={})
    return search(request, principal=world.principal("bob"), resources=tools)


@pytest.fixture
def real_model(monkeypatch):
    """Search with the default model: what a model makes of a word that it never saw cannot be made up."""
    folder = settings.CORECUBE_MODELS_DIR / settings.CORECUBE_MODEL
    if not (folder / "manifest.json").is_file():
        pytest.skip(f"the model {folder.name} is not here: run manage.py models fetch")
    model = load_encoder(folder)
    monkeypatch.setattr(active, "encoder", lambda *_: model)


def titles(outcome):
    return [hit.chunk.title for hit in outcome.hits]


def stages(outcome):
    return [span.stage for span in outcome.trace if not span.parent]


def filler(count, words="harbour ferry timetable"):
    """Return pages that speak of something else."""
    return {
        f"filler{number}.md": f"# Page {number}\n\n{words} number{number} of the fleet.\n" for number in range(count)
    }


#: Long texts in which one name stands once.
_LOG = "# Night shift\n\n" + "The crane was greased and the log was signed. " * 12 + "It said ERR_WINCH-4711.\n"
_ROPE = "# Rope work\n\n" + "The rope is laid on the bench and opened. " * 12 + "Then comes the frobnisher.\n"


class TestDenseOnlyBlindSpot:
    """To a model an error's number is a few pieces of words among many."""

    QUESTION = "what does ERR_WINCH-4711 mean"

    @pytest.mark.usefixtures("real_model")
    def test_the_exact_string_is_found_by_the_words_leg(self, shelf):
        codes = {
            f"code{number}.md": f"# ERR_WINDOW-47{number}\n\nThis error means that window {number} is open.\n"
            for number in range(20, 35)
        }
        world = shelf(codes | {"fault.md": _LOG})
        assert "Night shift" not in titles(find(world, self.QUESTION, mode="dense"))
        found = find(world, self.QUESTION)
        assert titles(found)[0] == "Night shift"
        assert found.hits[0].ranks["bm25"] == 1
        assert found.hits[0].signals["written"] == 1

    def test_no_number_switches_the_words_leg_off(self, shelf):
        world = shelf({"fault.md": _LOG})
        with pytest.raises(OverridesError):
            find(world, "ERR_WINCH-4711", overrides={"bm25.depth": 0})


class TestQuantisationDrift:
    """Signs alone say little of an angle: the nearest by bits are not the nearest."""

    @pytest.fixture
    def walked(self, shelf):
        world = shelf(filler(150))
        EmbeddingIndex.objects.update(scan="binary", oversample=8.0)
        rebuild_hnsw(replace(active.active_index(active.encoder()), scan="binary"))
        return world

    def test_the_walk_by_bits_is_wrong_and_the_ranking_is_not(self, walked):
        world = walked
        question = "harbour ferry timetable number7 number70"
        index = active.active_index(active.encoder())
        assert index.scan == "binary"
        vector = active.encoder().encode_query(question)
        drifted = self.nearest(f"binary_quantize(vector)::bit({index.dim}) <~> binary_quantize(%s::halfvec)", vector)
        true = self.nearest("vector <=> %s::halfvec", vector)
        assert drifted != true
        found = find(world, question, overrides={"dense.exact_below": 0})
        assert "HNSW index by binary, rescored with full vectors" in str(found.trace)
        ranked = [hit.chunk_id.document_id for hit in found.state.rankings["dense"]]
        assert ranked[:10] == true
        cosines = [hit.score for hit in found.state.rankings["dense"]]
        assert cosines == sorted(cosines, reverse=True)

    @staticmethod
    def nearest(distance, vector):
        with database.cursor() as cursor:
            sql = f"SELECT document_id FROM retrieval_embedding ORDER BY {distance}, document_id LIMIT 10"
            cursor.execute(sql, [HalfVector(vector).to_text()])
            return [document for (document,) in cursor.fetchall()]


class TestRankBase:
    """A rank that starts at 0, or another k, changes every fused score without an error."""

    def test_fused_scores_are_those_worked_out_by_hand(self, shelf):
        world = shelf(filler(12) | {"winch.md": "# Winch\n\nThe winch of the ferry is greased in the harbour.\n"})
        found = find(world, "winch ferry")
        fused = {hit.chunk_id: hit for span in found.trace if span.stage == "fuse" for hit in span.left}
        for leg, ranking in found.state.rankings.items():
            assert [fused[hit.chunk_id].ranks[leg] for hit in ranking] == list(range(1, len(ranking) + 1))
        best = fused[found.state.rankings["bm25"][0].chunk_id]
        assert best.ranks == {"dense": 1, "bm25": 1}
        # 1 / (60 + 1) from either leg.
        assert best.signals["rrf"] == best.score == pytest.approx(2 / 61)
        for hit in fused.values():
            assert hit.score == pytest.approx(sum(1 / (60 + rank) for rank in hit.ranks.values()))
            assert hit.score_type is ScoreType.RRF


class TestGraphOverExpansion:
    """A page that names fifty others would flood the pool with them."""

    @pytest.fixture
    def flood(self, shelf):
        ports = {
            f"port{number}.md": f"# Port Alma{number}\n\nBuilt in year{number} by mason{number} of stone{number}.\n"
            for number in range(50)
        }
        listed = ", ".join(f"Port Alma{number}" for number in range(50))
        pages = {
            "gazetteer.md": f"# Gazetteer of Piers\n\nIt lists {listed}.\n",
            "tariff.md": "# Mooring tariff\n\nThe mooring fee of the piers is nine crowns, says the gazetteer.\n",
        }
        return shelf(ports | pages)

    def lifted(self, outcome):
        return [hit for hit in outcome.hits if "link" in {lift.kind for lift in hit.lifts}]

    def test_few_are_lifted_and_the_answer_stays_in_front_of_them(self, flood):
        question = "What is the mooring fee in the Gazetteer of Piers?"
        flooded = find(
            flood, question, top_k=100, overrides={"graph.bridges": 100, "graph.top_seeds": 0, "graph.seat_share": 0}
        )
        held = find(flood, question, top_k=100, overrides={"graph.top_seeds": 0, "graph.seat_share": 0})
        assert len(self.lifted(flooded)) == 50
        assert len(self.lifted(held)) == HelixConfig().graph.bridges
        assert set(titles(held)[:3]) >= {"Gazetteer of Piers", "Mooring tariff"}

    def test_what_links_add_is_capped_and_weighs_little_for_facts(self, flood):
        question = "What is the mooring fee in the Gazetteer of Piers?"
        found = find(flood, question, top_k=100)
        assert all(hit.signals["graph"] <= 1 for hit in found.hits)
        config = HelixConfig()
        added = [hit.contributions["graph"] for hit in found.hits if "graph" in hit.contributions]
        assert max(added) <= config.signals.of(found.state.part(RankedAs).memory_type).graph
        assert config.signals.of(MemoryType.SEMANTIC).graph < config.signals.of(MemoryType.SEMANTIC).similarity / 2

    def test_the_subgraph_is_bounded(self, flood):
        found = find(flood, "What is the mooring fee in the Gazetteer of Piers?", overrides={"graph.max_edges": 10})
        assert "10 rows read; the row limit was reached" in str(found.trace)


class TestColdCache:
    """What the first search has to open takes longer than a search may."""

    def test_the_warm_up_opened_it_before(self, shelf, monkeypatch):
        world = shelf(filler(5) | {"winch.md": "# Winch\n\nThe winch is greased.\n"})
        monkeypatch.setattr(runtime, "_routers", Routers())
        trained = []
        monkeypatch.setattr(
            "retrieval.presets.helix.route_examples.trained_router",
            _noting(trained, "retrieval.presets.helix.route_examples.trained_router"),
        )
        done = {step.name: step.outcome for step in warm_up.warm_up()}
        assert done["router"] == "ok"
        assert done["disk"].startswith("read ")
        assert done["rehearsal"].startswith("3 searches")
        assert len(trained) == 1
        first = find(world, "winch greased", resources=runtime.resources())
        # The first search trains nothing, and its routing is a trained router's.
        assert len(trained) == 1
        assert first.state.part(Routing).likeness
        assert first.state.degraded == ()

    def test_nothing_is_opened_twice_while_it_is_being_opened(self):
        routers = Routers()
        assert routers.get(HashEncoder(), (), _Waiting()) is None
        assert routers.get(HashEncoder(), (), _Waiting()) is None
        assert _Waiting.handed == 1

    def test_a_training_that_failed_is_tried_again_a_minute_later(self):
        now, encoder = 0.0, _Moody()
        routers = Routers(clock=lambda: now)
        assert routers.get(encoder, (), runtime.InlineExecutor()) is None
        encoder.is_well, now = True, 59.0
        assert routers.get(encoder, (), runtime.InlineExecutor()) is None
        now = 60.0
        assert routers.get(encoder, (), runtime.InlineExecutor()) is not None


class _Moody(HashEncoder):
    """A model that cannot be used at first."""

    is_well = False

    def encode_query(self, text):
        if not self.is_well:
            raise EncoderError("The model is not well.")
        return super().encode_query(text)


class _Waiting:
    handed = 0

    def submit(self, *_):
        _Waiting.handed += 1


def _noting(calls, path):
    module, _, name = path.rpartition(".")
    original = getattr(__import__(module, fromlist=[name]), name)

    def noted(*given):
        calls.append(given)
        return original(*given)

    return noted


class TestLostInTheMiddle:
    """A reader overlooks what stands in the middle: the best passages do not stand there."""

    def test_the_best_stand_at_both_ends_and_the_weakest_in_the_middle(self, shelf):
        world = shelf(filler(9))
        numbers = [passage.number for passage in find(world, "harbour ferry timetable").passages]
        assert numbers == [1, 3, 5, 7, 9, 10, 8, 6, 4, 2]


class TestOverPacking:
    """More passages cost more and answer worse."""

    def test_passages_are_capped_by_number_and_by_tokens(self, shelf):
        world = shelf(filler(40))
        config = HelixConfig().pack
        found = find(world, "harbour ferry timetable", top_k=40)
        assert len(found.hits) == 40
        assert len(found.passages) == config.max_passages == 20
        assert sum(passage.token_count for passage in found.passages) <= config.budget_tokens
        over = [drop for drop in found.state.drops if drop.reason is DropReason.BUDGET]
        assert len(over) == 20
        small = find(world, "harbour ferry timetable", top_k=40, overrides={"pack.budget_tokens": 100})
        assert sum(passage.token_count for passage in small.passages) <= 100
        assert 1 <= len(small.passages) < 20


class TestRecencyRunaway:
    """Fresh noise would bury a decision that nobody has looked at for years."""

    @pytest.fixture
    def archive(self, shelf):
        noise = {f"chat{number}.md": f"# Chat {number}\n\nsomebody said quay number{number}\n" for number in range(20)}
        decision = "# Decision on the quay wall\n\nWe decided that the quay wall is rebuilt in concrete.\n"
        world = shelf(noise | {"decision.md": decision})
        old, now = timezone.now() - timedelta(days=1000), timezone.now()
        Document.objects.filter(connection=world.runbooks).update(modified_at=old, synced_at=old)
        rows = Document.objects.filter(connection=world.runbooks).exclude(title__startswith="Decision")
        # Who is no admin is not told of today's readings.
        DocumentAccess.objects.bulk_create(
            DocumentAccess(document_id=document, connection_id=world.runbooks.pk, accessed_at=now - timedelta(days=1))
            for document in rows.values_list("pk", flat=True)
        )
        return world

    def test_a_stale_decision_stays_in_front_of_fresh_noise(self, archive):
        question = "what did we decide about the quay wall"
        runaway = {f"signals.{kind}.recency": 1.0 for kind in ("semantic", "decision", "episodic", "procedural")}
        assert not titles(find(archive, question, overrides=runaway))[0].startswith("Decision")
        found = find(archive, question)
        assert titles(found)[0] == "Decision on the quay wall"
        assert found.hits[0].signals["recency"] < 0.01
        assert found.hits[1].signals["recency"] > 0.995**24

    def test_facts_and_decisions_weigh_recency_least(self):
        signals = HelixConfig().signals
        assert signals.of(MemoryType.SEMANTIC).recency < signals.of(MemoryType.DECISION).recency
        assert signals.of(MemoryType.DECISION).recency < signals.of(MemoryType.EPISODIC).recency / 2


class TestSkippedThoughNeeded:
    """A question that begins like a greeting needs its search."""

    NEAR = (
        "Hello, how do we grease the winch?",
        "Thanks! And how is the winch greased?",
        "What is 4 + 5 in the winch's manual?",
        "Format this as a list: how the winch is greased",
    )

    @pytest.fixture
    def tools(self, shelf):
        world = shelf(filler(5) | {"winch.md": "# Winch\n\nThe winch is greased with tallow.\n"})
        router = trained_router(HashEncoder(), shipped_examples())
        return world, runtime.resources().with_part(RouterSource, RouterSource(lambda: router))

    @pytest.mark.parametrize("question", NEAR)
    def test_a_question_that_is_near_to_a_skip_route_is_searched(self, tools, question):
        world, resources = tools
        likeness = resources.part(RouterSource).get().likeness(HashEncoder().encode_query(question))
        eager = find(world, question, resources=resources, overrides={"route.skip_from": 0, "route.skip_margin": 0})
        found = find(world, question, resources=resources)
        assert "Winch" in titles(found)
        # Some of these would be skipped by a router that only asks which route is the nearest.
        nearest = next(iter(likeness.by_route))
        assert (eager.hits == ()) == (likeness.skip(minimum=0, margin=0) == nearest != "")

    def test_a_router_that_asks_only_for_the_nearest_would_have_skipped_one(self, tools):
        world, resources = tools
        eager = {"route.skip_from": 0, "route.skip_margin": 0}
        skipped = [it for it in self.NEAR if not find(world, it, resources=resources, overrides=eager).hits]
        assert skipped


class TestNearDuplicateSpam:
    """One text repeated in many places would be the whole answer."""

    def test_one_stays_and_others_get_a_place(self, shelf):
        fact = "The mooring fee is nine crowns for a day and fifty for a week, paid to the harbour office on arrival."
        spam = {f"copy{number}.md": f"# Fees\n\n{fact} Sheet {number}.\n" for number in range(12)}
        world = shelf(spam | {"note.md": "# Waiver\n\nNo mooring fee is paid in a storm.\n"} | filler(12))
        question = "what is the mooring fee for a day"
        spammed = find(world, question, overrides={"near_duplicates.min_similarity": 1.0, "diversify.relevance": 1.0})
        assert titles(spammed).count("Fees") >= 9
        found = find(world, question)
        assert titles(found)[0] == "Fees"
        assert titles(found).count("Fees") == 1
        assert "Waiver" in titles(found)[:3]
        dropped = [drop for drop in found.state.drops if drop.reason is DropReason.DUPLICATE]
        assert len(dropped) == 11
        assert {drop.instead for drop in dropped} == {found.hits[0].chunk_id}


class TestRerankerOnAProcessor:
    """A hundred pairs through a cross-encoder take a processor a minute and more."""

    def test_none_runs_unless_asked_for_and_never_on_more_than_thirty(self, shelf):
        world = shelf(filler(40))
        assert "rerank" not in stages(find(world, "harbour ferry"))
        for candidates in (1, 31, 100):
            with pytest.raises(OverridesError):
                find(world, "harbour ferry", overrides={"rerank.candidates": candidates})
        with pytest.raises(ConfigError):
            OptionalRerankConfig(candidates=31)

    def test_the_stage_itself_refuses_more(self):
        config = OptionalRerankConfig(candidates=30)
        assert optional_rerank(config, None)[0].config.candidates == 30
        object.__setattr__(config, "candidates", 31)
        with pytest.raises(ConfigError, match="at most 30"):
            optional_rerank(config, None)


class TestOutOfDomainJargon:
    """Words that a model never saw have no meaning to it."""

    @pytest.mark.usefixtures("real_model")
    def test_a_rare_word_is_found_by_the_words_leg(self, shelf):
        trade = {
            f"tool{number}.md": f"# Tool {number}\n\nHow the {tool} is used: it is held and turned.\n"
            for number, tool in enumerate(
                ("frobisher", "finisher", "furnisher", "burnisher", "frobber", "furbisher", "fisher") * 3
            )
        }
        world = shelf(trade | {"splice.md": _ROPE})
        question = "how is the frobnisher used"
        assert titles(find(world, question, mode="dense"))[0] != "Rope work"
        found = find(world, question)
        assert titles(found)[0] == "Rope work"
        assert found.hits[0].ranks["bm25"] == 1

    def test_words_that_stand_nowhere_are_found_by_questions_written_at_ingest(self, shelf):
        world = shelf(filler(30) | {"splice.md": _ROPE})
        question = "marlinspike quillon"
        assert "Rope work" not in titles(find(world, question))
        chunk = Chunk.objects.get(document__title="Rope work")
        self.ask_of(chunk, world.runbooks, "Where is the marlinspike with the quillon?")
        follower().rebuild()
        found = find(world, question)
        hit = next(hit for hit in found.hits if hit.chunk.title == "Rope work")
        assert hit.ranks == {"bm25": 1} | {leg: rank for leg, rank in hit.ranks.items() if leg == "dense"}

    @staticmethod
    def ask_of(chunk: Chunk, connection: Connection, question: str) -> None:
        enriched = EnrichedChunk(row=chunk, context_line=chunk.context_line, questions=(question,), triples=())
        assert store_enrichment([enriched], connection_id=connection.pk, text_search_config="english") == 1
