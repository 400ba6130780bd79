"""The cast and the small world that tests share.

Alice may see everything and is an admin, Bob sees engineering up to internal, Charlie sees nothing.
"""

import functools
import gc
import os
import threading
import time
from collections.abc import Generator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from unittest import mock

import httpcore2
import pytest
import uvicorn
from django.conf import settings as configured
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Group
from django.db import connection
from django.db.backends.postgresql.base import DatabaseWrapper
from django.test import TransactionTestCase, override_settings
from whitenoise.middleware import WhiteNoiseMiddleware

from corecube.access import Principal
from corecube.models import ApiKey, Compartment, Connection, Grant, User
from corecube.scope import Sensitivity, TrustLevel
from retrieval.engine.caches import RecentCache
from retrieval.index import active, graph
from retrieval.ingest.sync import sync_connection
from retrieval.models import PresetVersion
from retrieval.presets.catalog import PRESETS
from retrieval.presets.consolidated.evidence.rerank_guard import RerankGuards
from retrieval.presets.helix import route_examples
from retrieval.search import calibrations, runtime
from retrieval.search.record_writer import record_writer
from tests import marks, profiles, purity
from tests.fakes import HashEncoder
from tests.kept_rows import KeptRows, Stand, empty_tables, same_rows
from tests.migrated import migrated_database
from tests.questions import release_questions
from tests.redis_server import running_redis, sharing
from tests.unhurried import MAX_MS, without_deadlines

profiles.load()

_SOURCES = {
    "runbooks": {
        "rollback.md": (
            "# Rolling back\n\n## Staging\n\nRun deployctl rollback before touching the staging database.\n\n"
            "## Production\n\nAsk the release captain, then drain the queue and roll back the release.\n"
        ),
        "queues.txt": "Draining the queue takes four minutes. Error Q-4711 means that a worker is stuck.",
    },
    "vault": {"breach.md": "# Breach of March\n\nThe stolen passphrase was zanzibar and the rollback failed twice.\n"},
    "ledger": {"rollback-costs.md": "# Costs\n\nThe rollback in March cost 48,200 crowns. Codeword tangerine.\n"},
}


#: The files that take longest: one that was begun last would be waited for by itself. Those that mostly wait, for
#: processes and for time-outs, lie between those in a browser, which are busy all the time and share it.
_LONGEST: Final = (
    "tests/retrieval/tasks/test_worker.py",
    "tests/corecube/backup/test_restore.py",
    "tests/browser/test_pages.py",
    "tests/browser/test_pickers.py",
    "tests/browser/test_chat.py",
    "tests/retrieval/ingest/test_watchdog.py",
    "tests/browser/test_policy.py",
    "tests/browser/test_explorer.py",
    "tests/browser/test_charts.py",
    "tests/browser/test_log.py",
    "tests/retrieval/ingest/sandbox/test_process.py",
    "tests/browser/test_side_by_side.py",
    "tests/browser/test_connections.py",
    "tests/browser/test_explorer_lanes.py",
    "tests/retrieval/search/test_late_models.py",
    "tests/browser/test_presets.py",
    "tests/browser/test_evaluation.py",
    "tests/browser/test_explorer_where.py",
    "tests/browser/test_access.py",
    "tests/browser/test_keyboard.py",
    "tests/browser/test_connections_quality.py",
    "tests/corecube/test_start.py",
    "tests/retrieval/api/test_ways_in.py",
    "tests/test_text_growth.py",
    "tests/corecube/test_start_again.py",
    "tests/retrieval/evaluation/test_bench.py",
    "tests/quality/test_samples.py",
    "tests/retrieval/search/test_relevance.py",
    "tests/retrieval/encoders/test_agreement.py",
    "tests/retrieval/index/test_plans.py",
    "tests/corecube/postgresql/test_pgbouncer.py",
    "tests/retrieval/api/test_fuzz.py",
    "tests/retrieval/presets/consolidated/test_faults.py",
    "tests/retrieval/api/test_fuzz_admin.py",
    "tests/retrieval/ingest/test_index_build_killed.py",
    "tests/retrieval/evaluation/test_answerability.py",
    "tests/retrieval/presets/helix/test_failure_modes.py",
    "tests/retrieval/evaluation/test_bench_chat.py",
    "tests/retrieval/ingest/test_hostile_files.py",
    "tests/corecube/test_commands.py",
    "tests/test_patterns.py",
)


