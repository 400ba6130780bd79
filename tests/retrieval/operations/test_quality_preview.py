"""Quality filter preview, as the command and the function tell it."""

import pytest
from django.core.management import CommandError, call_command

from retrieval.models import Chunk
from retrieval.operations.quality_preview import live_minimum, preview


@pytest.fixture
def low(world):
    """Lower the quality of the ledger's one chunk and of one of the runbooks'."""
    Chunk.objects.filter(connection_id=world.ledger.pk).update(quality=0.1, quality_parts={"legal": 0.2, "links": 0.7})
    first = Chunk.objects.filter(connection_id=world.runbooks.pk).order_by("document_id", "ordinal").first()
    Chunk.objects.filter(document_id=first.document_id, ordinal=first.ordinal).update(quality=0.4)
    return first


def report(capsys, *arguments):
    call_command("quality", *arguments)
    return capsys.readouterr().out.splitlines()


def test_it_counts_what_lies_below_the_threshold(world, low):
    chunks = Chunk.objects.filter(connection_id=world.runbooks.pk).count()
    at = {minimum: preview(world.runbooks, minimum=minimum, limit=5) for minimum in (0.3, 0.4, 0.41)}
    assert [(it.dropped, it.chunks) for it in at.values()] == [(0, chunks), (0, chunks), (1, chunks)]
    assert [it.document_id for it in at[0.41].lowest] == [low.document_id]


def test_the_heaviest_part_comes_first_and_the_text_is_cut_to_a_line(world, low):
    Chunk.objects.filter(connection_id=world.ledger.pk).update(text="word\n\n" * 100)
    (found,) = preview(world.ledger, minimum=0.3, limit=5).lowest
    assert list(found.parts.items()) == [("links", 0.7), ("legal", 0.2)]
    assert found.beginning == ("word " * 16)[:80]


def test_the_lowest_come_first_and_no_more_than_asked_for(world, low):
    Chunk.objects.filter(connection_id=world.runbooks.pk).exclude(document_id=low.document_id).update(quality=0.2)
    found = preview(world.runbooks, minimum=0.5, limit=1)
    assert [it.quality for it in found.lowest] == [0.2]
    assert found.dropped > 1
    assert preview(world.runbooks, minimum=0.5, limit=0).lowest == ()


def test_the_command_reports_every_connection(world, low, capsys):
    lines = report(capsys)
    chunks = Chunk.objects.filter(connection_id=world.runbooks.pk).count()
    assert lines[0] == "ledger: 1 of 1 chunks below 0.3"
    assert lines[1].startswith("  0.10  Costs #0 (links 0.70, legal 0.20): ")
    assert lines[2:] == [f"runbooks: 0 of {chunks} chunks below 0.3", "vault: 0 of 1 chunks below 0.3"]


def test_the_command_takes_a_connection_a_threshold_and_a_limit(world, low, capsys):
    lines = report(capsys, "--connection", "runbooks", "--minimum", "1", "--limit", "0")
    assert len(lines) == 1
    assert lines[0].startswith("runbooks: 1 of ")
    assert report(capsys, "--connection", "runbooks", "--least", "1", "--limit", "0") == lines


@pytest.mark.parametrize("arguments", [("--connection", "nowhere"), ("--minimum", "1.5"), ("--limit", "-1")])
def test_the_command_refuses_what_cannot_be(world, arguments):
    with pytest.raises(CommandError):
        call_command("quality", *arguments)


def test_the_threshold_is_the_one_that_searches_use(db):
    assert live_minimum() == 0.3
