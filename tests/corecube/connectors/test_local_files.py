"""What connections may read of this machine's files."""

import os
import pwd
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.core.exceptions import ImproperlyConfigured

from corecube import env
from corecube.connectors import connector_for
from corecube.connectors.local_files import command_files
from corecube.connectors.types import ItemError, SourceItem
from corecube.env import folder_roots, folders
from corecube.errors import ConfigError
from corecube.models import Connection


@pytest.fixture
def home(tmp_path, settings):
    """A home folder with the installation in it, the only folder that connections may read."""
    own = tmp_path / "home" / "corecube" / "var"
    own.mkdir(parents=True)
    (own / "secret_key").write_text("zanzibar")
    (own / "uploads").mkdir()
    (own / "uploads" / "plan.md").write_text("zanzibar")
    settings.CORECUBE_VAR_DIR = own
    settings.CORECUBE_FOLDER_ROOTS = [tmp_path / "home"]
    return tmp_path / "home"


@pytest.fixture
def own(home):
    return home / "corecube" / "var"


@pytest.fixture
def outside(tmp_path):
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.md").write_text("zanzibar")
    return folder


def folder(path, **fields):
    return Connection(kind="folder", slug="x", config={"path": str(path)}, **fields)


def refusal(path):
    with pytest.raises(ConfigError) as caught:
        connector_for(folder(path)).check()
    return str(caught.value)


def texts(path, **fields):
    """Return what can be read of a connection's files, by name, and the reasons of its problems."""
    source = connector_for(folder(path, **fields))
    found = {}
    for item in source.items():
        try:
            found[item.external_id] = source.read(item).decode() if isinstance(item, SourceItem) else item.reason
        except ItemError as error:
            found[item.external_id] = error.reason
    return found


def test_a_folder_below_a_root_is_read(home):
    (home / "notes").mkdir()
    (home / "notes" / "a.md").write_text("text")
    assert texts(home / "notes") == {"a.md": "text"}


def test_the_samples_are_read_whatever_the_roots_are(home, settings):
    assert connector_for(folder(settings.CORECUBE_SAMPLES_DIR / "handbook")).check() is None


def test_what_lies_outside_is_refused_in_the_same_words_whether_or_not_it_is_there(home, outside, settings):
    said = {refusal(path) for path in (outside, outside / "secret.md", outside / "missing", outside / "a" / "b")}
    assert len(said) == 1
    (words,) = said
    assert f"below {home}, or" in words
    assert str(settings.CORECUBE_SAMPLES_DIR) not in words


def test_no_detour_in_a_path_leads_out(home, outside):
    (home / "notes").mkdir()
    for path in (home / "notes" / ".." / ".." / "outside", f"{home}/../outside/secret.md", f"{home}x"):
        assert "CORECUBE_FOLDER_ROOTS" in refusal(path)


def test_a_link_in_a_root_is_as_good_as_where_it_leads(home, outside):
    (home / "notes").mkdir()
    (home / "out").symlink_to(outside)
    (home / "in").symlink_to(home / "notes")
    assert "CORECUBE_FOLDER_ROOTS" in refusal(home / "out")
    assert "CORECUBE_FOLDER_ROOTS" in refusal(home / "out" / "missing")
    assert texts(home / "in") == {}


@pytest.mark.parametrize("place", ["", "secret_key", "uploads", "uploads/plan.md", "nothing"])
def test_corecubes_own_data_is_refused_below_a_root(home, own, place):
    (home / "link").symlink_to(own / place)
    assert "CORECUBE_FOLDER_ROOTS" in refusal(own / place)
    assert "CORECUBE_FOLDER_ROOTS" in refusal(home / "link")


def test_a_root_that_is_corecubes_own_data_opens_none_of_it(own, settings):
    settings.CORECUBE_FOLDER_ROOTS = [own, own / "uploads"]
    assert "CORECUBE_FOLDER_ROOTS" in refusal(own / "uploads")


@pytest.mark.parametrize(
    "path", ["/etc", "/etc/passwd", "/proc/self/environ", "/sys", "/dev/shm", "/proc/self/root/etc"]
)
def test_the_systems_own_folders_are_refused_whatever_the_roots_are(settings, path):
    settings.CORECUBE_FOLDER_ROOTS = [Path("/")]
    assert "CORECUBE_FOLDER_ROOTS" in refusal(path)


