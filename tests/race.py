"""Several threads at once: two transactions, a call in another one, and waiting for what another does."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from django.db import connection, transaction

_WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


def race(first, second):
    """Do the first within a transaction, the second beside it, and commit once that waits; return what it ends with."""
    ended = []

    def run():
        try:
            ended.append(second())
        except Exception as error:  # noqa: BLE001 -- looked at by the test
            ended.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    with transaction.atomic():
        first()
        thread.start()
        _await_waiting(thread)
    thread.join(10)
    return ended[0]


def beside(call):
    """Return what a call returns, made in another thread if this one runs the browser's event loop.

    Within a running loop no answer can be written.
    """
    if asyncio._get_running_loop() is None:
        return call()

    def run():
        try:
            return call()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(run).result()


def _await_waiting(thread):
    with connection.cursor() as cursor:
        for _ in range(500):
            cursor.execute("SELECT pg_stat_clear_snapshot()")
            cursor.execute(_WAITING)
            if not thread.is_alive() or cursor.fetchone()[0]:
                return
            time.sleep(0.01)


def until(condition, seconds=10.0):
    """Wait until a condition holds; what takes longer is looked at less often, since a look takes time from it."""
    began = time.monotonic()
    while not condition():
        waited = time.monotonic() - began
        assert waited < seconds
        time.sleep(min(max(0.001, waited / 20), 0.25))
