from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corecube.backup.manifest import FileEntry, Manifest, SequenceEntry, TableEntry, from_json, to_json
from corecube.backup.parts import Content, cut
from corecube.errors import BackupError

A, B, C = "a" * 64, "b" * 64, "c" * 64
MANIFEST = Manifest(
    format=1,
    version="0.3.0",
    postgresql="18.1",
    made_at=datetime(2026, 11, 26, 19, 30, tzinfo=UTC),
    key_id="0" * 32,
    secret_key="hush",
    migrations={"corecube": ("0001_initial",)},
    models=("bge",),
    tables=(TableEntry("corecube_user", ("id", "username"), 3, Content(90, (A, B))),),
    sequences=(SequenceEntry("corecube_user", "id", 9, is_called=True),),
    files=(FileEntry("7/notes.md", Content(5, (C,))),),
)


def test_a_manifest_is_the_same_when_it_is_read_again():
    assert from_json(to_json(MANIFEST)) == MANIFEST


def test_it_adds_up_what_it_names():
    assert (MANIFEST.parts, MANIFEST.rows, MANIFEST.size) == ({A, B, C}, 3, 95)


@pytest.mark.parametrize("text", [b"", b"{}", to_json(MANIFEST)[:-9], to_json(MANIFEST).replace(b"90", b'"many"')])
def test_another_text_is_refused(text):
    with pytest.raises(BackupError, match="damaged"):
        from_json(text)


@pytest.mark.parametrize("path", ["../a", "7/../../a", "/etc/passwd", "7//a", "7/./a", "", "7/", "7/a\0b", "7/a\nb"])
def test_a_file_outside_the_uploads_is_refused(path):
    with pytest.raises(BackupError, match="outside"):
        FileEntry(path, Content(0, ())).folder()


def test_a_file_below_the_uploads_is_not():
    assert str(FileEntry("7/2026/Überblick ..md", Content(0, ())).folder()) == "7/2026/Überblick ..md"


@given(st.lists(st.binary(max_size=30)), st.integers(1, 20))
def test_parts_have_one_size_and_make_the_whole(blocks, size):
    parts = list(cut(blocks, size))
    assert b"".join(parts) == b"".join(blocks)
    assert all(len(part) == size for part in parts[:-1])
    assert not parts or 0 < len(parts[-1]) <= size
