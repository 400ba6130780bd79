"""An installation of the release 0.2.0, whose database is in `data/`, becomes one of this version and loses nothing.

It has an admin and bob, a connection with two documents, an API key, a conversation, a logged search, a grade, a
question set, and a live version of `helix` with a setting that has another name now.
"""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from tests.installation import Observer, new_installation
from tests.profiles import PROFILE

_RELEASE = Path(__file__).parent / "data" / "release-0.2.0.sql.gz"
_KEY = "cc_kEPx8MH6ervvWw2Rm7GshhT35t9Mok1PGOIlCJcufSs"
_LOAD = """
import subprocess
from django.db import connection
connection.ensure_connection()
options = ["--quiet", "--set=ON_ERROR_STOP=1", "--file", {path!r}]
command, environment = connection.client.settings_to_cmd_args_env(connection.settings_dict, options)
subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
"""
_SEARCH = """
from corecube.access import Principal
from corecube.models import User
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
principal = Principal(User.objects.get(username="admin"))
for preset in ("corecube", "helix"):
    outcome = search(SearchRequest(text="When does the gate open?", preset=preset), principal=principal)
    print(outcome.hits[0].chunk.title)
"""
_KEPT = """
from django.test import Client
from corecube.access import Principal, scope_for
from corecube.models import User
from retrieval.models import Case, Conversation, Message, PresetVersion
from retrieval.records.judgments import grades_of
admin = User.objects.get(username="admin")
client = Client(headers={{"host": "localhost"}})
listed = client.get("/api/v1/connections", headers={{"authorization": "Bearer {key}"}}).json()
print(listed["connections"][0]["connection"])
print(client.login(username="bob", password="pw-of-bob-9"))
client.force_login(admin)
print("The gate opens at 05:40." in client.get(f"/chat/{{Conversation.objects.get().pk}}/").content.decode())
record = Message.objects.get(role="assistant").record
print(client.get(f"/log/{{record.pk}}/").status_code)
query = Case.objects.get().query
print([it.own for it in grades_of(query, viewer=admin, scope=scope_for(Principal(admin))).values()])
print(PresetVersion.objects.get().values)
"""


#: Each column with what a row gets that does not name it: a default, NULL, or nothing.
_COLUMNS = """
import json
from django.db import connection
with connection.cursor() as cursor:
    cursor.execute(
        "SELECT table_name || '.' || column_name, table_name, is_nullable = 'YES' OR column_default IS NOT NULL"
        " OR is_identity = 'YES' FROM information_schema.columns WHERE table_schema = 'public'"
    )
    print(json.dumps(cursor.fetchall()))
"""
#: Token vectors are coded differently now: an optional index of a reranker, without which the order before it stands.
_REPLACED = "retrieval_tokenembedding"
_SYNC = """
from corecube.models import Connection
from retrieval.ingest.sync import sync_connection
plant = Connection.objects.get()
plant.config = {{**plant.config, "path": {root!r}}}
plant.save()
done = sync_connection(plant)
print(done.seen, done.changed, done.deleted)
"""


_COMPARTMENT = "from corecube.models import Connection; print(Connection.objects.get(slug='plant').compartment.name)"
_MIGRATIONS = ("corecube/migrations/*.py", "retrieval/migrations/*.py")
#: By addresses and commands alone, which every version has.
_USED = """
from django.contrib.auth import get_user_model
from django.test import Client
client = Client(headers={{"host": "localhost", "authorization": "Bearer {key}"}})
asked = {{"query": {query!r}}}
print(client.post("/api/v1/search", asked, content_type="application/json").json()["hits"][0]["title"])
page = Client(headers={{"host": "localhost"}})
page.force_login(get_user_model().objects.get(username="admin"))
print([page.get(it).status_code for it in ("/explorer/", "/chat/", "/documents/", "/log/", "/judgments/", "/presets/")])
"""


def git(*arguments):
    """Return what git prints in this repository; skip the test where it does not know."""
    try:
        ran = subprocess.run(["git", *arguments], cwd=settings.BASE_DIR, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"git does not know: {error}")
    return ran.stdout


