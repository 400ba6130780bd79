"""A migrated database and a migrated server's data, made once for all runs with the same migrations, to copy from."""

import functools
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import django
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from corecube.embedded.install import MAJOR
from corecube.process import exclusive
from tests.environment import environment_of, wait_for_end_of_server

_DATABASES: Final = "test_migrated_"
_FOLDERS: Final = "migrated-"


def migrated_database() -> str:
    """Return the name of a database that new ones are copied from."""
    name = _DATABASES + _version()
    with _one_at_a_time():
        if name not in (databases := _databases()):
            for old in databases:
                _run(f'DROP DATABASE "{old}" WITH (FORCE)')
            _make_database(name)
    return name


def copy_migrated_server(folder: Path) -> None:
    """Give an installation's folder the data of a server whose database is migrated."""
    with _one_at_a_time():
        made = settings.CORECUBE_VAR_DIR / f"{_FOLDERS}{_version()}"
        if not made.exists():
            for old in made.parent.glob(f"{_FOLDERS}*"):
                shutil.rmtree(old)
            _make_server(made)
    # The data belongs to the server's account.
    subprocess.run(["cp", "-a", made / "postgres", folder], check=True)


def _one_at_a_time():
    return exclusive(settings.CORECUBE_VAR_DIR / "migrated.lock")


@functools.cache
def _version() -> str:
    """Return a digest of all migrations, of Django and of the server's release."""
    digest = hashlib.sha256(f"{django.VERSION} {MAJOR}".encode())
    for _, migration in sorted(MigrationLoader(None).disk_migrations.items()):
        digest.update(Path(sys.modules[migration.__module__].__file__).read_bytes())
    return digest.hexdigest()[:12]


def _databases() -> list[str]:
    with connection._nodb_cursor() as cursor:
        cursor.execute("SELECT datname FROM pg_database WHERE datname LIKE %s", [f"{_DATABASES}%"])
        return [name for (name,) in cursor.fetchall()]


def _run(statement: str) -> None:
    with connection._nodb_cursor() as cursor:
        cursor.execute(statement)


def _make_database(name: str) -> None:
    unfinished, before = f"{_DATABASES}unfinished", connection.settings_dict["NAME"]
    _run(f'CREATE DATABASE "{unfinished}"')
    connection.settings_dict["NAME"] = unfinished
    try:
        call_command("migrate", verbosity=0, interactive=False, skip_checks=True)
    finally:
        connection.close()
        connection.close_pool()
        connection.settings_dict["NAME"] = before
    _run(f'ALTER DATABASE "{unfinished}" RENAME TO "{name}"')


def _make_server(folder: Path) -> None:
    unfinished = folder.with_name(f"{_FOLDERS}unfinished")
    unfinished.mkdir(mode=0o700)
    command = [sys.executable, "manage.py", "migrate", "--verbosity", "0", "--skip-checks"]
    subprocess.run(command, cwd=settings.BASE_DIR, env=environment_of(unfinished), check=True)
    wait_for_end_of_server(unfinished)
    unfinished.rename(folder)
