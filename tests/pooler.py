"""PgBouncer in front of a database server, as somebody would run it."""

import os
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from corecube.embedded.install import WORKING_FOLDER
from tests.race import until

_CONFIG = """
[databases]
* = host={host} port=5432 user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
default_pool_size = {size}
max_client_conn = 1000
"""
#: PgBouncer refuses to run as root.
_ACCOUNT = "nobody"


def pgbouncer_program():
    """Return its path; a test that needs it is left out where there is none."""
    path = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    return path or pytest.skip("pgbouncer is not installed")


@contextmanager
def pooler(socket_dir, *, mode, size=60, account=_ACCOUNT):
    """Run PgBouncer in front of the server with this socket; yield its port.

    It works in the socket's folder: its account may not pass through the folders above, which belong to CoreCube alone.
    """
    program = pgbouncer_program()
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="corecube-test-") as name:
        config = Path(name) / "pgbouncer.ini"
        config.write_text(_CONFIG.format(host=WORKING_FOLDER, port=port, mode=mode, size=size))
        Path(name).chmod(0o755)
        user = ["--user", account] if os.geteuid() == 0 else []
        command = [program, "--quiet", *user, str(config)]
        with subprocess.Popen(command, cwd=socket_dir, stderr=subprocess.DEVNULL) as process:
            try:
                until(lambda: answers(port) or process.poll() is not None, seconds=60)
                assert process.poll() is None
                yield port
            finally:
                process.kill()


def answers(port):
    """Whether somebody listens there."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
