"""Sparse vectors and token vectors of chunks: made by syncs, searched in scope, gone with their documents."""

import os
import subprocess
import sys
from dataclasses import replace
from uuid import UUID

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.db import connection as database
from pgvector import SparseVector

from corecube.access import scope_for
from explorer.pages.explorer.ledger import LedgerSource, ledger
from explorer.pages.models.panels import reranker_card
from retrieval.admin.preset_versions import promote, save_draft
from retrieval.encoders.embedders import key_of, sparse_encoder, token_encoder
from retrieval.engine.state import RequestFilter
from retrieval.engine.types import ScoreType
from retrieval.errors import EncoderError, RerankError, RerankTimeoutError, UnknownModeError
from retrieval.index import reranking
from retrieval.index.bm25.follower import follower
from retrieval.index.encodings import (
    Encodings,
    SparseLook,
    compressed_vectors,
    drop_encodings,
    sparse_exact,
    sparse_hnsw,
)
from retrieval.index.reranking import StoredInteraction
from retrieval.index.writer import refresh_statistics
from retrieval.ingest import encodings as ingest_encodings
from retrieval.ingest import index_tasks
from retrieval.ingest.dispatch import work_until_idle
from retrieval.ingest.encodings import encode_next, fill_encodings
from retrieval.ingest.sync import sync_connection
from retrieval.models import Chunk, SentenceEmbedding, SparseEmbedding, TokenEmbedding
from retrieval.presets.catalog import preset_named
from retrieval.ranking.signals import SIGNALS
from retrieval.search import runtime
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from tests.fakes import HashEncoder
from tests.word_models import write_late_model, write_sparse_model

WORDS = ("revert", "rollback", "queue", "draining", "zanzibar", "staging")
VECTORS = {"rollback": (1, 0, 0), "revert": (1, 0.1, 0), "queue": (0, 1, 0), "staging": (0.5, 0.5, 0)}


class BrokenEncoder(HashEncoder):
    def encode_documents(self, _texts):
        raise EncoderError


@pytest.fixture
def models(settings, tmp_path):
    """Choose a sparse model for which "rollback" means "revert" too, and one of late interaction."""
    settings.CORECUBE_MODELS_DIR = tmp_path / "models"
    settings.CORECUBE_SPARSE_MODEL = "tiny-sparse"
    settings.CORECUBE_TOKEN_MODEL = "tiny-late"
    write_sparse_model(tmp_path / "models" / "tiny-sparse", WORDS, also={"rollback": ["revert"]})
    write_late_model(tmp_path / "models" / "tiny-late", VECTORS)


@pytest.fixture
def encoded(models, world, settings):
    """The world taken in with both models chosen, and a BM25 index."""
    settings.CORECUBE_BM25 = True
    follower().rebuild()
    return world


def find(world, name, text, **more):
    return search(SearchRequest(text=text, preset="helix", **more), principal=world.principal(name))


def with_rerank(world, name, text, reranker, candidates=10):
    """Search with a preset whose admin allowed a reranker."""
    helix = preset_named("helix")
    save_draft(preset=helix, values={"rerank.candidates": candidates}, note="", actor=world.alice)
    promote(preset=helix, number=1, actor=world.alice)
    tools = replace(runtime.resources(), reranker=reranker)
    return search(SearchRequest(text=text, preset="helix"), principal=world.principal(name), resources=tools)


def sparse_indexes():
    """Return the names of the HNSW indexes over sparse vectors."""
    with database.cursor() as cursor:
        cursor.execute("SELECT relname FROM pg_class WHERE relname LIKE 'retrieval_sparse_hnsw%'")
        return {name for (name,) in cursor.fetchall()}


