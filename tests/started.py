"""`manage.py start` as a process of a test's own, and what one may do to processes."""

import socket
import subprocess
import sys
from pathlib import Path

from django.conf import settings

from tests.environment import environment_of

_USUAL_SIGNALS = """
import os, signal, sys
numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
for number in numbers:
    signal.signal(number, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
os.execvp(sys.argv[1], sys.argv[1:])
"""


def with_usual_signals(*command):
    """Return a command that runs this one as a shell does, whichever signals are ignored where the tests run.

    A job in the background ignores Ctrl-C, nohup a closed terminal, and what they start inherits that.
    """
    return [sys.executable, "-c", _USUAL_SIGNALS, *map(str, command)]


def start_installation(*options, folder, **variables):
    """Start an installation in a folder, with a web server on a port that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    return subprocess.Popen(
        with_usual_signals(sys.executable, "manage.py", "start", "--no-samples", *options),
        cwd=settings.BASE_DIR,
        env=environment_of(folder, CORECUBE_PORT=str(port), **variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def until_ready(process):
    """Return what was printed and the address."""
    printed = []
    for line in process.stdout:
        printed.append(line)
        if "is ready: " in line:
            return "".join(printed), line.split("is ready: ")[1].strip()
    raise AssertionError("".join(printed) + process.stderr.read())


def is_running(pid):
    """Whether the process still does something; one that nobody has collected yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def children(pid):
    """Return the numbers of a process's children that run."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def descendants(pid):
    """Return the numbers of a process's children and of theirs."""
    return [found for child in children(pid) for found in (child, *descendants(child))]


def child_named(pid, name):
    """Return the number of a process's child whose command holds the name; None where there is none."""
    for child in children(pid):
        try:
            command = Path(f"/proc/{child}/cmdline").read_bytes()
        except OSError:
            continue
        if name.encode() in command:
            return child
    return None
