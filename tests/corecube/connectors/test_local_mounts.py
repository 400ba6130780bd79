"""What a table of mounts says, and what this machine's own does."""

from pathlib import Path

from corecube.connectors.local_files import Mount, _mount, points_showing, read_mounts

DISK = Mount("8:1", Path("/"), Path("/"), "ext4")
VAR = Path("/app/var")


def showing(*mounts):
    return sorted(map(str, points_showing([VAR], [DISK, *mounts])))


def test_the_whole_of_a_folder_is_found_where_else_it_is_mounted():
    assert showing(Mount("8:1", VAR, Path("/srv/whole"), "ext4")) == ["/srv/whole"]


def test_a_part_of_a_folder_is_found_where_else_it_is_mounted():
    assert showing(Mount("8:1", VAR / "secret_key", Path("/srv/key.txt"), "ext4")) == ["/srv/key.txt"]


def test_the_same_path_of_another_device_is_another_folder():
    assert showing(Mount("8:2", VAR, Path("/srv/other"), "ext4")) == []


def test_a_disk_below_the_folder_is_found_where_else_it_is_mounted():
    below = Mount("8:3", Path("/store"), VAR / "uploads", "ext4")
    assert showing(below, Mount("8:3", Path("/store/1"), Path("/srv/one"), "ext4")) == ["/app/var/uploads", "/srv/one"]


def test_a_folder_on_a_disk_of_its_own_is_found_there():
    own = Mount("8:4", Path("/corecube"), Path("/app"), "ext4")
    assert showing(own, Mount("8:4", Path("/corecube/var/log"), Path("/srv/log"), "ext4")) == ["/srv/log"]


def test_of_two_mounts_at_one_point_the_later_counts():
    mounts = (Mount("8:5", Path("/a"), Path("/app"), "ext4"), Mount("8:6", Path("/b"), Path("/app"), "ext4"))
    shown = (Mount("8:5", Path("/a/var"), Path("/srv/a"), "ext4"), Mount("8:6", Path("/b/var"), Path("/srv/b"), "ext4"))
    assert showing(*mounts, *shown) == ["/srv/b"]


def test_what_the_kernel_shows_is_found_anywhere():
    assert showing(Mount("0:9", Path("/"), Path("/srv/jail/proc"), "proc")) == ["/srv/jail/proc"]


def test_a_line_of_the_table_is_read_with_its_optional_fields_and_escaped_blanks():
    line = rb"36 35 98:0 /mnt\0401 /mnt/a\134b rw,noatime master:1 shared:2 - ext3 /dev/root rw"
    assert _mount(line) == Mount("98:0", Path("/mnt 1"), Path("/mnt/a\\b"), "ext3")
    assert _mount(b"1 1 0:1 / / rw - tmpfs none rw").kind == "tmpfs"


def test_this_machine_mounts_something_at_its_root():
    assert any(mount.point == Path("/") for mount in read_mounts())
