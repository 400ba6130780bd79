import os

import pytest

from corecube.connectors import ItemError, ItemProblem, SourceItem
from corecube.connectors.folder import FolderConnector
from corecube.errors import ConfigError


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "source"
    folder.mkdir()
    return folder


def connector(root, max_bytes=1000):
    return FolderConnector(root, max_bytes)


def listed(root, **options):
    """Return external ids of the items, and reasons of the problems by external id."""
    found = list(connector(root, **options).items())
    items = [it.external_id for it in found if isinstance(it, SourceItem)]
    problems = {it.external_id: it.reason for it in found if isinstance(it, ItemProblem)}
    return items, problems


def test_files_of_all_levels_are_listed_in_order_without_hidden_ones(root):
    (root / "b").mkdir()
    for name in ("z.md", "b/a.md", "b/.hidden.md", "a.md"):
        (root / name).write_text("x")
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("x")
    assert listed(root) == (["a.md", "b/a.md", "z.md"], {})


def test_a_root_that_is_a_file_stands_for_itself(root):
    (root / "one.md").write_text("text")
    only = connector(root / "one.md")
    (item,) = only.items()
    assert (item.external_id, only.read(item)) == ("one.md", b"text")


def test_a_missing_root_is_named(root):
    with pytest.raises(ConfigError, match="nothing at"):
        connector(root / "missing").check()


def test_a_large_file_is_a_problem_and_not_read(root):
    with (root / "large.txt").open("wb") as file:
        file.truncate(200 * 2**20)
    (root / "small.txt").write_text("x")
    assert listed(root, max_bytes=50 * 2**20) == (["small.txt"], {"large.txt": "too_large"})


def test_a_file_that_grew_after_it_was_listed_is_refused(root):
    (root / "a.txt").write_text("x")
    source = connector(root, max_bytes=10)
    (item,) = source.items()
    (root / "a.txt").write_text("x" * 11)
    with pytest.raises(ItemError) as caught:
        source.read(item)
    assert caught.value.reason == "too_large"


def test_a_file_that_went_after_it_was_listed_is_refused(root):
    (root / "a.txt").write_text("x")
    source = connector(root)
    (item,) = source.items()
    (root / "a.txt").unlink()
    with pytest.raises(ItemError) as caught:
        source.read(item)
    assert caught.value.reason == "unreadable"


def test_links_are_followed_only_to_files_inside_the_root(root, tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    (root / "real.txt").write_text("x")
    (root / "inside.txt").symlink_to(root / "real.txt")
    (root / "outside.txt").symlink_to(tmp_path / "secret.txt")
    (root / "up").symlink_to(tmp_path)
    (root / "gone.txt").symlink_to(root / "nowhere.txt")
    assert listed(root) == (
        ["inside.txt", "real.txt"],
        {"outside.txt": "symlink", "up": "symlink", "gone.txt": "symlink"},
    )


def test_link_loops_end(root):
    (root / "loop").symlink_to(root)
    (root / "ping").symlink_to(root / "pong")
    (root / "pong").symlink_to(root / "ping")
    assert listed(root) == ([], {"loop": "symlink", "ping": "symlink", "pong": "symlink"})


def test_a_name_that_is_not_utf8_is_taken_under_an_escaped_name(root):
    raw = os.fsencode(root) + b"/caf\xe9.txt"
    with open(raw, "wb") as file:  # noqa: PTH123 -- pathlib would decode the name
        file.write(b"x")
    source = connector(root)
    (item,) = source.items()
    assert item.external_id == "caf\\xe9.txt"
    assert source.read(item) == b"x"


def test_a_pipe_is_a_problem_and_is_not_opened(root):
    os.mkfifo(root / "pipe")
    assert listed(root) == ([], {"pipe": "not_a_file"})


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_folder_without_permission_is_a_problem(root):
    (root / "closed").mkdir(mode=0o000)
    assert listed(root) == ([], {"closed": "unreadable"})