@pytest.fixture
def earlier(tmp_path):
    """Return the code of the last commit before the newest migration that loads: some begin what the next completes.

    By default only where that migration is not committed yet.
    """
    is_new = git("ls-files", "--others", "--exclude-standard", "--", *_MIGRATIONS)
    if PROFILE == "default" and not is_new:
        pytest.skip("runs in the nightly profile once the newest migration is committed")
    newest = git("log", "-1", "--diff-filter=A", "--format=%H", "--", *_MIGRATIONS).decode().strip()
    listed = git("log", "--first-parent", "--max-count=5", "--format=%h", "HEAD" if is_new else f"{newest}^")
    for commit in listed.decode().split():
        code = tmp_path / commit
        code.mkdir()
        archive = git("archive", commit)
        subprocess.run(["tar", "--extract", f"--directory={code}"], input=archive, check=True)
        loads = [sys.executable, "manage.py", "shell", "--verbosity", "0", "-c", "import corecube.urls"]
        if subprocess.run(loads, cwd=code, capture_output=True, check=False).returncode == 0:
            return code
    raise AssertionError(f"None of these commits loads: {listed}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("release")


@pytest.fixture(scope="module")
def upgraded(folder):
    """Return what looks at the upgraded installation, and from before what `upgrade --check` said and the columns."""
    dump = folder / "release.sql"
    dump.write_bytes(gzip.decompress(_RELEASE.read_bytes()))
    with new_installation(is_migrated=False, CORECUBE_FOLDER_ROOTS=str(folder)) as environment:
        observe = Observer(environment)
        observe(_LOAD.format(path=str(dump)))
        before = observe.manage("upgrade", "--check"), json.loads(observe(_COLUMNS))
        observe.manage("migrate", "--verbosity", "0")
        yield observe, *before
        observe.end()


def test_its_plan_lists_what_is_pending(upgraded):
    _, plan, _ = upgraded
    assert "retrieval.0026_rename_tunables" in plan
    assert "Documents: unknown before the migrations." in plan


def test_code_of_the_release_can_go_on_beside_this_one(upgraded):
    """During a rolling restart, and after going back, it finds its columns and may leave out the others."""
    observe, _, columns = upgraded
    tables = {table for _, table, _ in columns} - {_REPLACED}
    before, after = {name for name, table, _ in columns if table in tables}, json.loads(observe(_COLUMNS))
    assert before <= {name for name, *_ in after}
    assert [name for name, table, is_spared in after if table in tables and name not in before and not is_spared] == []


def test_everything_is_found_used_and_read(upgraded):
    observe, *_ = upgraded
    assert observe(_SEARCH).splitlines() == ["Night shift", "Night shift"]
    assert observe(_KEPT.format(key=_KEY)).splitlines() == [
        "plant",
        "True",
        "True",
        "200",
        "[3]",
        "{'deadline_ms': 900, 'diversify.min_cosine': 0.9}",
    ]


def test_the_next_sync_reads_the_documents_again(upgraded, folder):
    observe, *_ = upgraded
    assert "reads 2 again" in observe.manage("upgrade", "--check")
    (folder / "docs").mkdir()
    (folder / "docs" / "shift.md").write_text("# Night shift\n\nThe gate opens at 05:40. Bring the blue badge.\n")
    (folder / "docs" / "kiln.md").write_text(
        "# Kiln\n\nThe kiln is fired at 1,240 degrees for nine hours.\n\n## Cooling\n\nIt cools for two days.\n"
    )
    assert observe(_SYNC.format(root=str(folder / "docs"))).split() == ["2", "2", "0"]
    assert "Documents: all have" in observe.manage("upgrade", "--check")
    assert observe(_SEARCH).splitlines() == ["Night shift", "Night shift"]


def test_the_code_before_the_newest_migration_works_beside_this_one(upgraded, folder, earlier):
    """What it writes into the new schema this version reads, and the other way round."""
    observe, *_ = upgraded
    (folder / "lamps").mkdir()
    (folder / "lamps" / "lamp.md").write_text("# The harbour lamp\n\nThe harbour lamp burns whale oil.\n")
    old = Observer(observe.environment, code=earlier)
    try:
        assert str(earlier) in old("import corecube; print(corecube.__file__)")
        old.manage("ingest", str(folder / "lamps"), "--compartment", observe(_COMPARTMENT).strip())
        ask = {"key": _KEY, "query": "What does the harbour lamp burn?"}
        used = [it(_USED.format(**ask)).splitlines() for it in (old, observe)]
        assert used == [["The harbour lamp", f"{[200] * 6}"]] * 2
    finally:
        old.end()