def pytest_configure() -> None:
    purity.watch()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without looking for garbage, and never look through what was collected: it stays to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark a test with what it uses."""
    marks.add_marks(item)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take longest; the others stay in order."""
    places = {name: place for place, name in enumerate(_LONGEST)}
    items.sort(key=lambda item: places.get(item.location[0], len(places)))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    purity.begin()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    yield
    purity.check(item)


@dataclass(frozen=True)
class World:
    alice: User
    bob: User
    charlie: User
    runbooks: Connection
    vault: Connection
    ledger: Connection
    root: Path

    def principal(self, name: str) -> Principal:
        return Principal(getattr(self, name))

    def key(self, name: str) -> str:
        """Return the secret of a new API key of this person."""
        return ApiKey.issue(user=getattr(self, name), name="test")[1]


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings, django_db_blocker):
    """Copy a migrated database instead of migrating a new one.

    A pool of connections to the installation's database, which a test without a database may have made, is forgotten.
    """
    connection.close_pool()
    with django_db_blocker.unblock():
        connection.settings_dict["TEST"]["TEMPLATE"] = migrated_database()


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup, django_db_blocker):
    """Spare the tests' database what large and lasting ones need: memory for workers at an index, waiting for disks."""
    with django_db_blocker.unblock():
        name = connection.ops.quote_name(connection.settings_dict["NAME"])
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER DATABASE {name} SET max_parallel_maintenance_workers = 0")
            cursor.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
        connection.close()
        connection.close_pool()
    emptied = mock.patch.object(TransactionTestCase, "_fixture_teardown", empty_tables)
    with emptied, mock.patch.object(DatabaseWrapper, "check_constraints", _check_constraints):
        yield


def _check_constraints(wrapper, table_names=None):
    """Check the foreign keys of a test's rows without the time limit that its last search left to the transaction."""
    with wrapper.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 0; SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED")


@pytest.fixture(scope="session", autouse=True)
def quick_settings(tmp_path_factory):
    """Search in the test's own thread, cache no query, load no model ahead, hash passwords fast, write no access late.

    A request that outlives its test would write its access during the next one.
    """
    configured.CORECUBE_ACCESS_SECONDS = 0
    configured.CORECUBE_LEG_THREADS = 0
    configured.CORECUBE_QUERY_CACHE = 0
    configured.CORECUBE_WARM_UP = False
    configured.CORECUBE_FOLDER_ROOTS = [tmp_path_factory.getbasetemp(), Path("/srv")]
    configured.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(scope="session", autouse=True)
def static_files_found_once():
    """Look for the files under static/ once: the middleware does so for every client, longer than a request takes."""
    find, found = WhiteNoiseMiddleware.add_files_from_finders, {}

    def add(middleware):
        if not found:
            find(middleware)
            found.update(middleware.files)
        middleware.files.update(found)

    with mock.patch.object(WhiteNoiseMiddleware, "add_files_from_finders", add):
        yield


@pytest.fixture(scope="session", autouse=True)
def certificates_read_once():
    """Read the system's certificates once: each HTTP client reads them, which takes longer than what it is made for."""
    with mock.patch.object(httpcore2, "default_ssl_context", functools.cache(httpcore2.default_ssl_context)):
        yield


@pytest.fixture
def server(transactional_db, settings):
    """Return the address of an ASGI server on the test's database."""
    from corecube.asgi import application
    from retrieval.search.record_writer import record_writer

    settings.ALLOWED_HOSTS = ["127.0.0.1"]
    record_writer.begin()
    config = uvicorn.Config(application, port=0, lifespan="on", log_level="warning")
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    while not running.started:
        time.sleep(0.01)
    port = running.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}"
    running.should_exit = True
    thread.join(timeout=10)


@pytest.fixture
def redis():
    """Start a Redis server of the test's own."""
    with running_redis() as server:
        yield server


