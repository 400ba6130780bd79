"""Questions written by a model on this machine, beside a language model or without one."""

import pytest
from django.core.management import CommandError, call_command

from corecube.errors import ConfigError
from corecube.models import Connection
from retrieval.errors import EnrichError
from retrieval.ingest.enrich import tasks, writers
from retrieval.ingest.enrich.prompts import expansions_in
from retrieval.ingest.enrich.services import enrich, enrich_after_sync, estimate_pass
from retrieval.ingest.enrich.wants import requested, writable
from retrieval.ingest.sync import sync_connection
from retrieval.models import Chunk
from tests.retrieval.encoders.seq2seq_model import write_model


@pytest.fixture
def writer(settings, tmp_path):
    """Configure the tiny model; each test has its own copy."""
    settings.CORECUBE_MODELS_DIR = tmp_path / "models"
    settings.CORECUBE_ENRICH_QUESTIONS_MODEL = "tiny-writer"
    yield write_model(tmp_path / "models" / "tiny-writer", max_tokens=64)
    writers._loaded.cache_clear()


def asking(connection, what):
    Connection.objects.filter(pk=connection.pk).update(enrichment=what)
    connection.refresh_from_db()
    return connection


def chunks_of(connection):
    return Chunk.objects.filter(connection_id=connection.pk)


def test_questions_need_no_language_model(works, writer, tmp_path):
    (tmp_path / "works" / "hall.md").write_text(
        "# Hall\n\n" + "One more valve stands here, valve after valve, for the water that it lets in. " * 3
    )
    sync_connection(asking(works, "questions"))
    result = enrich(works)
    assert (result.enriched, result.failed) == (3, 0)
    hall = chunks_of(works).get(document__title="Hall")
    assert hall.questions[0] == "what valve"
    assert set(hall.questions) <= {"what pump", "what valve", "what lamp"}
    # The questions are searched, with the lowest weight.
    assert "'valv'" in hall.search
    assert chunks_of(works).extra(where=["ts_filter(search, '{d}') @@ to_tsquery('english', 'valve')"]).count()
    assert set(chunks_of(works).values_list("context_line", flat=True)) == {""}
    assert enrich(works).enriched == 0


def test_the_language_model_is_asked_for_the_context_alone(works, writer, model):
    asking(works, "both")
    cost = estimate_pass(works)
    assert (cost.chunks, cost.requests, cost.written_here) == (2, 2, 2)
    assert enrich(works).enriched == 2
    assert len(model.requests) == 2
    assert all(chunk.context_line and chunk.questions[0].startswith("what ") for chunk in chunks_of(works))


def test_what_nobody_can_write_is_left_out(works, writer):
    assert (requested(asking(works, "both")), writable()) == ({"context", "questions"}, {"questions"})
    assert enrich(works).enriched == 2
    assert not estimate_pass(works).chunks
    with pytest.raises(ConfigError):
        enrich(asking(works, "context"))
    assert enrich_after_sync(works).enriched == 0


def test_an_estimate_says_who_writes_and_loads_nothing(works, writer, capsys):
    (writer / "decoder_model.onnx").write_bytes(b"nothing")
    asking(works, "questions")
    call_command("enrich", "--connection", "works", "--estimate")
    told = capsys.readouterr().out
    assert "2 chunks in 0 requests, about 0 input tokens" in told
    assert "questions for 2 by the model on this machine" in told


def test_a_model_that_is_gone_or_damaged_says_so(works, writer, settings):
    asking(works, "questions")
    (writer / "decoder_model.onnx").write_bytes(b"nothing")
    with pytest.raises(CommandError, match="cannot be loaded"):
        call_command("enrich", "--connection", "works", "--yes")
    settings.CORECUBE_ENRICH_QUESTIONS_MODEL = "elsewhere"
    assert "elsewhere" in enrich_after_sync(works).message


def test_a_pass_takes_no_more_than_its_ceiling(works, writer, settings):
    settings.CORECUBE_ENRICH_CHUNKS = 1
    assert enrich(asking(works, "questions")).enriched == 1
    assert chunks_of(works).exclude(questions=[]).count() == 1


def test_the_end_of_a_sync_queues_a_pass(works, writer, monkeypatch, django_capture_on_commit_callbacks):
    sent = []
    monkeypatch.setattr(tasks.enrich_connection, "apply_async", lambda arguments, **_: sent.append(arguments))
    for what in ("questions", "context"):
        with django_capture_on_commit_callbacks(execute=True):
            sync_connection(asking(works, what))
    assert sent == [(works.pk,)]


def test_what_was_written_is_cleaned_and_cut():
    lines = ["how  old is\nthe pump", "How old is the pump", "x", "y" * 201, "who\u202e opens it?", *"abcdefgh"]
    assert expansions_in(lines) == ("how old is the pump", "who opens it?")
    many = [f"question number {number}" for number in range(9)]
    assert expansions_in(many) == tuple(many[:5])
    with pytest.raises(EnrichError):
        expansions_in(["", "x"])


def test_the_models_command_knows_it(writer, capsys):
    call_command("models", "verify", "tiny-writer")
    call_command("models", "list")
    assert "tiny-writer (questions)" in capsys.readouterr().out
