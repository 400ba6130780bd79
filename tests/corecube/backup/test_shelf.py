"""Backups in a folder and in a bucket of moto's S3 server."""

import os
import stat
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from time import time

import pytest

from corecube.backup.manifest import FileEntry
from corecube.backup.shelf import Shelf
from corecube.errors import BackupError, ConfigError
from tests.corecube.backup.test_manifest import MANIFEST
from tests.s3_server import s3_admin, s3_server

TEXT = b"The codeword is tangerine."


@pytest.fixture(scope="module")
def endpoint():
    with s3_server() as address, s3_admin(address) as admin:
        admin.create_bucket(Bucket="backups")
        yield address


@pytest.fixture
def bucket(endpoint, settings, request):
    settings.CORECUBE_BACKUP_S3_ENDPOINT = endpoint
    settings.CORECUBE_BACKUP_S3_ACCESS_KEY = settings.CORECUBE_BACKUP_S3_SECRET_KEY = "key"
    return f"s3://backups/{request.node.name}"


@pytest.fixture(params=["folder", "bucket"])
def place(request, tmp_path):
    return str(tmp_path / "backups") if request.param == "folder" else request.getfixturevalue("bucket")


def opened(place, passphrase=""):
    return Shelf.at(place, passphrase, is_new=True)


def stored(shelf, minute, *texts):
    """Store a backup of uploads with these texts; return its name."""
    parts = shelf.parts()
    parts.look()
    files = tuple(FileEntry(f"7/{number}", parts.write([text])) for number, text in enumerate(texts))
    return shelf.add(replace(MANIFEST, made_at=MANIFEST.made_at + timedelta(minutes=minute), tables=(), files=files))


@pytest.mark.parametrize("passphrase", ["", "correct horse"])
def test_a_backup_is_found_and_read_again(place, passphrase):
    name = stored(opened(place, passphrase), 0, TEXT)
    shelf = Shelf.at(place, passphrase)
    assert shelf.names() == [name] == ["20261126T193000Z"]
    (file,) = shelf.manifest(name).files
    assert b"".join(shelf.parts().read(file.content)) == TEXT


def test_what_is_there_is_not_written_again(place):
    shelf = opened(place)
    stored(shelf, 0, TEXT)
    parts = shelf.parts()
    parts.look()
    parts.write([TEXT])
    assert parts.written_bytes == 0
    parts.write([TEXT, b"!"])
    assert parts.written_bytes > 0


def test_a_place_without_backups_is_reported(place):
    with pytest.raises(BackupError, match="no backup"):
        Shelf.at(place, "")


def test_the_passphrase_must_be_the_same(place):
    opened(place, "correct horse")
    with pytest.raises(BackupError, match="passphrase is wrong"):
        Shelf.at(place, "correct horses")
    with pytest.raises(BackupError, match="Set CORECUBE_BACKUP_PASSPHRASE"):
        Shelf.at(place, "")


def test_backups_without_encryption_get_no_encrypted_ones_beside_them(place):
    opened(place)
    with pytest.raises(BackupError, match="not encrypted"):
        opened(place, "correct horse")


def test_another_installation_has_another_place(place, settings):
    opened(place).require_ours()
    before, settings.SECRET_KEY = settings.SECRET_KEY, "another key"
    with pytest.raises(BackupError, match="another installation"):
        opened(place).require_ours()
    settings.SECRET_KEY_FALLBACKS = [before]
    opened(place).require_ours()


def test_a_lost_part_is_noticed(place):
    shelf = opened(place)
    (file,) = shelf.manifest(stored(shelf, 0, TEXT)).files
    parts = shelf.parts()
    parts.check(file.content.parts)
    parts.delete(file.content.parts[0])
    with pytest.raises(BackupError, match="missing"):
        parts.check(file.content.parts)


def test_a_manifest_cannot_name_a_file_as_a_part(place):
    with pytest.raises(BackupError, match="cannot exist"):
        opened(place).parts().part("../corecube-backup.json")


def test_a_service_that_refuses_is_reported_without_its_keys(bucket, settings):
    settings.CORECUBE_BACKUP_S3_SECRET_KEY = "hush"
    with pytest.raises(BackupError, match="NoSuchBucket") as refused:
        opened("s3://nowhere/else")
    assert "hush" not in str(refused.value)