class TestWriting:
    @pytest.mark.usefixtures("encoded")
    def test_a_sync_encodes_what_it_takes_in(self):
        chunks = Chunk.objects.count()
        assert SparseEmbedding.objects.filter(model_key=key_of(sparse_encoder())).count() == chunks
        assert TokenEmbedding.objects.filter(model_key=key_of(token_encoder())).count() == chunks

    def test_only_sentences_are_encoded_where_no_model_is_chosen(self, world):
        chunks = Chunk.objects.filter(connection_id=world.runbooks.pk).count()
        assert fill_encodings(world.runbooks.pk) == {"sentences": chunks}
        assert (SparseEmbedding.objects.count(), TokenEmbedding.objects.count()) == (0, 0)
        assert fill_encodings(world.runbooks.pk) == {"sentences": 0}

    @pytest.mark.usefixtures("world")
    def test_an_idle_worker_encodes_the_sentences_of_all_connections(self):
        assert SentenceEmbedding.objects.count() == 0
        work_until_idle()
        assert SentenceEmbedding.objects.count() == Chunk.objects.count() > 0
        assert not encode_next()

    @pytest.mark.usefixtures("world")
    def test_a_model_that_fails_ends_no_worker(self, monkeypatch):
        monkeypatch.setattr(ingest_encodings, "local_encoder", BrokenEncoder)
        work_until_idle()
        assert SentenceEmbedding.objects.count() == 0

    def test_a_model_that_is_chosen_later_reads_what_is_there(self, encoded):
        drop_encodings(Encodings.SPARSE, encoded.runbooks.pk)
        drop_encodings(Encodings.TOKENS, encoded.runbooks.pk)
        count = Chunk.objects.filter(connection_id=encoded.runbooks.pk).count()
        assert fill_encodings(encoded.runbooks.pk) == {"sparse": count, "tokens": count, "sentences": count}
        drop_encodings(Encodings.SENTENCES, encoded.runbooks.pk)
        assert fill_encodings(encoded.runbooks.pk) == {"sparse": 0, "tokens": 0, "sentences": count}

    def test_another_model_takes_the_place_of_what_the_first_made(self, encoded, settings, tmp_path):
        write_sparse_model(tmp_path / "models" / "other", WORDS)
        settings.CORECUBE_SPARSE_MODEL = "other"
        assert fill_encodings(encoded.runbooks.pk)["sparse"] > 0
        keys = SparseEmbedding.objects.filter(connection_id=encoded.runbooks.pk).values_list("model_key", flat=True)
        assert set(keys) == {key_of(sparse_encoder())}

    def test_what_the_first_model_made_does_not_stay_behind(self, encoded, settings, tmp_path):
        chosen, dim = key_of(sparse_encoder()), sparse_encoder().dim
        assert sparse_indexes() == {f"retrieval_sparse_hnsw_{chosen}"}
        # Neither does what no chunk takes the place of: it changed while it was encoded.
        SparseEmbedding.objects.create(
            document_id=UUID(int=1),
            ordinal=0,
            connection_id=encoded.runbooks.pk,
            model_key=chosen,
            vector=SparseVector({0: 1.0}, dim),
        )
        write_sparse_model(tmp_path / "models" / "other", WORDS)
        write_late_model(tmp_path / "models" / "other-late", VECTORS | {"other": (0, 0, 1)})
        settings.CORECUBE_SPARSE_MODEL, settings.CORECUBE_TOKEN_MODEL = "other", "other-late"
        fill_encodings(encoded.runbooks.pk)
        assert sparse_indexes() == {f"retrieval_sparse_hnsw_{key_of(sparse_encoder())}"}
        for model, encoder in ((SparseEmbedding, sparse_encoder()), (TokenEmbedding, token_encoder())):
            keys = model.objects.filter(connection_id=encoded.runbooks.pk).values_list("model_key", flat=True)
            assert set(keys) == {key_of(encoder)}
            # Another connection's go when it is tidied itself.
            assert model.objects.filter(connection_id=encoded.vault.pk).exclude(model_key=key_of(encoder)).exists()

    @pytest.mark.usefixtures("encoded")
    def test_the_planner_knows_the_tables_of_optional_models(self):
        refresh_statistics()
        with database.cursor() as cursor:
            cursor.execute(
                "SELECT min(reltuples) FROM pg_class WHERE relname IN (%s, %s)",
                ["retrieval_sparseembedding", "retrieval_tokenembedding"],
            )
            assert cursor.fetchone()[0] > 0

    def test_a_changed_document_is_encoded_anew_and_a_deleted_one_forgotten(self, encoded):
        folder = encoded.root / "runbooks"
        before = SparseEmbedding.objects.filter(connection_id=encoded.runbooks.pk).count()
        (folder / "queues.txt").write_text("Zanzibar, and nothing else that was there before stands here any more.")
        sync_connection(encoded.runbooks)
        assert [it.chunk.title for it in find(encoded, "bob", "zanzibar", mode="sparse").hits] == ["Queues"]
        (folder / "queues.txt").unlink()
        sync_connection(encoded.runbooks)
        assert SparseEmbedding.objects.filter(connection_id=encoded.runbooks.pk).count() == before - 1
        assert TokenEmbedding.objects.filter(connection_id=encoded.runbooks.pk).count() == before - 1

    def test_they_go_with_their_connection(self, encoded):
        encoded.runbooks.delete()
        assert not SparseEmbedding.objects.filter(connection_id=encoded.runbooks.pk).exists()
        assert not TokenEmbedding.objects.filter(connection_id=encoded.runbooks.pk).exists()

    def test_a_model_that_cannot_be_had_keeps_no_sync_from_ending(self, world, settings, tmp_path):
        settings.CORECUBE_MODELS_DIR = tmp_path / "models"
        settings.CORECUBE_SPARSE_MODEL = "missing"
        (world.root / "runbooks" / "new.txt").write_text("A new text about staging that is long enough to be kept.")
        assert sync_connection(world.runbooks).added == 1