@pytest.fixture
def shared_redis(redis):
    """Let this process share its state through the test's Redis."""
    with sharing(redis.url) as store:
        yield store


@pytest.fixture(params=["memory", "redis"])
def service(request):
    """Return the name of a service that is counted in Redis, and none for one that this process counts in memory.

    The clock of a test that has one is that of Redis too.
    """
    if request.param == "memory":
        yield ""
    else:
        clock = request.getfixturevalue("clock") if "clock" in request.fixturenames else None
        with running_redis() as server, sharing(server.url, clock=clock):
            yield "service"


@pytest.fixture
def anywhere(service, monkeypatch):
    """Let caches answer from memory, and from Redis alone, as they do in a process that has cached nothing itself."""
    if service:
        monkeypatch.setattr(RecentCache, "_keep", lambda _, __, value: value)
    return service


@pytest.fixture(autouse=True)
def small_engine(request):
    """Search with an encoder that needs no model file, in folders of the test's own.

    A pure test does not search; one that has settings of its own may read and write files.
    """
    if "settings" in request.fixturenames or request.node.get_closest_marker("pure") is None:
        request.getfixturevalue("own_engine")


@pytest.fixture
def own_engine(monkeypatch, tmp_path):
    encoder = HashEncoder()
    monkeypatch.setattr(active, "encoder", lambda *_: encoder)
    monkeypatch.setattr(runtime, "rerank_guards", RerankGuards())
    runtime._model_calls.cache_clear()
    route_examples.forget_examples()
    calibrations.forget_active()
    graph.forget_samples()
    with override_settings(
        CORECUBE_UPLOADS_DIR=tmp_path / "uploads",
        CORECUBE_SOURCES_DIR=tmp_path / "sources",
        CORECUBE_BM25=False,
        CORECUBE_BM25_DIR=tmp_path / "bm25",
        CORECUBE_VECTORS=False,
        CORECUBE_VECTORS_DIR=tmp_path / "vectors",
    ):
        yield
    record_writer.end()


#: Every test's files were written then, and its rows of the same name have the same id: what was taken in for one test
#: is right for all tests of the process.
_WRITTEN_AT: Final = time.time()
_syncs: dict[tuple[object, ...], tuple[str, KeptRows]] = {}


@pytest.fixture
def unhurried(db, monkeypatch):
    """Give every preset all the time that there is: what is compared must not depend on what else the machine does."""
    without_deadlines()
    for name, preset in PRESETS.items():
        if preset.lines:
            # No stored version can give it time.
            patient = replace(preset, defaults=replace(preset.defaults, deadline_ms=MAX_MS))
            monkeypatch.setitem(PRESETS, name, patient)


@pytest.fixture
def impatient(db):
    """Let the tiers of the recovery of missing sources follow each other without a wait."""
    waits = dict.fromkeys(("cascade.first_wait_seconds", "cascade.max_wait_seconds"), 0.0)
    PresetVersion.objects.create(preset="consolidated", number=1, status="live", values=waits)


@pytest.fixture
def people(db):
    found = {name: User(username=name, password=make_password(name[0])) for name in ("alice", "bob", "charlie")}
    found["alice"].is_staff = found["alice"].is_superuser = True
    same_rows(**found)
    return found


@pytest.fixture
def governed(people, tmp_path):
    """Two compartments, three connections whose documents are not taken in, and grants for Alice and Bob."""
    engineering, finance = (Compartment(slug=it, name=it.capitalize()) for it in ("engineering", "finance"))
    same_rows(engineering=engineering, finance=finance)
    staff = Group.objects.create(name="engineers")
    people["bob"].groups.through.objects.create(user=people["bob"], group=staff)
    everything = {"user": people["alice"], "clearance": Sensitivity.RESTRICTED}
    Grant.objects.bulk_create(
        [
            Grant(group=staff, compartment=engineering, clearance=Sensitivity.INTERNAL),
            *(Grant(compartment=it, **everything) for it in (engineering, finance)),
        ]
    )
    sources = {
        "runbooks": _source(tmp_path, "runbooks", engineering, Sensitivity.INTERNAL, TrustLevel.AUTHORITATIVE),
        "vault": _source(tmp_path, "vault", engineering, Sensitivity.RESTRICTED, TrustLevel.REFERENCE),
        "ledger": _source(tmp_path, "ledger", finance, Sensitivity.INTERNAL, TrustLevel.VOLATILE),
    }
    same_rows(**sources)
    return World(**people, **sources, root=tmp_path)


