"""Opening and reading indexes: new commits, new builds, and files that are broken."""

import pytest

from retrieval.errors import Bm25UnavailableError
from retrieval.index.bm25.reader import Reader
from retrieval.index.folder import Folder
from tests.retrieval.index.bm25.conftest import ABOUT, chunk


def test_a_commit_is_seen_at_once(shelf):
    shelf.build(chunk(1, "lamp"))
    view = shelf.reader.view()
    shelf.write(chunk(2, "lamp"), position=9)
    assert (shelf.reader.view().position, set(shelf.scores("lamp"))) == (9, {1, 2})
    # Who has begun goes on with what was there.
    assert (view.position, view.chunks) == (1, 1)


def test_a_document_is_replaced_whole_and_taken_out_whole(shelf):
    shelf.build(chunk(1, "lamp"), chunk(2, "lamp"))
    shelf.write(chunk(1, "wind"))
    shelf.write(chunk(1, "wind"))
    assert (set(shelf.scores("lamp")), set(shelf.scores("wind"))) == ({2}, {1})
    shelf.write(gone=[1])
    assert (shelf.reader.view().chunks, shelf.scores("wind")) == (1, {})


def test_a_new_build_takes_over(shelf):
    shelf.build(chunk(1, "lamp"))
    assert set(shelf.scores("lamp")) == {1}
    shelf.build(chunk(2, "lamp"))
    assert set(shelf.scores("lamp")) == {2}
    assert [it.name for it in shelf.folder.path.iterdir() if it.name.isdigit()] == ["2"]


def test_a_search_that_has_begun_outlives_its_build(shelf):
    shelf.build(chunk(1, "lamp"))
    view = shelf.reader.view()
    shelf.build(chunk(2, "lamp"))
    assert view.chunks == 1
    assert set(shelf.scores("lamp")) == {2}


def test_without_an_index_none_is_to_be_had(shelf):
    with pytest.raises(Bm25UnavailableError):
        shelf.reader.view()
    shelf.build(chunk(1, "lamp"))
    assert shelf.reader.view().chunks == 1
    (shelf.folder.path / "CURRENT").unlink()
    with pytest.raises(Bm25UnavailableError):
        shelf.reader.view()


@pytest.mark.parametrize("ending", [".idx", ".fast", "meta.json", ".term"])
@pytest.mark.parametrize("harm", ["gone", "cut", "nonsense"])
def test_broken_files_are_told(shelf, ending, harm):
    shelf.build(chunk(1, "lamp"))
    for file in list(shelf.folder.current.iterdir()):
        if file.name.endswith(ending) and file.name != ".managed.json":
            content = file.read_bytes()
            file.unlink()
            if harm != "gone":
                file.write_bytes(content[: len(content) // 2] if harm == "cut" else b"\xff" * len(content))
    with pytest.raises(Bm25UnavailableError):
        Reader(shelf.folder).view()


def test_an_index_of_another_schema_is_none(shelf):
    shelf.build(chunk(1, "lamp"))
    (shelf.folder.current / "about.json").write_text('{"schema": 0, "language": "english", "database": "here"}')
    with pytest.raises(Bm25UnavailableError):
        Reader(shelf.folder).view()


def test_one_writes_at_a_time(tmp_path):
    folder = Folder(tmp_path)
    with folder.locked() as held, folder.locked() as held_too:
        assert (held, held_too) == (True, False)
    with folder.locked() as held:
        assert held


def test_a_build_that_was_cut_off_is_removed_and_never_searched(shelf):
    shelf.build(chunk(1, "lamp"))
    with shelf.folder.locked():
        cut_off = shelf.folder.begin(ABOUT)
        assert set(shelf.scores("lamp")) == {1}
    shelf.build(chunk(2, "lamp"))
    assert not cut_off.exists() or shelf.folder.current == cut_off
    assert set(shelf.scores("lamp")) == {2}


def test_a_folder_keeps_its_name(tmp_path):
    assert Folder(tmp_path / "a").id == Folder(tmp_path / "a").id
    assert Folder(tmp_path / "a").id != Folder(tmp_path / "b").id
