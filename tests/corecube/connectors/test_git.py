"""Against real repositories: on disk, and served over HTTP by dulwich and by git itself."""

import base64
import logging
import os
import subprocess
from pathlib import Path
from shutil import which
from threading import Thread
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest
from dulwich.objects import Blob, Commit, Tree
from dulwich.repo import Repo
from dulwich.server import DictBackend
from dulwich.web import make_wsgi_chain

from corecube.connectors.git.connector import GitConnector
from corecube.connectors.local_files import NO_FILES, LocalFiles
from corecube.connectors.setup import SourceSetup
from corecube.connectors.types import ItemError, ItemProblem, SourceItem
from corecube.errors import ConfigError, UnavailableError

TOKEN = "hush-hush"
GIT_HTTP = Path("/usr/lib/git-core/git-http-backend")
FILE, LINK, MODULE = 0o100644, 0o120000, 0o160000


class Origin:
    """A bare repository that a test commits to."""

    def __init__(self, path):
        self.path = path
        path.mkdir()
        self.repo = Repo.init_bare(str(path))
        self.repo.refs.set_symbolic_ref(b"HEAD", b"refs/heads/main")
        config = self.repo.get_config()
        config.set("uploadpack", "allowFilter", "true")
        config.write_to_path()

    def commit(self, files, *, branch="main", time=1_700_000_000, modes=None):
        """Commit exactly these files (path: bytes) on top of a branch; return the commit's id."""
        ref = f"refs/heads/{branch}".encode()
        commit = Commit()
        commit.parents = [self.repo.refs[ref]] if ref in self.repo.refs else []
        commit.tree = self.tree(files, modes or {})
        commit.author = commit.committer = b"A <a@example.org>"
        commit.author_time = commit.commit_time = time
        commit.author_timezone = commit.commit_timezone = 0
        commit.message = b"change"
        self.repo.object_store.add_object(commit)
        self.repo.refs[ref] = commit.id
        return commit.id

    def tree(self, files, modes, below=""):
        tree = Tree()
        for name in {it.removeprefix(below).partition("/")[0] for it in files if it.startswith(below)}:
            path = below + name
            if path not in files:
                tree.add(os.fsencode(name), 0o040000, self.tree(files, modes, f"{path}/"))
            elif modes.get(path) == MODULE:
                tree.add(os.fsencode(name), MODULE, b"1" * 40)
            else:
                blob = Blob.from_string(files[path])
                self.repo.object_store.add_object(blob)
                tree.add(os.fsencode(name), modes.get(path, FILE), blob.id)
        self.repo.object_store.add_object(tree)
        return tree.id


class Quiet(WSGIRequestHandler):
    def log_message(self, *_):
        pass


def git_itself(root):
    """Return git's own HTTP backend as a WSGI application."""

    def app(environ, start_response):
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        variables = {name: value for name, value in environ.items() if isinstance(value, str)}
        variables |= {"GIT_PROJECT_ROOT": str(root), "GIT_HTTP_EXPORT_ALL": "1", "PATH": os.environ["PATH"]}
        variables |= {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
        if "HTTP_GIT_PROTOCOL" in environ:
            variables["GIT_PROTOCOL"] = environ["HTTP_GIT_PROTOCOL"]
        done = subprocess.run([GIT_HTTP], input=body, env=variables, stdout=subprocess.PIPE, check=True)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = [tuple(line.split(": ", 1)) for line in head.decode().split("\r\n")]
        status = dict(headers).get("Status", "200 OK")
        start_response(status, [it for it in headers if it[0] != "Status"])
        return [content]

    return app


def guarded(app, requests):
    """Return the application behind a token; `requests` takes what was asked for."""
    expected = "Basic " + base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode()

    def checked(environ, start_response):
        requests.append(environ["PATH_INFO"])
        if environ.get("HTTP_AUTHORIZATION") == expected:
            return app(environ, start_response)
        start_response("401 Unauthorized", [("WWW-Authenticate", "Basic"), ("Content-Type", "text/plain")])
        return [b"no"]

    return checked


@pytest.fixture
def origin(tmp_path):
    return Origin(tmp_path / "origin.git")


@pytest.fixture
def served(origin):
    """Return a function that serves the repository and gives its address; `requests` lists the paths asked for."""
    servers = []

    def serve(kind="dulwich"):
        if kind == "git" and not (which("git") and GIT_HTTP.exists()):
            pytest.skip("needs git")
        app = (
            git_itself(origin.path.parent)
            if kind == "git"
            else make_wsgi_chain(DictBackend({"/origin.git": origin.repo}))
        )
        server = make_server("127.0.0.1", 0, guarded(app, serve.requests), handler_class=Quiet)
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}/origin.git"

    serve.requests = []
    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def connector(origin, tmp_path):
    made = []

    def make(*, token=TOKEN, state="state", max_bytes=10_000, **config):
        config = {"url": origin.path.as_uri(), **config}
        setup = SourceSetup(
            config=config,
            secrets={"token": token},
            state=tmp_path / state,
            uploads=tmp_path,
            max_bytes=max_bytes,
            local=LocalFiles((tmp_path.resolve(),)),
        )
        made.append(GitConnector.from_setup(setup))
        return made[-1]

    yield make
    for it in made:
        it.mirror.remote.client.close()