class TestCommand:
    def test_it_counts_builds_and_drops(self, encoded, capsys):
        call_command("encodings", "drop", connection="runbooks")
        call_command("encodings", "build", connection="runbooks")
        call_command("encodings", connection="runbooks")
        count = Chunk.objects.filter(connection_id=encoded.runbooks.pk).count()
        told = capsys.readouterr().out
        assert f"runbooks: {count} sparse dropped" in told
        assert f"runbooks: {count} sparse, {count} tokens, {count} sentences" in told
        assert f"runbooks: {count} of {count} chunks have tokens by tiny-late" in told

    @pytest.mark.usefixtures("world")
    def test_without_a_model_there_is_nothing_to_build(self, monkeypatch):
        monkeypatch.setattr(ingest_encodings, "local_encoder", lambda: None)
        with pytest.raises(CommandError, match="CORECUBE_SPARSE_MODEL"):
            call_command("encodings", "build")
        with pytest.raises(CommandError, match="no connection"):
            call_command("encodings", "status", connection="none")


class TestSparseLeg:
    def test_it_finds_by_a_word_that_no_text_holds(self, encoded):
        outcome = find(encoded, "bob", "revert")
        best = outcome.state.rankings["sparse"][0]
        assert (
            "rollback" in Chunk.objects.get(document_id=best.chunk_id.document_id, ordinal=best.chunk_id.ordinal).text
        )
        assert {"dense", "bm25", "sparse"} == set(outcome.state.rankings)
        assert outcome.hits[0].ranks["sparse"] >= 1
        assert outcome.state.degraded == ()

    def test_it_can_search_alone(self, encoded):
        outcome = find(encoded, "bob", "revert", mode="sparse")
        assert list(outcome.state.rankings) == ["sparse"]
        scores = [hit.signals["sparse"] for hit in outcome.hits]
        assert scores == sorted(scores, reverse=True)

    def test_there_is_no_such_leg_without_a_model(self, world):
        assert "sparse" not in find(world, "bob", "rollback").state.rankings
        with pytest.raises(UnknownModeError):
            find(world, "bob", "rollback", mode="sparse")

    def test_a_model_that_cannot_be_had_is_told(self, world, settings, tmp_path):
        settings.CORECUBE_MODELS_DIR = tmp_path / "models"
        settings.CORECUBE_SPARSE_MODEL = "missing"
        outcome = find(world, "bob", "rollback")
        assert "sparse_unavailable" in outcome.state.degraded
        assert outcome.hits

    def test_what_is_out_of_scope_is_not_found(self, encoded):
        assert find(encoded, "bob", "zanzibar", mode="sparse").hits == ()
        assert len(find(encoded, "alice", "zanzibar", mode="sparse").hits) == 1

    @pytest.mark.parametrize("way", [sparse_exact, lambda look: sparse_hnsw(look, ef_search=100)])
    def test_both_ways_find_the_same_in_scope_and_under_a_filter(self, encoded, way):
        encoder = sparse_encoder()
        look = SparseLook(
            encoder.encode_query("revert queue"),
            scope=scope_for(encoded.principal("bob")),
            model_key=key_of(encoder),
            depth=10,
            timeout_seconds=5,
        )
        found = way(look)
        assert [(hit.chunk_id, round(hit.score, 3)) for hit in found] == [
            (hit.chunk_id, round(hit.score, 3)) for hit in sparse_exact(look)
        ]
        assert {
            Chunk.objects.get(document_id=it.chunk_id.document_id, ordinal=it.chunk_id.ordinal).connection_id
            for it in found
        } == {encoded.runbooks.pk}
        nothing = RequestFilter(since=encoded.alice.date_joined.replace(year=2100))
        assert way(replace(look, request_filter=nothing)) == ()

    def test_the_sparse_score_counts_for_its_share_of_similarity(self, encoded):
        whole = find(encoded, "bob", "revert", overrides={"signals.sparse_share": 1.0})
        scores = [hit.signals.get("sparse", 0.0) for hit in whole.hits]
        assert max(whole.hits, key=lambda hit: hit.signals["similarity"]).signals["sparse"] == max(scores)


