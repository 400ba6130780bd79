"""What tests of the read models share: waiting until one can follow, and killing a process in the middle of it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from django.db import connection

from retrieval.index import outbox
from retrieval.ingest.sync import sync_connection
from retrieval.models import OutboxEntry

ROOT = Path(__file__).parent.parent
_CHILD = """
import sys, django
from importlib import import_module
from pathlib import Path
django.setup()
from django.conf import settings
from django.db import connection
_, database, module, setting, folder, action = sys.argv
connection.settings_dict["NAME"] = database
setattr(settings, setting, Path(folder))
from retrieval.index import following
following._CHANGES_AT_ONCE = 2
following._DOCUMENTS_AT_ONCE = 2
getattr(import_module(module).follower(), action)(progress=lambda chunks: print(chunks, flush=True))
print("done", flush=True)
"""


def write(world, name, text):
    (world.root / "runbooks" / name).write_text(text)


def wait_for_others():
    """Wait until no transaction of this server, another test's among them, is older than the newest change."""
    until = time.monotonic() + 120
    newest = OutboxEntry.objects.order_by("transaction_id").values_list("transaction_id", flat=True).last() or 0
    while outbox.horizon() <= newest:
        assert time.monotonic() < until
        time.sleep(0.01)


def kill_in_the_middle(world, shelf, settings, *, module, setting, action):
    """Kill a process that takes over 60 new documents, two at a time; the build that is searched stays the same."""
    for number in range(60):
        write(world, f"{number}.md", f"# Note {number}\n\nlamp {number} burns.\n")
    setattr(settings, setting, False)
    sync_connection(world.runbooks)
    before, build = shelf.reader.view(), shelf.folder.current
    wait_for_others()
    folder = f"{setting}_DIR"
    arguments = [connection.settings_dict["NAME"], module, folder, str(getattr(settings, folder)), action]
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "corecube.settings"}
    child = subprocess.Popen(
        [sys.executable, "-c", _CHILD, *arguments], cwd=ROOT, env=environment, stdout=subprocess.PIPE
    )
    if action == "rebuild":
        assert int(child.stdout.readline()) > 0
    else:
        while shelf.reader.view().position == before.position and child.poll() is None:
            time.sleep(0.001)
    os.kill(child.pid, signal.SIGKILL)
    printed = child.stdout.read()
    child.wait()
    child.stdout.close()
    assert b"done" not in printed
    assert shelf.folder.current == build
    if action == "follow":
        assert before.position < shelf.reader.view().position < outbox.horizon() - 1
    else:
        assert shelf.reader.view().position == before.position
