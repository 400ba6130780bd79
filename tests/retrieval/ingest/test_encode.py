"""What a sync embeds, judges and stores of a chunk."""

import pytest

from corecube.models import Compartment, Connection
from retrieval.index import active
from retrieval.ingest import prepared_document
from retrieval.ingest.sync import sync_connection
from retrieval.models import Chunk, Embedding
from retrieval.text.fingerprints import simhash
from retrieval.text.quality import quality_of
from tests.fakes import HashEncoder


class Counting(HashEncoder):
    """Remembers what it embeds."""

    def __init__(self):
        super().__init__()
        self.texts = []

    def encode_documents(self, texts):
        self.texts += texts
        return super().encode_documents(texts)


@pytest.fixture
def encoder(monkeypatch):
    counting = Counting()
    monkeypatch.setattr(active, "encoder", lambda *_: counting)
    return counting


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "docs"
    folder.mkdir()
    sections = "".join(f"## Part {part}\n\n{f'Sentence of part {part} here. ' * 60}\n\n" for part in range(3))
    (folder / "manual.md").write_text(f"# Manual\n\n{sections}")
    (folder / "frame.txt").write_text("Home | About us | Products | Contact\n\n© 2026 Example. All rights reserved.\n")
    return folder


@pytest.fixture
def docs(db, root):
    compartment = Compartment.objects.create(slug="c", name="C")
    return Connection.objects.create(
        slug="docs", name="Docs", kind="folder", config={"path": str(root)}, compartment=compartment
    )


def vectors():
    return {(it.document_id, it.ordinal): it.vector.to_list() for it in Embedding.objects.all()}


def test_quality_and_fingerprint_are_stored(docs, encoder):
    sync_connection(docs)
    assert Chunk.objects.count() > 3
    for stored in Chunk.objects.all():
        judged = quality_of(stored.text)
        assert (stored.quality, stored.quality_parts) == (judged.value, judged.parts)
        assert stored.simhash == simhash(stored.text) != 0
    frame = Chunk.objects.get(document__external_id="frame.txt")
    assert frame.quality == 0
    assert set(frame.quality_parts) == {"navigation", "legal"}


def test_a_new_recipe_embeds_nothing_again(docs, encoder, monkeypatch):
    sync_connection(docs)
    before, embedded = vectors(), len(encoder.texts)
    Chunk.objects.update(quality=0.5, simhash=0)
    monkeypatch.setattr(prepared_document, "INGEST_VERSION", prepared_document.INGEST_VERSION + 1)
    sync = sync_connection(docs)
    assert (sync.changed, sync.unchanged) == (2, 0)
    assert len(encoder.texts) == embedded
    assert vectors() == before
    assert not Chunk.objects.filter(simhash=0).exists()


def test_of_a_changed_document_only_new_text_is_embedded(docs, encoder, root):
    sync_connection(docs)
    encoder.texts.clear()
    manual = root / "manual.md"
    manual.write_text(manual.read_text().replace("part 1 here", "part one here"))
    sync_connection(docs)
    assert encoder.texts
    assert all("part one here" in text for text in encoder.texts)


def test_under_a_new_title_the_text_is_embedded_again(docs, encoder, root):
    sync_connection(docs)
    count = len(encoder.texts)
    encoder.texts.clear()
    manual = root / "manual.md"
    manual.write_text(manual.read_text().replace("# Manual", "# Handbook"))
    sync_connection(docs)
    assert len(encoder.texts) == count - 1
    assert all(text.startswith("Handbook") for text in encoder.texts)


def test_a_sync_marks_what_its_documents_repeat_and_unmarks_it(docs, encoder, root):
    notice = "Whoever enters the cold rooms does so at their own risk and wears the coat that hangs beside the door."
    for number in range(6):
        page = f"Page {number} has matter {number} of its own. " * 200
        (root / f"page-{number}.md").write_text(f"# Page {number}\n\n{page}\n\n## Notice\n\n{notice * 30}\n")
    sync_connection(docs)
    repeated = Chunk.objects.filter(quality_parts__has_key="repeated")
    assert {chunk.heading_path[-1] for chunk in repeated} == {"Notice"}
    for number in range(2):
        (root / f"page-{number}.md").unlink()
    sync_connection(docs)
    assert not repeated.all().exists()
