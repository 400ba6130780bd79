from pathlib import Path

import pytest

from corecube.backup.manifest import FileEntry
from corecube.backup.parts import Content, Parts
from corecube.backup.sealing import Seal
from corecube.backup.uploads import linked_uploads, uploaded, write_uploads
from corecube.connectors.places import FolderPlace
from corecube.errors import BackupError


@pytest.fixture
def parts(tmp_path):
    return Parts(FolderPlace(tmp_path / "backups"), Seal())


@pytest.fixture
def root(settings):
    return settings.CORECUBE_UPLOADS_DIR


def upload(root, path, text):
    """Store a file as an upload does: under another name, then renamed."""
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(".draft")
    draft.write_text(text)
    draft.replace(target)


def stored(uploads, parts):
    files = uploads.store(parts, report=lambda _: None)
    return {it.path: b"".join(parts.read(it.content)).decode() for it in files}


def test_files_that_are_deleted_and_replaced_meanwhile_are_stored(root, parts):
    upload(root, "7/deleted.md", "deleted")
    upload(root, "7/deep/replaced.md", "before")
    with linked_uploads() as uploads:
        uploads.link()
        (root / "7" / "deleted.md").unlink()
        upload(root, "7/deep/replaced.md", "after")
        upload(root, "7/added.md", "added")
        uploads.link()
        found = stored(uploads, parts)
    assert found == {"7/deleted.md": "deleted", "7/deep/replaced.md": "after", "7/added.md": "added"}
    assert [it.name for it in root.iterdir()] == ["7"]


def test_the_content_is_that_of_the_moment_when_it_was_linked(root, parts):
    upload(root, "7/notes.md", "before")
    with linked_uploads() as uploads:
        uploads.link()
        upload(root, "7/notes.md", "after")
        assert stored(uploads, parts) == {"7/notes.md": "before"}


def test_connections_that_the_database_did_not_have_are_left_out(root, parts):
    upload(root, "7/notes.md", "seven")
    upload(root, "8/notes.md", "eight")
    with linked_uploads() as uploads:
        uploads.link()
        uploads.leave_out([7])
        assert stored(uploads, parts) == {"7/notes.md": "seven"}


def test_half_uploaded_files_and_what_a_killed_backup_left_are_left_out(root, parts):
    upload(root, "7/notes.md", "notes")
    (root / "7" / ".tmp1234").write_text("half")
    upload(root, ".backup-1234/7/notes.md", "left")
    with linked_uploads() as uploads:
        assert not (root / ".backup-1234").exists()
        uploads.link()
        assert stored(uploads, parts) == {"7/notes.md": "notes"}


def test_uploads_are_replaced(root, parts, tmp_path):
    upload(root, "9/old.md", "old")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine.txt").write_text("mine")
    (root / "link").symlink_to(outside)
    files = [FileEntry("7/deep/a.md", parts.write([b"a"])), FileEntry("7/empty", parts.write([]))]
    write_uploads(files, parts)
    assert set(uploaded(root)) == {"7/deep/a.md", "7/empty"}
    assert (root / "7" / "deep" / "a.md").read_text() == "a"
    assert not (root / "link").exists()
    assert (outside / "mine.txt").exists()


def test_a_path_that_leads_elsewhere_changes_nothing(root, parts):
    upload(root, "9/old.md", "old")
    with pytest.raises(BackupError, match="outside"):
        write_uploads([FileEntry("7/a.md", Content(0, ())), FileEntry("../a.md", Content(0, ()))], parts)
    assert set(uploaded(root)) == {"9/old.md"}
    assert not Path(root, "..", "a.md").exists()
