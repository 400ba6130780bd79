"""Backing up and restoring installations, by real processes on real servers."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg
import pytest
from django.conf import settings

from tests.corecube.backup.installations import FILL, LOOK, looked_at, manage, run
from tests.installation import Observer, new_installation
from tests.other_postgres import other_postgres
from tests.profiles import nightly
from tests.race import until

PASSPHRASE = "correct horse battery staple"
BIG = 40  #: Uploads of a megabyte, so that there is time to interrupt something.


@pytest.fixture(scope="module")
def places():
    with tempfile.TemporaryDirectory(prefix="corecube-test-") as name:
        yield Path(name)


@pytest.fixture(scope="module")
def source(places):
    """What runs scripts in an installation that was backed up, without and with encryption."""
    with new_installation() as environment:
        observer = Observer(environment)
        observer(FILL)
        observer.manage("backup", str(places / "plain"), "--fast")
        observer(_SEALED.format(arguments=("backup", str(places / "sealed")), passphrase=PASSPHRASE))
        yield observer
        observer.end()


@pytest.fixture(scope="module")
def original(source):
    found = json.loads(source(LOOK))
    assert found.pop("followed") == [30, []]
    return found


_SEALED = """
from django.core.management import CommandError, call_command
from django.test import override_settings
with override_settings(CORECUBE_BACKUP_PASSPHRASE={passphrase!r}):
    try:
        call_command(*{arguments!r})
    except CommandError as error:
        print(error)
"""


def begun(environment, *arguments):
    return subprocess.Popen(
        [sys.executable, "manage.py", *arguments],
        cwd=settings.BASE_DIR,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def killed_when(process, condition):
    """Kill a process as soon as the condition holds, while it runs."""
    until(lambda: condition() or process.poll() is not None, seconds=200)
    process.kill()
    assert process.wait() == -signal.SIGKILL


def is_marked(url):
    """Whether a restore has begun in a database."""
    with psycopg.connect(url) as connection:
        if connection.execute("SELECT to_regclass('django_migrations')").fetchone() == (None,):
            return False
        return connection.execute("SELECT count(*) FROM django_migrations WHERE name = 'restoring'").fetchone() == (1,)


@nightly
def test_a_killed_restore_is_repeated_on_another_major_version_and_moves_back(source, original, places):
    passphrase = {"CORECUBE_BACKUP_PASSPHRASE": PASSPHRASE}
    with other_postgres() as url, new_installation(is_migrated=False, DATABASE_URL=url, **passphrase) as elsewhere:
        restoring = begun(elsewhere, "restore", str(places / "sealed"))
        killed_when(restoring, lambda: is_marked(url))
        done = manage(elsewhere, "start", "--no-samples", "--prepare-only")
        assert (done.returncode, "Run the same" in done.stderr) == (1, True), done.stderr
        assert "tiny" in run(elsewhere, "restore", str(places / "sealed"))
        run(elsewhere, "backup", str(places / "back"), "--fast")
    with new_installation(is_migrated=False, **passphrase) as target:
        run(target, "restore", str(places / "back"))
        found = looked_at(target)
    assert found == original
    assert found["secret"] == {"token": "tangerine"}
    assert found["uploads"] == {"2026/notes.md": "# Notes"}
    assert {"retrieval_embedding_hnsw_1", "retrieval_sparse_hnsw_12"} <= set(found["indexes"])
    # A number that was used once is not used again.
    assert found["sequence"] == 3


def test_nothing_in_an_encrypted_backup_can_be_read(source, places):
    key = source("from django.conf import settings; print(settings.SECRET_KEY)").strip().encode()
    for file in (places / "sealed").rglob("*"):
        content = file.read_bytes() if file.is_file() else b""
        assert not any(word in content for word in (key, b"alice", b"Notes", b"corecube_user")), file


@pytest.fixture(scope="module")
def used():
    """What runs scripts in an installation with other data."""
    with new_installation() as environment:
        observer = Observer(environment)
        observer(
            "from django.conf import settings; from corecube.models import User; User.objects.create(username='bob');"
            "folder = settings.CORECUBE_UPLOADS_DIR / '9'; folder.mkdir(parents=True);"
            "(folder / 'mine.txt').write_text('mine')"
        )
        yield observer
        observer.end()


_DATA = """
from django.conf import settings
from corecube.models import User
print(*User.objects.values_list("username", flat=True), (settings.CORECUBE_UPLOADS_DIR / "9" / "mine.txt").read_text())
"""


@pytest.mark.parametrize("kind", ["data", "damaged", "missing", "passphrase", "later", "escaping"])
def test_what_cannot_be_restored_changes_nothing(source, places, used, kind):
    place, options, passphrase = places / kind, ["--replace"], ""
    subprocess.run(["cp", "-a", places / ("sealed" if kind == "passphrase" else "plain"), place], check=True)
    part = max((place / "parts").rglob("*"), key=lambda it: it.stat().st_size if it.is_file() else 0)
    if kind == "data":
        options, problem = [], "--replace"
    elif kind == "damaged":
        content = bytearray(part.read_bytes())
        content[len(content) // 2] ^= 1
        part.write_bytes(content)
        problem = "damaged"
    elif kind == "missing":
        part.unlink()
        problem = "missing"
    elif kind == "passphrase":
        passphrase, problem = "wrong", "passphrase is wrong"
    else:
        change, problem = _CHANGES[kind]
        source(_CHANGE.format(place=str(place), change=change))
    told = used(_SEALED.format(arguments=("restore", str(place), *options), passphrase=passphrase))
    assert problem in told
    assert used(_DATA) == "bob mine\n"


_CHANGE = """
from dataclasses import replace
from datetime import timedelta
from corecube.backup.manifest import FileEntry
from corecube.backup.shelf import Shelf
shelf = Shelf.at({place!r}, "")
found = shelf.manifest(shelf.names()[-1])
shelf.add(replace(found, made_at=found.made_at + timedelta(minutes=1), {change}))
"""
_CHANGES = {
    "later": ("migrations={'corecube': ('9999_later',)}, version='99.0'", "99.0"),
    "escaping": ("files=(FileEntry('../secret_key', found.files[0].content),)", "outside the uploads"),
}


_EARLIER = """
from dataclasses import replace
from django.core.management import call_command
from django.db import connection
from django.utils import timezone
from corecube.backup import tables
from corecube.backup.manifest import Manifest
from corecube.backup.shelf import Shelf
from corecube.models import User
from corecube.secrets import key_ids, own_key
User.objects.create_superuser("carol")
call_command("migrate", "retrieval", "0037", verbosity=0)
shelf = Shelf.at({place!r}, "", is_new=True)
with connection.cursor() as cursor:
    found = [
        tables.Table(name, tuple(it.name for it in connection.introspection.get_table_description(cursor, name)), "")
        for name in connection.introspection.table_names(cursor) if name != "django_migrations"
    ]
