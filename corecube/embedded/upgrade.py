"""Moves the data of an earlier major version of PostgreSQL to that of this release; the earlier data is left beside it.

postgres            the data in use
postgres.upgrading  the new data while pg_upgrade fills it; made anew after an interruption
postgres.upgraded   the new data once it is complete
postgres-16         the earlier data, unchanged
"""

import logging
import os
import pwd
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from corecube.embedded import install
from corecube.errors import DatabaseUnavailableError

logger = logging.getLogger(__name__)

_LAST_LINES: Final = 15  #: Lines of a failed program's output that an error shows.
_GIB: Final = 2**30


def to_this_major(data_dir: Path, account: pwd.struct_passwd) -> None:
    """Bring data of an earlier major version to this release's, with no process of its server left.

    An interrupted move goes on, or begins anew. Raises DatabaseUnavailableError, and leaves the data as it is, for a
    version without programs here, too little space and a failure of pg_upgrade.
    """
    upgraded = data_dir.with_name(f"{data_dir.name}.upgraded")
    major = install.major_of(data_dir)
    if not upgraded.exists() and major not in {"", str(install.MAJOR)}:
        _upgrade(data_dir, upgraded, major, account)
    if upgraded.exists():
        if data_dir.exists():
            data_dir.rename(_free_name(data_dir.with_name(f"{data_dir.name}-{major}")))
        upgraded.rename(data_dir)
        logger.warning("database.upgraded to=%d", install.MAJOR)


def _free_name(path: Path) -> Path:
    number = 1
    found = path
    while found.exists():
        number += 1
        found = path.with_name(f"{path.name}.{number}")
    return found


def _upgrade(data_dir: Path, upgraded: Path, major: str, account: pwd.struct_passwd) -> None:
    """Copy the data into a new directory by pg_upgrade."""
    programs = install.earlier_programs(major)
    if programs is None:
        raise DatabaseUnavailableError(
            f"{data_dir} was created by PostgreSQL {major}, but this release has {install.MAJOR}. "
            "See docs/guides/running.md."
        )
    _require_space(data_dir)
    logger.warning("database.upgrading from=%s to=%d", major, install.MAJOR)
    unfinished = data_dir.with_name(f"{data_dir.name}.upgrading")
    with _reached(data_dir, account) as (old, descriptor):
        facts = _output([programs / "pg_controldata", old], account, data_dir, descriptor)
        if "shut down\n" not in facts:
            _shut_down(programs, old, account, descriptor)
        # Both versions must agree on checksums, which PostgreSQL 18 has by default.
        has_checksums = "page checksum version:           0\n" not in facts
        install.initialize(unfinished, account, f"--{'' if has_checksums else 'no-'}data-checksums")
        with _reached(unfinished, account) as (new, other), _socket_folder(account) as folder:
            pg_upgrade = install.program("pg_upgrade")
            data = f"--old-datadir={old}", f"--new-datadir={new}"
            binaries = f"--old-bindir={programs}", f"--new-bindir={pg_upgrade.parent}"
            options = f"--username={install.SUPERUSER}", f"--socketdir={folder}"
            _output([str(pg_upgrade), *data, *binaries, *options], account, folder, descriptor, other)
    unfinished.rename(upgraded)


def _shut_down(programs: Path, data: str, account: pwd.struct_passwd, descriptor: int) -> None:
    """Let the earlier version recover what a killed server left."""
    with _socket_folder(account) as folder:
        control = str(programs / "pg_ctl"), "--wait", "--timeout=3600", f"--pgdata={data}"
        options = f"--log={folder / 'log'}", f"--options=-k {folder} -c listen_addresses="
        _output([*control, *options, "start"], account, folder, descriptor)
        _output([*control, "--mode=fast", "stop"], account, folder, descriptor)


def _output(command: Sequence[str | Path], account: pwd.struct_passwd, folder: Path, *descriptors: int) -> str:
    """Return the output of a program; raise DatabaseUnavailableError with its end if it fails."""
    done = install.run(command, account, folder, descriptors=[it for it in descriptors if it >= 0])
    if done.returncode:
        end = "\n".join((done.stdout + done.stderr).strip().splitlines()[-_LAST_LINES:])
        failed = f"Its data could not be moved to PostgreSQL {install.MAJOR} and is unchanged."
        raise DatabaseUnavailableError(f"{failed} {Path(command[0]).name}:\n{end}")
    return done.stdout


@contextmanager
def _reached(data_dir: Path, account: pwd.struct_passwd) -> Iterator[tuple[str, int]]:
    """Yield a path of the directory for the server's account, and the open file that it needs, or -1.

    The account may have no access to the parent directories.
    """
    if account.pw_uid == os.geteuid():
        yield str(data_dir), -1
        return
    descriptor = os.open(data_dir, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}", descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _socket_folder(account: pwd.struct_passwd) -> Iterator[Path]:
    """Yield a folder of the server's account whose path is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="corecube-") as name:
        os.chown(name, account.pw_uid, account.pw_gid)
        yield Path(name)


def _require_space(data_dir: Path) -> None:
    needed = sum(it.stat().st_size for it in data_dir.rglob("*") if it.is_file())
    free = shutil.disk_usage(data_dir).free
    if free < needed:
        raise DatabaseUnavailableError(
            f"Moving its data to PostgreSQL {install.MAJOR} needs {needed / _GIB:.1f} GiB of free space; "
            f"{free / _GIB:.1f} GiB are free."
        )