@pytest.fixture
def sync_once(governed, request):
    """Return a function that syncs connections as `sync_connection` does; the same sync is done once a process.

    Each later time its rows are copied: nothing else may have changed in the world that a sync depends on.
    """
    root = governed.root
    done = [None if configured.CORECUBE_BM25 and _commits(request) else _kind_of_world(str(root))]

    def sync(*connections):
        before, files = _rows_of_connections(root), sorted(it for it in root.glob("*/*") if it.is_file())
        for path in files:
            os.utime(path, (_WRITTEN_AT, _WRITTEN_AT))
        contents = tuple((str(it.relative_to(root)), it.read_bytes()) for it in files)
        done.append((tuple(it.slug for it in connections), before, contents))
        kind = tuple(done)
        if kind in _syncs:
            old_root, rows = _syncs[kind]
            rows.put_back(old_root, str(root))
            fresh = Connection.objects.in_bulk([it.pk for it in connections])
            for connection in connections:
                connection.last_synced_at = fresh[connection.pk].last_synced_at
                connection.next_sync_at = fresh[connection.pk].next_sync_at
            return
        stand = Stand.now()
        for connection in connections:
            sync_connection(connection)
        if done[0]:
            _syncs[kind] = str(root), KeptRows.since(stand, text=str(root))

    return sync


@pytest.fixture
def world(governed, sync_once):
    """The same with the documents of all three connections taken in."""
    sync_once(governed.runbooks, governed.vault, governed.ledger)
    return governed


@pytest.fixture
def questions(world):
    """A judged question set about the world."""
    return release_questions(world)


LEAVE: Final = "Everyone at the warehouse has {} days of paid parental leave."


@pytest.fixture
def contradicting(world, sync_once):
    """Two documents of the runbooks contradict each other; the newest one, a third, is superseded."""
    stated = ("Leave rules", "2024-05-09", "current", 15), ("Absence", "2025-01-12", "current", 20)
    for title, updated, status, days in (*stated, ("Rules before", "2026-01-12", "superseded", 10)):
        head = f"---\ntitle: {title}\nupdated: {updated}\nstatus: {status}\n---\n"
        (world.root / "runbooks" / f"{title}.md").write_text(f"{head}# {title}\n\n{LEAVE.format(days)}\n")
    sync_once(world.runbooks)
    return world


def _commits(request):
    marker = request.node.get_closest_marker("django_db")
    return "transactional_db" in request.fixturenames or bool(marker and marker.kwargs.get("transaction"))


def _kind_of_world(root):
    """Return what decides how documents are taken in: the settings and the encoder."""
    names = [name for name in dir(configured) if name.startswith("CORECUBE_")]
    encoder = active.encoder()
    return (
        *(repr(getattr(configured, name)).replace(root, "") for name in names),
        *(type(encoder), encoder.name, encoder.dim, encoder.max_tokens),
    )


def _rows_of_connections(root: Path) -> str:
    """Return what a sync depends on of all connections."""
    rows = Connection.objects.order_by("pk").defer("created_at", "last_synced_at", "next_sync_at")
    facts = [{name: value for name, value in vars(it).items() if name != "_state"} for it in rows]
    return repr(facts).replace(str(root), "")


def _source(root: Path, slug: str, compartment: Compartment, sensitivity: Sensitivity, trust: TrustLevel) -> Connection:
    folder = root / slug
    folder.mkdir()
    for name, text in _SOURCES[slug].items():
        (folder / name).write_text(text)
        os.utime(folder / name, (_WRITTEN_AT, _WRITTEN_AT))
    return Connection(
        slug=slug,
        name=slug.capitalize(),
        kind="folder",
        config={"path": str(folder)},
        compartment=compartment,
        sensitivity=sensitivity,
        trust=trust,
    )
