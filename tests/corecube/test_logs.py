from corecube import logs
from corecube.logs import last_lines, open_log


def test_a_new_process_appends_to_the_log(tmp_path):
    path = tmp_path / "log" / "web.log"
    for line in (b"one\n", b"two\n"):
        with open_log(path) as log:
            log.write(line)
    assert path.read_bytes() == b"one\ntwo\n"


def test_a_log_that_has_grown_is_moved_aside(tmp_path, monkeypatch):
    monkeypatch.setattr(logs, "_MAX_BYTES", 3)
    path = tmp_path / "web.log"
    path.write_bytes(b"long\n")
    open_log(path).close()
    assert path.read_bytes() == b""
    assert path.with_name("web.log.1").read_bytes() == b"long\n"


def test_the_last_lines_survive_bytes_that_are_no_text(tmp_path):
    path = tmp_path / "web.log"
    path.write_bytes(b"one\n\xff\nthree\n")
    assert last_lines(path, 2) == ["\N{REPLACEMENT CHARACTER}", "three"]