def names(found):
    return [it.external_id for it in found if isinstance(it, SourceItem)]


def problems(found):
    return {it.external_id: it.reason for it in found if isinstance(it, ItemProblem)}


@pytest.mark.parametrize("kind", ["file", "dulwich", "git"])
def test_a_branch_is_read_and_what_changes_is_fetched(origin, served, connector, kind):
    config = {} if kind == "file" else {"url": served(kind)}
    origin.commit({"README.md": b"# One", "docs/a.md": b"a"})
    before = {it.external_id: it.version for it in connector(**config).items()}
    origin.commit({"README.md": b"# Two", "docs/a.md": b"a", "docs/b.md": b"b"})
    source = connector(**config)
    items = list(source.items())
    assert names(items) == ["README.md", "docs/a.md", "docs/b.md"]
    assert [source.read(it) for it in items] == [b"# Two", b"a", b"b"]
    after = {it.external_id: it.version for it in items}
    assert before["docs/a.md"] == after["docs/a.md"]
    assert before["README.md"] != after["README.md"]


@pytest.mark.parametrize("kind", ["dulwich", "git"])
def test_when_nothing_changed_only_the_branches_are_asked_for(origin, served, connector, kind):
    origin.commit({"a.md": b"a"})
    url = served(kind)
    list(connector(url=url).items())
    served.requests.clear()
    connector(url=url).check()
    asked = served.requests.copy()
    served.requests.clear()
    assert names(connector(url=url).items()) == ["a.md"]
    assert served.requests == asked


@pytest.mark.parametrize("kind", ["file", "git"])
def test_only_the_newest_state_is_fetched(origin, served, connector, kind):
    first = origin.commit({"a.md": b"old"})
    origin.commit({"a.md": b"new"})
    source = connector(**({} if kind == "file" else {"url": served(kind)}))
    list(source.items())
    with source.mirror.repo() as copy:
        assert first not in copy.object_store


def test_a_file_that_is_gone_from_the_branch_is_gone_from_the_listing(origin, connector):
    origin.commit({"a.md": b"a", "b.md": b"b"})
    list(connector().items())
    origin.commit({"a.md": b"a"})
    assert names(connector().items()) == ["a.md"]


def test_a_branch_whose_history_was_rewritten_is_read_as_it_is_now(origin, connector):
    origin.commit({"a.md": b"a"})
    origin.commit({"a.md": b"b"})
    list(connector().items())
    del origin.repo.refs[b"refs/heads/main"]
    origin.commit({"c.md": b"c"})
    assert names(connector().items()) == ["c.md"]


def test_another_branch_is_read_by_its_name(origin, connector):
    origin.commit({"a.md": b"a"})
    origin.commit({"b.md": b"b"}, branch="release/1.0")
    assert names(connector(branch="release/1.0").items()) == ["b.md"]


