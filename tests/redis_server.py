"""Redis servers of the tests' own, and processes that share their state through them."""

import shutil
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager

import pytest
from django.conf import settings
from redis import Redis, exceptions

from corecube.secrets import CacheCipher
from corecube.shared_state.opening import code_digest
from corecube.shared_state.redis_store import RedisStore
from corecube.shared_state.store import provide
from tests.race import until


class RedisServer:
    """A server on a port that was free; it stores nothing on disk."""

    def __init__(self):
        if not shutil.which("redis-server"):
            pytest.skip("redis-server is not installed")
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self._port = probe.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self._port}/0"
        self.client = Redis.from_url(self.url)
        self.begin()

    def begin(self):
        """Start empty, and wait until it answers."""
        self._process = subprocess.Popen(
            ["redis-server", "--port", str(self._port), "--save", "", "--appendonly", "no"], stdout=subprocess.DEVNULL
        )
        until(self._answers)

    def freeze(self):
        """Accept connections and answer nothing."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self):
        """Answer again."""
        self._process.send_signal(signal.SIGCONT)

    def kill(self):
        self._process.kill()
        self._process.wait()
        self.client.close()

    def _answers(self):
        try:
            return self.client.ping()
        except exceptions.ConnectionError:
            return False


@contextmanager
def running_redis():
    """Run a server for the block."""
    server = RedisServer()
    try:
        yield server
    finally:
        server.kill()


@contextmanager
def sharing(url, *, clock=None):
    """Let this process share its state at an address during the block."""
    store = RedisStore(url, CacheCipher(), code=code_digest(), clock=clock)
    provide(lambda: store)
    try:
        yield store
    finally:
        provide(lambda: None)
        store._redis.close()


def other_process(script, url):
    """Start a process of the installation that shares its state at an address, and talks over its pipes."""
    lines = (
        "import os, django",
        "os.environ.setdefault('DJANGO_SETTINGS_MODULE', 'corecube.settings')",
        "from django.conf import settings",
        f"settings.CORECUBE_REDIS_URL, settings.SECRET_KEY = {url!r}, {settings.SECRET_KEY!r}",
        "django.setup()",
    )
    return subprocess.Popen(
        [sys.executable, "-c", "\n".join((*lines, script))],
        cwd=settings.BASE_DIR,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
