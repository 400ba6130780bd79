"""What is worked out from a chunk is stored with it, and a change of profile takes everything in again."""

import pytest

from corecube.models import Connection
from retrieval.ingest.sync import sync_connection
from retrieval.models import Chunk, Document
from retrieval.text.document import ChunkDraft
from retrieval.text.fingerprints import minhash
from retrieval.text.traits import traits_of


def test_program_text_has_no_language_and_is_code():
    draft = ChunkDraft(0, "# the one that is for the queue and not for you to have", (), 12)
    assert traits_of(draft, source_type="code").language == ""
    assert "code" in traits_of(draft, source_type="code").hints
    assert traits_of(draft, source_type="text").language == "english"


@pytest.fixture
def long(world, sync_once):
    root = world.root / "runbooks"
    parts = [f"## Part {number}\n\n" + f"This is what the part {number} says of it. " * 70 for number in range(6)]
    (root / "long.md").write_text("# Long\n\n" + "\n\n".join(parts))
    (root / "zahlen.txt").write_text(
        "Die Warteschlange muss geleert werden, bevor das Release zurückgesetzt wird und ist."
    )
    sync_once(world.runbooks)
    return world.runbooks


def chunks_of(connection, name):
    return list(Chunk.objects.filter(connection_id=connection.pk, document__external_id=name).order_by("ordinal"))


def test_facts_are_stored_with_each_chunk(long):
    (chunk,) = chunks_of(long, "zahlen.txt")
    assert (chunk.language, list(chunk.hints)) == ("german", [])
    assert bytes(chunk.minhash) == minhash(chunk.text)
    assert {it.language for it in chunks_of(long, "long.md")} == {"english"}
    assert Document.objects.get(connection=long, external_id="zahlen.txt").raw_type == "txt"


def test_a_chunk_is_expanded_to_its_parent_with_one_read(long, django_assert_num_queries):
    chunks = chunks_of(long, "long.md")
    middle = chunks[len(chunks) // 2]
    with django_assert_num_queries(1):
        parent = Chunk.objects.filter(
            document_id=middle.document_id, ordinal__range=(middle.section_start, middle.section_end)
        )
        texts = [chunk.text for chunk in parent.order_by("ordinal")]
    assert middle.text in texts
    assert sum(it.token_count for it in chunks if it.section_start == middle.section_start) <= 2048


def test_another_profile_takes_everything_in_again(long):
    before = len(chunks_of(long, "long.md"))
    assert sync_connection(long).changed == 0
    Connection.objects.filter(pk=long.pk).update(chunk_profile="chunk_first")
    long.refresh_from_db()
    sync = sync_connection(long)
    assert (sync.changed, sync.unchanged) == (Document.objects.filter(connection=long).count(), 0)
    assert len(chunks_of(long, "long.md")) < before
    assert sync_connection(long).changed == 0