def test_patterns_choose_and_hidden_files_are_left_out(origin, connector):
    files = ("a.md", "docs/b.md", "docs/old/c.md", "src/d.py", ".github/e.md", "docs/.f.md")
    origin.commit(dict.fromkeys(files, b"x"))
    assert names(connector(include=["*.md"], exclude=["docs/old/"]).items()) == ["a.md", "docs/b.md"]


def test_links_and_submodules_are_problems(origin, connector):
    origin.commit({"a.md": b"a", "link.md": b"/etc/passwd", "module": b""}, modes={"link.md": LINK, "module": MODULE})
    found = list(connector().items())
    assert (names(found), problems(found)) == (["a.md"], {"link.md": "symlink", "module": "submodule"})


def test_a_file_kept_in_lfs_is_refused_when_it_is_read(origin, connector):
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
    origin.commit({"a.bin": pointer, "about-lfs.md": b"text with version https://git-lfs.github.com/spec/v1"})
    source = connector()
    items = list(source.items())
    with pytest.raises(ItemError) as caught:
        source.read(items[0])
    assert caught.value.reason == "lfs_pointer"
    assert source.read(items[1]).startswith(b"text")


@pytest.mark.parametrize("kind", ["file", "dulwich", "git"])
def test_a_large_file_is_refused_whether_the_server_leaves_it_out_or_not(origin, served, connector, kind):
    origin.commit({"a.md": b"a", "large.bin": os.urandom(10_001)})
    source = connector(**({} if kind == "file" else {"url": served(kind)}))
    small, large = source.items()
    assert source.read(small) == b"a"
    with pytest.raises(ItemError) as caught:
        source.read(large)
    assert caught.value.reason == "too_large"


@pytest.mark.parametrize("kind", ["git"])
def test_a_file_that_shrank_below_the_limit_is_read(origin, served, connector, kind):
    """The server may send it as a difference to the large one, which it had left out."""
    shared = os.urandom(9_900)
    origin.commit({"a.bin": shared + b"x" * 200})
    url = served(kind)
    list(connector(url=url).items())
    origin.commit({"a.bin": shared})
    source = connector(url=url)
    (item,) = source.items()
    assert source.read(item) == shared


@pytest.mark.parametrize("kind", ["file", "dulwich", "git"])
def test_a_repository_over_the_limit_is_not_fetched(origin, served, connector, kind):
    origin.commit({"a.bin": os.urandom(9000)})
    source = connector(max_repository_bytes=5000, **({} if kind == "file" else {"url": served(kind)}))
    with pytest.raises(UnavailableError, match="the maximum is"):
        list(source.items())


def test_a_server_that_drips_is_left_when_the_time_is_over(site, connector):
    import time

    def drip():
        while True:
            time.sleep(0.05)
            yield b"0"

    head = {"Content-Type": "application/x-git-upload-pack-advertisement"}
    site.pages["/r.git/info/refs"] = lambda *_: (200, head, drip())
    started = time.monotonic()
    with pytest.raises(UnavailableError):
        list(connector(url=f"{site.url}/r.git", timeout_seconds=0.5).items())
    assert time.monotonic() - started < 3


def test_an_item_is_read_on_a_machine_that_has_no_copy(origin, connector):
    origin.commit({"a.md": b"a"})
    (item,) = connector().items()
    assert connector(state="elsewhere").read(item) == b"a"


def test_a_copy_that_was_damaged_is_had_again(origin, connector):
    origin.commit({"a.md": b"a"})
    source = connector()
    list(source.items())
    (pack,) = (source.mirror.folder / "objects" / "pack").glob("*.pack")
    pack.chmod(0o600)
    pack.write_bytes(pack.read_bytes()[:20])
    found = []
    for _ in range(2):
        try:
            found = names(connector().items())
        except UnavailableError:
            continue
    assert found == ["a.md"]