def test_a_folder_that_holds_corecubes_data_is_read_without_it(home):
    (home / "notes.md").write_text("text")
    (home / "corecube" / "README.md").write_text("read me")
    assert texts(home) == {"corecube/README.md": "read me", "notes.md": "text"}


def test_hidden_folders_below_a_root_are_refused_and_left_out(home):
    (home / ".ssh").mkdir()
    (home / ".ssh" / "id").write_text("zanzibar")
    (home / "key.md").symlink_to(home / ".ssh" / "id")
    (home / "notes.md").write_text("text")
    for path in (home / ".ssh", home / ".ssh" / "id", home / "key.md"):
        assert "CORECUBE_FOLDER_ROOTS" in refusal(path)
    assert texts(home) == {"key.md": "symlink", "notes.md": "text"}


def test_a_hidden_folder_that_is_a_root_itself_is_read(home, settings):
    (home / ".notes").mkdir()
    (home / ".notes" / "a.md").write_text("text")
    settings.CORECUBE_FOLDER_ROOTS = [home / ".notes"]
    assert texts(home / ".notes") == {"a.md": "text"}


def test_a_hard_link_to_the_secret_key_is_not_read(home, own):
    (home / "notes").mkdir()
    os.link(own / "secret_key", home / "notes" / "a.md")
    assert texts(home / "notes") == {"a.md": "not_allowed"}
    assert "CORECUBE_FOLDER_ROOTS" in refusal(home / "notes" / "a.md")


def test_a_file_that_holds_a_secret_of_the_settings_is_not_read(home, monkeypatch):
    (home / "notes").mkdir()
    (home / "notes" / "key.txt").write_text("zanzibar")
    monkeypatch.setenv("CORECUBE_LLM_API_KEY_FILE", str(home / "notes" / "key.txt"))
    monkeypatch.setattr(env, "_files", set())
    assert env.secret("CORECUBE_LLM_API_KEY") == "zanzibar"
    assert texts(home / "notes") == {"key.txt": "not_allowed"}


def test_a_folder_replaced_by_a_link_since_it_was_saved_is_refused_and_not_empty(home, outside):
    (home / "notes").mkdir()
    connection = folder(home / "notes")
    source = connector_for(connection)
    (home / "notes").rmdir()
    (home / "notes").symlink_to(outside)
    for read in (source.check, lambda: list(source.items()), lambda: list(connector_for(connection).items())):
        with pytest.raises(ConfigError, match="CORECUBE_FOLDER_ROOTS"):
            read()


def test_a_file_that_was_listed_is_not_read_when_it_may_no_longer_be(home, own):
    (home / "notes").mkdir()
    (home / "notes" / "a.md").write_text("text")
    source = connector_for(folder(home / "notes"))
    (item,) = source.items()
    (home / "notes" / "a.md").unlink()
    os.link(own / "secret_key", home / "notes" / "a.md")
    with pytest.raises(ItemError) as caught:
        source.read(item)
    assert caught.value.reason == "not_allowed"


def test_a_folder_replaced_by_a_link_while_it_is_listed_tells_no_names(home, outside, monkeypatch):
    (home / "notes" / "deep").mkdir(parents=True)
    source = connector_for(folder(home / "notes"))
    waiting = source._contents(home / "notes", os.O_DIRECTORY)
    (home / "notes").rename(home / "was")
    (home / "notes").symlink_to(outside)
    (outside / "deep").mkdir()
    assert [it.path.name for it in waiting] == ["deep"]
    assert source._folder(home / "notes" / "deep") == []


def test_a_command_opens_what_lies_outside_but_not_corecubes_data_below_it(home, outside):
    (home / "corecube" / "README.md").write_text("read me")
    assert texts(outside, command_path=str(outside)) == {"secret.md": "zanzibar"}
    assert texts(home / "corecube", command_path=str(home / "corecube")) == {"README.md": "read me"}


