import pytest
from django.core.management import CommandError, call_command

from corecube.connectors.folder import FolderConnector
from corecube.connectors.types import ItemProblem
from retrieval.ingest.preparation import Preparation, prepare_raw
from retrieval.ingest.preview import PreviewedFile, preview, summaries
from retrieval.models import Document
from retrieval.text.document import CHUNK_PROFILES, ChunkLimits


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "docs"
    root.mkdir()
    (root / "a.md").write_text("# A\n\nDrain the queue first.\n")
    (root / "b.md").write_text("# B\n\n" + "Roll the release back now. " * 300)
    (root / "c.txt").write_text("Plain words.")
    (root / "empty.md").write_text("")
    (root / "noise.bin").write_bytes(bytes(range(256)) * 8)
    return root


def previewed(folder, limits):
    return list(preview(FolderConnector(folder, 10**6), how=Preparation(limits=limits), prepare=prepare_raw))


def test_every_file_is_a_preview_or_a_refusal_with_its_reason(folder):
    found = previewed(folder, ChunkLimits())
    assert [it.external_id for it in found if isinstance(it, PreviewedFile)] == ["a.md", "b.md", "c.txt"]
    refused = {it.external_id: it.reason for it in found if isinstance(it, ItemProblem)}
    assert refused == {"empty.md": "empty", "noise.bin": "unsupported_type"}


def test_a_summary_counts_the_files_of_its_type():
    files = [
        PreviewedFile("a", "pdf", (10, 20), 0.5),
        PreviewedFile("b", "pdf", (60,), 0.25),
        PreviewedFile("c", "html", (7,), 1.0),
    ]
    html, pdf = summaries(files)
    assert (html.source_type, html.files, html.chunks, html.median_tokens) == ("html", 1, 1, 7)
    assert (pdf.files, pdf.chunks, pdf.median_tokens, pdf.max_tokens, pdf.seconds) == (2, 3, 20, 60, 0.75)


def test_the_larger_profile_makes_fewer_and_larger_chunks(folder):
    chunks = {name: previewed(folder, limits)[1].tokens for name, limits in CHUNK_PROFILES.items()}
    assert len(chunks["chunk_first"]) < len(chunks["default"])
    assert max(chunks["default"]) <= 512 < max(chunks["chunk_first"]) <= 768


def test_the_command_prints_a_table_and_stores_nothing(db, folder, capsys):
    call_command("preview", str(folder))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "| type | files | chunks | median tokens | max tokens | seconds |"
    assert [line.split(" | ")[1] for line in lines if line.startswith("| markdown")] == ["2"]
    assert any(line.startswith("rejected: empty.md: empty: The file is empty. Add text") for line in lines)
    assert not Document.objects.exists()
    with pytest.raises(CommandError):
        call_command("preview", str(folder / "no-such"))
