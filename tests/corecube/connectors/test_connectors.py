"""What all connectors have in common."""

import json

import pytest
from dulwich.repo import Repo

from corecube.connectors import checked_config, connector_for
from corecube.connectors.kinds import KINDS
from corecube.connectors.setup import SourceConfig, SourceSetup, remove_folder, state_folder
from corecube.connectors.types import Capability, require
from corecube.errors import ConfigError
from corecube.models import Compartment, Connection
from corecube.secrets import seal
from retrieval.ingest.sync import sync_connection
from retrieval.models import Document
from tests.connector_examples import EXAMPLES

CONFIGS = {kind: example.config for kind, example in EXAMPLES.items()}
SECRETS = {"token": "zanzibar", "access_key": "AKIA", "secret_key": "zanzibar"}


@pytest.fixture(autouse=True)
def sources(settings, tmp_path):
    settings.CORECUBE_SOURCES_DIR = tmp_path / "sources"
    return settings.CORECUBE_SOURCES_DIR


def connection(kind, **config):
    return Connection(pk=7, slug="docs", kind=kind, config={**CONFIGS[kind], **config})


def test_every_kind_is_known_here():
    assert CONFIGS.keys() == KINDS.keys()


@pytest.mark.parametrize("kind", CONFIGS)
def test_making_a_connector_costs_nothing_and_leaves_nothing(kind, sources):
    connector_for(connection(kind), SECRETS)
    assert not sources.exists()


@pytest.mark.parametrize("kind", CONFIGS)
def test_no_connector_shows_its_secrets(kind):
    assert "zanzibar" not in repr(connector_for(connection(kind), SECRETS))


@pytest.mark.parametrize("kind", CONFIGS)
def test_every_kind_takes_patterns_and_a_size_limit(kind):
    connector_for(connection(kind, include=["*.md"], exclude=["old/"], max_bytes=1000), SECRETS)
    for wrong in ({"include": [""]}, {"exclude": "*.md"}, {"max_bytes": 0}):
        with pytest.raises(ConfigError):
            connector_for(connection(kind, **wrong), SECRETS)


@pytest.mark.parametrize("kind", [kind for kind in CONFIGS if kind not in {"folder", "upload"}])
def test_a_config_with_an_unknown_field_is_refused(kind):
    with pytest.raises(ConfigError, match="colour"):
        connector_for(connection(kind, colour="blue"), SECRETS)


@pytest.mark.parametrize("kind", [kind for kind in CONFIGS if kind not in {"upload", "push"}])
def test_a_source_that_is_not_there_is_refused_with_a_sentence(kind, sources):
    with pytest.raises(ConfigError) as caught:
        checked_config(kind, CONFIGS[kind], SECRETS)
    assert str(caught.value).endswith(".")
    assert "zanzibar" not in str(caught.value)
    assert not sources.exists()


def test_stored_secrets_are_opened():
    it = connection("confluence")
    it.sealed_secrets = seal({"token": "zanzibar"})
    assert connector_for(it).api.client.credentials == {"Authorization": "Bearer zanzibar"}


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\0"])
def test_a_secret_that_no_header_can_carry_is_refused(value):
    with pytest.raises(ConfigError, match="token") as caught:
        connector_for(connection("git"), {"token": value})
    assert "Evil" not in str(caught.value)


def test_an_error_in_a_config_names_the_field_and_not_its_value(tmp_path):
    setup = SourceSetup(config={"max_bytes": "pass-word"}, state=tmp_path, uploads=tmp_path, max_bytes=1)
    with pytest.raises(ConfigError, match="max_bytes") as caught:
        setup.read(SourceConfig)
    assert "pass-word" not in str(caught.value)


def test_a_connections_limit_is_never_above_the_installations(tmp_path):
    setup = SourceSetup(config={}, state=tmp_path, uploads=tmp_path, max_bytes=100)
    assert [setup.limit(it) for it in (None, 50, 200)] == [100, 50, 100]


@pytest.mark.parametrize("kind", CONFIGS)
def test_configs_are_json(kind):
    assert json.loads(json.dumps(CONFIGS[kind])) == CONFIGS[kind]


def test_the_first_missing_capability_is_the_error():
    with pytest.raises(ConfigError, match="second"):
        require(
            [Capability.passed("reach", "first"), Capability.failed("list", "second"), Capability.failed("read", "x")]
        )
    require([Capability.passed("reach", "first")])


def test_what_a_connector_kept_is_removed(caplog):
    folder = state_folder(connection("git"))
    remove_folder(folder)
    (folder / "newest").mkdir(parents=True)
    remove_folder(folder)
    assert (folder.name, folder.exists(), caplog.records) == ("7", False, [])


def test_what_cannot_be_removed_is_logged(caplog):
    folder = state_folder(connection("git"))
    folder.parent.mkdir()
    folder.touch()
    remove_folder(folder)
    assert str(folder) in caplog.text


@pytest.fixture
def synced(db, settings):
    """Return a function that stores a connection of a kind, or finds it, syncs it and tells what the sync did."""

    def sync(kind, **config):
        compartment = Compartment.objects.get_or_create(slug="c", name="C")[0]
        facts = {"name": "Docs", "kind": kind, "config": config, "compartment": compartment}
        it = Connection.objects.get_or_create(slug="docs", defaults=facts)[0]
        done = sync_connection(it)
        return done.added, done.changed, done.unchanged, done.deleted

    settings.CORECUBE_DELETE_GUARD_PERCENT = 100
    return sync


def test_a_web_site_is_synced_as_it_changes(synced, site):
    html = {"Content_Type": "text/html"}
    site.add(
        "/", '<title>Start</title><p>Welcome to the rollback guide.</p><a href="/a">a</a><a href="/b">b</a>', **html
    )
    site.add("/a", "<title>A</title><p>Ask the release captain before a rollback.</p>", **html)
    site.add("/b", "<title>B</title><p>Drain the queue before a rollback.</p>", **html)
    config = {"start": [f"{site.url}/"], "private_networks": ["127.0.0.1/32"], "delay_seconds": 0}
    assert synced("web", **config) == (3, 0, 0, 0)
    site.add("/a", "<title>A</title><p>Ask the new release captain before a rollback.</p>", **html)
    del site.pages["/b"]
    assert synced("web", **config) == (0, 1, 1, 1)
    (document,) = Document.objects.filter(external_id=f"{site.url}/a")
    assert (document.title, document.uri) == ("A", f"{site.url}/a")


def test_a_repository_is_synced_as_it_changes(synced, tmp_path):
    origin = Repo.init(str(tmp_path / "origin"), mkdir=True)
    tree = origin.get_worktree()

    def commit(**files):
        for name, text in files.items():
            (tmp_path / "origin" / f"{name}.md").write_text(text)
        tree.stage([f"{name}.md" for name in files])
        tree.commit(b"change", committer=b"A <a@example.org>", author=b"A <a@example.org>")

    commit(a="# A\n\nRoll back by hand.", b="# B\n\nDrain the queue.")
    config = {"url": (tmp_path / "origin").as_uri()}
    assert synced("git", **config) == (2, 0, 0, 0)
    (tmp_path / "origin" / "b.md").unlink()
    tree.stage(["b.md"])
    commit(a="# A\n\nRoll back with the tool.", c="# C\n\nCall the captain.")
    origin.close()
    assert synced("git", **config) == (1, 1, 0, 1)