def test_the_path_of_a_command_opens_no_other(home, outside):
    with pytest.raises(ConfigError, match="CORECUBE_FOLDER_ROOTS"):
        connector_for(folder(outside / "secret.md", command_path=str(outside)))
    with pytest.raises(ConfigError, match="CORECUBE_FOLDER_ROOTS"):
        connector_for(Connection(kind="git", slug="x", config={"url": outside.as_uri()}, command_path=str(outside)))


def test_what_a_command_chose_may_be_corecubes_data_or_the_systems(own):
    assert command_files(str(own)).allows(own / "secret_key")
    assert command_files("/etc").allows(Path("/etc/hostname"))
    assert not command_files("/").allows(Path("/etc/hostname"))


def test_an_upload_connection_reads_its_own_folder_below_the_data(settings, own):
    settings.CORECUBE_UPLOADS_DIR = own / "uploads"
    (own / "uploads" / "7").mkdir()
    (own / "uploads" / "7" / "a.md").write_text("text")
    source = connector_for(Connection(pk=7, kind="upload", slug="x", config={"path": "/etc"}))
    assert [source.read(it) for it in source.items()] == [b"text"]


def test_without_settings_home_and_the_usual_places_of_data_are_read(monkeypatch):
    monkeypatch.setattr(pwd, "getpwuid", lambda _: SimpleNamespace(pw_dir="/home/corecube"))
    assert list(map(str, folder_roots())) == ["/home/corecube", "/srv", "/mnt", "/media", "/data"]


@pytest.mark.parametrize("home", ["/", "//", "/tmp/..", ""])
def test_a_home_at_the_root_opens_nothing(monkeypatch, home):
    monkeypatch.setattr(pwd, "getpwuid", lambda _: SimpleNamespace(pw_dir=home))
    assert list(map(str, folder_roots())) == ["/srv", "/mnt", "/media", "/data"]


def test_folders_of_the_setting_are_absolute(monkeypatch):
    monkeypatch.setenv("CORECUBE_FOLDER_ROOTS", "/srv/a, /srv/b ,")
    assert folders("CORECUBE_FOLDER_ROOTS", ()) == [Path("/srv/a"), Path("/srv/b")]
    for wrong in ("documents", "~nosuchuser/documents"):
        monkeypatch.setenv("CORECUBE_FOLDER_ROOTS", wrong)
        with pytest.raises(ImproperlyConfigured, match="CORECUBE_FOLDER_ROOTS"):
            folders("CORECUBE_FOLDER_ROOTS", ())


_MOUNTED = """
import os, sys, django
from pathlib import Path
from django.conf import settings
django.setup()
from corecube.connectors.local_files import local_files
home = Path(sys.argv[1])
settings.CORECUBE_VAR_DIR, settings.CORECUBE_FOLDER_ROOTS = home / "corecube" / "var", [home]
files = local_files()
for name in sys.argv[2:]:
    print(files.allows(home / name))
"""
_CAN_MOUNT = (
    os.geteuid() == 0
    and not subprocess.run(
        ["unshare", "--mount", "mount", "--bind", "/usr", "/usr"], check=False, capture_output=True
    ).returncode
)


@pytest.mark.skipif(not _CAN_MOUNT, reason="needs the right to mount")
def test_a_bind_mount_of_what_is_refused_is_refused(home, own):
    for name in ("whole", "part", "above", "system", "kernel", "notes"):
        (home / name).mkdir()
    (home / "file.md").touch()
    (home / "notes" / "a.md").touch()
    mounts = (
        f"mount --bind {own} {home}/whole; mount --bind {own}/uploads {home}/part; mount --bind {own}/secret_key"
        f" {home}/file.md; mount --bind {home}/corecube {home}/above; mount --bind /etc {home}/system;"
        f" mount -t proc proc {home}/kernel; mount --bind {home}/notes {home}/notes;"
    )
    names = ("whole/secret_key", "part/plan.md", "file.md", "above/var/secret_key", "system/hostname", "kernel/version")
    allowed = ("notes/a.md", "above/README.md")
    command = f'{mounts} exec {sys.executable} -c "$0" {home} {" ".join((*names, *allowed))}'
    done = subprocess.run(
        ["unshare", "--mount", "bash", "-ec", command, _MOUNTED], check=True, capture_output=True, text=True
    )
    assert done.stdout.split() == ["False"] * len(names) + ["True"] * len(allowed)
