import os
import subprocess

import pytest

from corecube.connectors import checked_config, connector_for
from corecube.connectors.folder import FolderConnector
from corecube.connectors.globs import Globs
from corecube.connectors.types import ItemError, ItemProblem, SourceItem
from corecube.errors import ConfigError
from corecube.models import Connection


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
    with pytest.raises(ConfigError, match="does not exist"):
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
    assert caught.value.reason == "gone"


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


@pytest.fixture
def deepen(root):
    """Return a function that makes folders inside each other, with a file in the last one."""

    def make(levels):
        handle = os.open(root, os.O_RDONLY)
        for _ in range(levels):
            os.mkdir("d", dir_fd=handle)
            below = os.open("d", os.O_RDONLY, dir_fd=handle)
            os.close(handle)
            handle = below
        os.close(os.open("leaf.md", os.O_CREAT | os.O_WRONLY, dir_fd=handle))
        os.close(handle)

    yield make
    # Python's own removal of a tree is recursive, so pytest could not clear this one away.
    subprocess.run(["rm", "-rf", root / "d"], check=True)


def test_a_tree_deeper_than_pythons_calls_is_listed(root, deepen):
    deepen(1200)
    (root / "z.md").touch()
    assert listed(root) == (["d/" * 1200 + "leaf.md", "z.md"], {})


def test_a_tree_deeper_than_the_system_takes_is_one_problem_that_hides_what_is_below(root, deepen):
    deepen(2500)
    (problem,) = connector(root).items()
    assert (problem.reason, problem.covers_subtree) == ("unreadable", True)


def test_a_problem_of_one_file_hides_nothing_below(root):
    (root / "large.txt").write_text("x" * 11)
    (problem,) = connector(root, max_bytes=10).items()
    assert problem.covers_subtree is False


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_folder_that_cannot_be_listed_hides_what_is_below(root):
    (root / "closed").mkdir(mode=0o000)
    (problem,) = connector(root).items()
    assert problem.covers_subtree is True


def test_a_root_that_went_after_the_check_is_an_error_and_not_an_empty_source(root):
    source = connector(root)
    source.check()
    root.rmdir()
    with pytest.raises(ConfigError, match="does not exist"):
        list(source.items())


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/srv/" + "x" * 256, "cannot be read by this process: File name too long"),
        ("~nosuchuser/documents", "no home folder for this path"),
        ("/srv/\0", "an invalid character"),
        ("/srv/\ud800", "an invalid character"),
    ],
)
def test_a_path_that_cannot_be_is_refused_with_a_sentence(path, reason):
    with pytest.raises(ConfigError, match=reason):
        checked_config("folder", {"path": path})


def test_a_pipe_is_no_root(root):
    os.mkfifo(root / "pipe")
    with pytest.raises(ConfigError, match="neither a file nor a folder"):
        checked_config("folder", {"path": str(root / "pipe")})


@pytest.mark.skipif(os.geteuid() == 0, reason="root enters everything")
def test_a_root_below_a_folder_that_may_not_be_entered_is_refused(root):
    (root / "closed").mkdir(mode=0o000)
    with pytest.raises(ConfigError, match="cannot be read"):
        checked_config("folder", {"path": str(root / "closed" / "below")})


@pytest.mark.parametrize("config", [["a"], "x", None])
def test_a_config_that_is_no_object_is_refused(config):
    with pytest.raises(ConfigError, match="JSON object"):
        connector_for(Connection(kind="folder", config=config))


def test_a_file_swapped_for_a_link_that_leads_out_is_not_read(root, tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    (root / "a.txt").write_text("x")
    source = connector(root)
    (item,) = source.items()
    (root / "a.txt").unlink()
    (root / "a.txt").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(ItemError) as caught:
        source.read(item)
    assert caught.value.reason == "symlink"


def test_a_file_whose_folder_was_swapped_for_a_link_that_leads_out_is_not_read(root, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.txt").write_text("secret")
    (root / "b").mkdir()
    (root / "b" / "a.txt").write_text("x")
    source = connector(root)
    (item,) = source.items()
    (root / "b").rename(root / "c")
    (root / "b").symlink_to(tmp_path / "outside")
    with pytest.raises(ItemError) as caught:
        source.read(item)
    assert caught.value.reason == "symlink"


def test_a_link_to_a_file_inside_is_read(root):
    (root / "b").mkdir()
    (root / "b" / "real.txt").write_text("text")
    (root / "a.txt").symlink_to(root / "b" / "real.txt")
    source = connector(root)
    link, real = source.items()
    assert source.read(link) == source.read(real) == b"text"


def test_a_file_swapped_for_a_pipe_is_refused_and_not_waited_for(root):
    (root / "a.txt").write_text("x")
    source = connector(root)
    (item,) = source.items()
    (root / "a.txt").unlink()
    os.mkfifo(root / "a.txt")
    with pytest.raises(ItemError) as caught:
        source.read(item)
    assert caught.value.reason == "not_a_file"


def test_a_file_swapped_for_a_link_loop_or_a_folder_is_refused(root):
    for name in ("a.txt", "b.txt"):
        (root / name).write_text("x")
    source = connector(root)
    items = list(source.items())
    (root / "a.txt").unlink()
    (root / "a.txt").symlink_to(root / "a.txt")
    (root / "b.txt").unlink()
    (root / "b.txt").mkdir()
    for item in items:
        with pytest.raises(ItemError):
            source.read(item)


def test_patterns_choose_the_files_and_never_hide_what_could_not_be_listed(root, deepen):
    (root / "b").mkdir()
    for name in ("a.md", "a.txt", "b/c.md", "b/d.txt"):
        (root / name).write_text("x")
    (root / "link.txt").symlink_to(root / "nowhere")
    source = FolderConnector(root, 1000, Globs(include=("*.md",), exclude=("/b/",)))
    assert [it.external_id for it in source.items()] == ["a.md"]
    deepen(2500)
    assert [it.covers_subtree for it in source.items() if isinstance(it, ItemProblem)] == [True]


def test_a_connection_can_have_a_smaller_limit_of_its_own(root):
    (root / "a.md").write_text("x" * 11)
    (problem,) = connector_for(Connection(kind="folder", config={"path": str(root), "max_bytes": 10})).items()
    assert problem.reason == "too_large"


def test_the_preflight_says_whether_the_root_can_be_read(root):
    assert [(it.name, it.ok) for it in connector(root).preflight()] == [("read", True)]
    assert [(it.name, it.ok) for it in connector(root / "missing").preflight()] == [("read", False)]