def test_a_copy_of_many_fetches_is_made_anew(origin, connector, monkeypatch):
    monkeypatch.setattr("corecube.connectors.git.mirror._MAX_PACKS", 3)
    for number in range(7):
        origin.commit({"a.md": str(number).encode()})
        source = connector()
        (item,) = source.items()
        assert source.read(item) == str(number).encode()
    assert len(list((source.mirror.folder / "objects" / "pack").glob("*.pack"))) <= 4


def test_dates_are_those_of_the_last_commit_that_changed_a_file(origin, connector):
    origin.commit({"a.md": b"a", "b.md": b"b"}, time=1_000_000_000)
    origin.commit({"a.md": b"A", "b.md": b"b"}, time=1_100_000_000)

    def dates(**config):
        return {it.external_id: it.modified_at and it.modified_at.year for it in connector(**config).items()}

    assert dates(history=True) == {"a.md": 2004, "b.md": 2001}
    origin.commit({"a.md": b"A", "b.md": b"B", "c/d.md": b"d"}, time=1_300_000_000)
    assert dates(history=True) == {"a.md": 2004, "b.md": 2011, "c/d.md": 2011}
    assert dates() == {"a.md": None, "b.md": None, "c/d.md": None}


def test_a_link_leads_to_the_file_on_its_branch(origin, connector):
    commit = origin.commit({"a b/ü.md": b"x"}, branch="next").decode()
    template = "https://git.example/{branch}/{commit}/{path}?plain=1"
    (item,) = connector(branch="next", link=template).items()
    assert item.uri == f"https://git.example/next/{commit}/a%20b/%C3%BC.md?plain=1"


def test_well_known_hosts_need_no_template(tmp_path):
    setup = SourceSetup(config={"url": "https://github.com/o/r.git"}, state=tmp_path, uploads=tmp_path, max_bytes=1)
    source = GitConnector.from_setup(setup)
    source.mirror.remote.client.close()
    assert source.link == "https://github.com/o/r/blob/{branch}/{path}"


def test_a_name_that_is_not_utf8_is_taken_under_an_escaped_name(origin, connector):
    origin.commit({os.fsdecode(b"caf\xe9.md"): b"x"})
    source = connector()
    (item,) = source.items()
    assert (item.external_id, source.read(item)) == ("caf\\xe9.md", b"x")


def capabilities(source):
    return [(it.name, it.ok) for it in source.preflight()]


def test_a_served_branch_passes_the_preflight(origin, served, connector):
    origin.commit({"a.md": b"a"})
    assert capabilities(connector(url=served())) == [("reach", True), ("authenticate", True), ("list", True)]


def test_a_wrong_token_fails_and_is_not_repeated(origin, served, connector):
    origin.commit({"a.md": b"a"})
    source = connector(url=served(), token="wr0ng")
    assert capabilities(source) == [("reach", True), ("authenticate", False)]
    with pytest.raises(ConfigError, match="refuses") as caught:
        list(source.items())
    assert "wr0ng" not in f"{caught.value}{source!r}"


def test_a_missing_branch_is_named(origin, connector):
    origin.commit({"a.md": b"a"})
    source = connector(branch="nowhere")
    assert capabilities(source)[-1] == ("list", False)
    with pytest.raises(ConfigError, match="nowhere"):
        source.check()


def test_a_repository_without_commits_has_no_branch(connector):
    with pytest.raises(ConfigError, match="no default branch"):
        connector().check()


def test_what_is_no_repository_is_refused(site, connector, tmp_path):
    site.add("/r.git/info/refs", "<html>", Content_Type="text/html")
    for url in (f"{site.url}/r.git", f"{site.url}/missing.git", (tmp_path / "nothing").as_uri()):
        with pytest.raises(ConfigError, match="no readable repository"):
            connector(url=url).check()


def test_a_server_that_is_not_there_cannot_be_reached(serve, connector):
    assert capabilities(connector(url="http://127.0.0.1:9/r.git")) == [("reach", False)]