def test_a_bucket_needs_keys(settings):
    with pytest.raises(ConfigError, match="CORECUBE_BACKUP_S3_ACCESS_KEY"):
        opened("s3://backups/none")


def files_of(place):
    return {it.relative_to(place).as_posix() for it in Path(place).rglob("*") if it.is_file()}


@pytest.fixture
def folder(tmp_path):
    return str(tmp_path / "backups")


def test_other_accounts_can_read_nothing(folder):
    stored(opened(folder), 0, TEXT)
    assert stat.S_IMODE(Path(folder).stat().st_mode) == 0o700
    for path in Path(folder).rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_a_folder_is_not_made_where_no_disk_may_be_mounted(tmp_path):
    with pytest.raises(BackupError, match="No such file"):
        opened(str(tmp_path / "disk" / "backups"))


def test_a_changed_part_or_manifest_is_noticed(folder):
    shelf = opened(folder)
    name = stored(shelf, 0, TEXT)
    (part,) = shelf.manifest(name).parts
    for path, read in (
        (f"parts/{part[:2]}/{part}", lambda: shelf.parts().part(part)),
        (f"backups/{name}", lambda: shelf.manifest(name)),
    ):
        file = Path(folder, path)
        content = file.read_bytes()
        for place in range(0, len(content), 7):
            file.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
            with pytest.raises(BackupError, match="damaged"):
                read()
        file.write_bytes(content)
        read()


def test_a_damaged_part_is_written_anew_by_the_next_backup(folder):
    shelf = opened(folder)
    (part,) = shelf.manifest(stored(shelf, 0, TEXT)).parts
    Path(folder, "parts", part[:2], part).write_bytes(b"damaged")
    with pytest.raises(BackupError, match="damaged"):
        shelf.parts().check([part])
    stored(shelf, 1, TEXT)
    shelf.parts().check([part])


def old(folder):
    """Make everything look as if it were written three days ago."""
    for path in Path(folder).rglob("*"):
        os.utime(path, (time() - 3 * 86_400,) * 2)


def test_old_backups_go_with_what_only_they_need(folder):
    shelf = opened(folder)
    names = [stored(shelf, minute, b"shared", f"own {minute}".encode()) for minute in range(4)]
    old(folder)
    assert shelf.retain(2) == names[:2]
    assert shelf.names() == names[2:]
    found = shelf.parts().look().keys()
    assert found == frozenset().union(*(shelf.manifest(name).parts for name in names[2:]))
    assert len(found) == 3


def test_the_last_backup_always_remains(folder):
    shelf = opened(folder)
    names = [stored(shelf, minute, TEXT) for minute in range(2)]
    old(folder)
    shelf.retain(0)
    assert shelf.names() == names[1:]
    shelf.parts().check(shelf.manifest(names[1]).parts)


def test_new_parts_of_an_interrupted_backup_remain_for_the_next_one(folder):
    shelf = opened(folder)
    stored(shelf, 0, TEXT)
    parts = shelf.parts()
    content = parts.write([b"of an interrupted backup"])
    shelf.retain(1)
    assert content.parts[0] in parts.look()
    old(folder)
    shelf.retain(1)
    assert content.parts[0] not in parts.look()


def test_nothing_else_in_the_folder_is_deleted(folder):
    shelf = opened(folder)
    names = [stored(shelf, minute, f"own {minute}".encode()) for minute in range(2)]
    others = {"notes.txt", "parts/notes.txt", "backups/notes.txt", "parts/ab/ab", "backups/20261126T193000Z.tar"}
    for name in others:
        Path(folder, name).parent.mkdir(parents=True, exist_ok=True)
        Path(folder, name).write_text("mine")
    old(folder)
    assert shelf.retain(1) == names[:1]
    assert others <= files_of(folder)


def test_while_a_manifest_cannot_be_read_no_part_is_deleted(folder):
    shelf = opened(folder)
    names = [stored(shelf, minute, f"own {minute}".encode()) for minute in range(3)]
    Path(folder, "backups", names[2]).write_bytes(b"damaged")
    old(folder)
    before = files_of(folder)
    with pytest.raises(BackupError, match="damaged"):
        shelf.retain(2)
    assert files_of(folder) == before