with tables.one_moment():
    entries = tuple(tables.read_table(it, shelf.parts()) for it in found)
shelf.add(Manifest(
    format=1, version="0.2.0", postgresql="", made_at=timezone.now(), key_id=key_ids()[0], secret_key=own_key(),
    migrations=tables.read_migrations(), models=(), tables=entries, sequences=(), files=(),
))
"""


@nightly
def test_one_of_an_earlier_version_replaces_a_stopped_installation_and_is_migrated(places):
    place = places / "earlier"
    with new_installation() as earlier:
        run(earlier, "shell", "--verbosity", "0", "-c", _EARLIER.format(place=str(place)))
    with new_installation() as target:
        holder = subprocess.Popen(
            [sys.executable, "-c", _HOLD],
            cwd=settings.BASE_DIR,
            env={**target, "DJANGO_SETTINGS_MODULE": "corecube.settings"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert holder.stdout.readline() == b"connected\n"
        done = manage(target, "restore", str(place), "--replace")
        assert (done.returncode, "Stop all" in done.stderr) == (1, True)
        holder.communicate()
        run(target, "restore", str(place), "--replace")
        observe = Observer(target)
        # All migrations are applied.
        assert "carol" in observe(_USERS)
        assert "Documents: all" in observe.manage("upgrade", "--check")
        observe.end()


_USERS = (
    "from corecube.models import Backup, User; print(*User.objects.values_list('username'), Backup.objects.count())"
)
_HOLD = """
import sys, django
django.setup()
from django.db import connection
connection.ensure_connection()
print("connected", flush=True)
sys.stdin.read()
"""


def test_an_interrupted_backup_is_resumed(places):
    place = places / "resumed"
    with new_installation() as environment:
        observe = Observer(environment)
        observe(FILL)
        uploads = Path(environment["CORECUBE_VAR_DIR"]) / "uploads" / "2"
        for number in range(BIG):
            (uploads / f"{number}.bin").write_bytes(os.urandom(2**20))
        parts = place / "parts"
        killed_when(begun(environment, "backup", str(place), "--fast"), lambda: len(list(parts.rglob("?" * 64))) > BIG)
        written = {it.name: it.stat().st_mtime_ns for it in parts.rglob("?" * 64)}
        assert "no complete backup" in observe(
            _SEALED.format(arguments=("restore", str(place), "--check"), passphrase="")
        )
        observe.manage("backup", str(place), "--fast")
        after = {it.name: it.stat().st_mtime_ns for it in parts.rglob("?" * 64)}
        assert written.items() <= after.items()
        assert len(after) > len(written)
        listed = "from corecube.models import Backup; print(*Backup.objects.values_list('problem', flat=True), sep='|')"
        assert observe(listed).strip() == "|It was interrupted."
        assert "It is whole." in observe.manage("restore", str(place), "--check")
        observe.end()