def test_a_redirect_to_another_host_is_not_followed(origin, served, site, connector):
    origin.commit({"a.md": b"a"})
    url = served().replace("127.0.0.1", "localhost")
    site.add("/origin.git/info/refs", status=302, Location=f"{url}/info/refs?service=git-upload-pack")
    with pytest.raises(UnavailableError, match="moved"):
        list(connector(url=f"{site.url}/origin.git").items())
    assert served.requests == []


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"url": "ssh://git@host/r.git"}, "https"),
        ({"url": "https://me:pw@host/r.git"}, "user or a password"),
        ({"url": "/srv/repo"}, "https"),
        ({"branch": "a..b"}, "branch"),
        ({"branch": "-x"}, "branch"),
        ({"link": "javascript:alert(1)"}, "link"),
        ({"timeout_seconds": 0}, "timeout_seconds"),
    ],
)
def test_a_wrong_config_is_named(connector, config, said):
    with pytest.raises(ConfigError, match=said):
        connector(**config)


def test_the_token_stays_out_of_the_most_talkative_log(origin, served, connector, caplog):
    caplog.set_level(logging.DEBUG)
    origin.commit({"a.md": b"a"})
    assert names(connector(url=served()).items()) == ["a.md"]
    encoded = base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode()
    assert not any(secret in caplog.text for secret in (TOKEN, encoded))


def test_a_copy_is_for_its_own_account(origin, connector, tmp_path):
    origin.commit({"a.md": b"a"})
    list(connector().items())
    (pack,) = (tmp_path / "state").rglob("*.pack")
    assert pack.stat().st_mode & 0o077 == 0


def refused(local, url, tmp_path):
    """Return whether a repository on this machine is refused, when its connector is made or when it is opened."""
    setup = SourceSetup(config={"url": url}, state=tmp_path / "refused", uploads=tmp_path, max_bytes=1000, local=local)
    try:
        GitConnector.from_setup(setup).check()
    except ConfigError as error:
        return "CORECUBE_FOLDER_ROOTS" in str(error)
    return False


def test_a_repository_on_this_machine_is_read_below_the_allowed_folders_alone(origin, tmp_path):
    origin.commit({"a.md": b"a"})
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "link").symlink_to(origin.path)
    url = origin.path.as_uri()
    assert not refused(LocalFiles((tmp_path.resolve(),)), url, tmp_path)
    below = LocalFiles(((tmp_path / "root").resolve(),))
    for it in (url, f"{url}%00", (tmp_path / "root" / "link").as_uri(), (tmp_path / "nothing").as_uri()):
        assert refused(below, it, tmp_path) is ("%00" not in it)
    assert refused(NO_FILES, url, tmp_path)


def test_no_part_of_a_repository_lies_elsewhere(origin, tmp_path):
    """A file `.git`, a common folder and borrowed objects can all name other places."""
    origin.commit({"a.md": b"a"})
    root = tmp_path / "root"
    root.mkdir()
    inside = Origin(root / "inside.git")
    inside.commit({"a.md": b"a"})
    (root / "tree").mkdir()
    (root / "work" / ".git").mkdir(parents=True)
    (root / "work" / ".git" / "objects").mkdir()
    below = LocalFiles((root.resolve(),))
    (root / "tree" / ".git").write_text(f"gitdir: {inside.path}")
    assert not refused(below, (root / "tree").as_uri(), tmp_path)
    (root / "tree" / ".git").write_text(f"gitdir: {origin.path}")
    assert refused(below, (root / "tree").as_uri(), tmp_path)
    (root / "work" / ".git" / "commondir").write_text(str(origin.path))
    assert refused(below, (root / "work").as_uri(), tmp_path)
    (inside.path / "objects" / "info").mkdir(exist_ok=True)
    (inside.path / "objects" / "info" / "alternates").write_text(str(inside.path / "objects"))
    assert refused(below, inside.path.as_uri(), tmp_path) is False
    (inside.path / "objects" / "info" / "alternates").write_text(str(origin.path / "objects"))
    assert refused(below, inside.path.as_uri(), tmp_path)