class TestStoredInteraction:
    def test_the_survivors_are_ranked_by_what_is_stored(self, encoded):
        outcome = with_rerank(encoded, "bob", "queue", StoredInteraction(token_encoder()))
        (note,) = [note for span in outcome.trace if span.stage == "rerank" for note in span.notes]
        assert note.code == "reranked"
        assert "stored late interaction of tiny-late" in note.text
        best = max(outcome.hits, key=lambda hit: hit.signals["rerank"])
        assert "queue" in best.chunk.text.lower()
        assert all(sum(it.contributions.values()) == pytest.approx(it.score) for it in outcome.hits)

    def test_the_ledger_says_what_it_added(self, encoded):
        outcome = with_rerank(encoded, "bob", "queue", StoredInteraction(token_encoder()))
        rows = {row.signal: row for row in ledger(outcome.hits[0], LedgerSource.of(outcome)).parts}
        assert "late interaction" in rows["rerank"].facts[0]
        assert rows["rerank"].amount + sum(rows[name].amount or 0 for name in SIGNALS) == pytest.approx(
            outcome.hits[0].score
        )

    @pytest.mark.usefixtures("encoded")
    def test_its_setting_chooses_it(self, settings):
        settings.CORECUBE_RERANKER = "stored-late-interaction"
        assert isinstance(runtime.reranker(), StoredInteraction)
        settings.CORECUBE_TOKEN_MODEL = "missing"
        assert "'missing' of the token vectors cannot be loaded" in runtime.reranker().problem

    def test_scores_are_those_of_vectors_made_on_the_spot(self, encoded):
        reranker = StoredInteraction(token_encoder())
        outcome = find(encoded, "bob", "queue")
        scope = outcome.state.scope
        stored = reranker.score_hits("queue", outcome.hits, scope=scope, timeout_seconds=5)
        TokenEmbedding.objects.filter(document_id=outcome.hits[0].chunk_id.document_id).delete()
        made = reranker.score_hits("queue", outcome.hits, scope=scope, timeout_seconds=5)
        assert np.allclose(stored, made)
        with pytest.raises(RerankTimeoutError):
            reranker.score_hits("queue", outcome.hits, scope=scope, timeout_seconds=-1)

    def test_the_query_is_read_once_before_there_are_hits(self, encoded):
        done = []

        class Noting(StoredInteraction):
            def read(self, query):
                done.append("read")
                return super().read(query)

            def score_hits(self, query, hits, **given):
                done.append("scored")
                return super().score_hits(query, hits, **given)

        tools = replace(runtime.resources(), reranker=Noting(token_encoder()))
        outcome = search(SearchRequest(text="queue"), principal=encoded.principal("bob"), resources=tools)
        assert outcome.hits[0].score_type is ScoreType.MAXSIM
        assert done == ["read", "scored"]

    def test_the_models_page_shows_how_many_chunks_have_them(self, encoded):
        document = encoded.runbooks.documents.first()
        TokenEmbedding.objects.filter(document_id=document.pk).delete()
        card = reranker_card(StoredInteraction(token_encoder()), candidates=30)
        all_chunks, left = Chunk.objects.count(), TokenEmbedding.objects.count()
        assert 0 < left < all_chunks
        assert dict(card.facts)["Token vectors"] == f"{left} of {all_chunks} chunks"

    def test_vectors_out_of_scope_are_not_read(self, encoded):
        hits = find(encoded, "alice", "rollback").hits
        encoder = token_encoder()
        scope = scope_for(encoded.principal("bob"))
        found = compressed_vectors(
            Encodings.TOKENS, hits, model_key=key_of(encoder), dim=3, scope=scope, timeout_seconds=5
        )
        allowed = {hit.chunk_id for hit in hits if hit.chunk.connection_id == encoded.runbooks.pk}
        assert set(found) == allowed < {hit.chunk_id for hit in hits}

    def test_a_search_does_not_encode_all_that_is_not_built_yet(self, encoded, monkeypatch):
        reranker = StoredInteraction(token_encoder())
        monkeypatch.setattr(reranking, "_MAX_ENCODED", 0)
        outcome = find(encoded, "bob", "queue")
        TokenEmbedding.objects.all().delete()
        with pytest.raises(RerankError, match="have no token vectors yet"):
            reranker.score_hits("queue", outcome.hits, scope=outcome.state.scope, timeout_seconds=5)
        assert "rerank_failed" in with_rerank(encoded, "bob", "queue", reranker).state.degraded


@pytest.mark.usefixtures("encoded")
def test_a_worker_that_starts_makes_what_is_missing(monkeypatch):
    chunks = Chunk.objects.count()
    TokenEmbedding.objects.all().delete()
    monkeypatch.setattr(index_tasks.encode, "delay", index_tasks.encode)
    monkeypatch.setattr(index_tasks, "close_old_connections", lambda: None)
    index_tasks.resume()
    assert TokenEmbedding.objects.count() == chunks


def test_one_setting_switches_reranking_on():
    shown = "from django.conf import settings as s; print(s.CORECUBE_TOKEN_MODEL)"
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "corecube.settings", "CORECUBE_MODEL": "a-model"}
    for name, model in (("stored-late-interaction", "a-model"), ("", "")):
        run = subprocess.run(
            [sys.executable, "-c", shown],
            env=environment | {"CORECUBE_RERANKER": name},
            capture_output=True,
            text=True,
            check=True,
        )
        assert run.stdout.strip() == model
