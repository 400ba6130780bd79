"""Supervision with real processes: a supervisor of its own, with small children that write their numbers down."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

CHILD = "import os, pathlib, sys, time; pathlib.Path(sys.argv[1]).write_text(str(os.getpid())); {}"
SUPERVISOR = """
import signal, sys
from pathlib import Path
from corecube.supervise import Program, StopRequest, running, wait_until

folder = Path(sys.argv[1])
children = sys.argv[2:]

def program(number, code):
    name = f"child{number}"
    return Program(name, (sys.executable, "-c", code, str(folder / f"{name}.pid")), folder / f"{name}.log")

def all_ready():
    pids = [folder / f"child{n}.pid" for n in range(len(children))]
    return all(pid.exists() and pid.read_text() for pid in pids)

with StopRequest() as request:
    programs = [program(*pair) for pair in enumerate(children)]
    with running(programs, request, folder=folder, grace_seconds=GRACE) as team:
        ended = wait_until(all_ready, team, request)
        print("ready", flush=True)
        ended = ended or wait_until(lambda: False, team, request)
    print(ended.name if ended else "asked", flush=True)
"""
SLEEPS = CHILD.format("time.sleep(600)")
ENDS = CHILD.format("time.sleep(0.5); print('bye')")
DEAF = CHILD.format("import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)")
PARENT = CHILD.format(
    "import subprocess; g = subprocess.Popen(['sleep', '600']); pathlib.Path(sys.argv[1]).with_suffix('.grand')"
    ".write_text(str(g.pid)); time.sleep(600)"
)


@pytest.fixture
def supervise(tmp_path):
    """Start a supervisor of these children and wait until they run."""
    started = []

    def start(*children, grace=30):
        code = SUPERVISOR.replace("GRACE", str(grace))
        process = subprocess.Popen(
            [sys.executable, "-c", code, tmp_path, *children], stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        started.append(process)
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def pids(folder, suffix="pid"):
    return [int(text) for path in Path(folder).glob(f"*.{suffix}") if (text := path.read_text())]


def is_running(pid):
    """Whether the process still does something; one that nobody has collected yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_every_child(supervise, tmp_path, number):
    process = supervise(SLEEPS, SLEEPS)
    process.send_signal(number)
    assert process.stdout.read() == "asked\n"
    assert process.wait() == 0
    assert len(pids(tmp_path)) == 2
    assert not any(is_running(pid) for pid in pids(tmp_path))


def test_a_child_that_ends_by_itself_is_named_and_stops_the_rest(supervise, tmp_path):
    process = supervise(SLEEPS, ENDS)
    assert process.stdout.read() == "child1\n"
    assert not any(is_running(pid) for pid in pids(tmp_path))
    assert (tmp_path / "child1.log").read_text() == "bye\n"


def test_a_child_that_does_not_listen_is_killed_when_the_grace_is_over(supervise, tmp_path):
    process = supervise(DEAF, grace=0.1)
    process.send_signal(signal.SIGINT)
    assert process.wait() == 0
    assert not is_running(*pids(tmp_path))


def test_a_second_signal_ends_the_grace(supervise, tmp_path):
    process = supervise(DEAF, grace=100_000)
    while process.poll() is None:  # two that come at once may count as one
        process.send_signal(signal.SIGINT)
        time.sleep(0.05)
    assert not is_running(*pids(tmp_path))


def test_what_a_child_started_ends_with_it(supervise, tmp_path):
    process = supervise(PARENT)
    while not pids(tmp_path, "grand"):
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 0
    assert not is_running(*pids(tmp_path, "grand"))


def test_ctrl_c_reaches_the_children_through_the_supervisor_alone(supervise, tmp_path):
    process = supervise(SLEEPS)
    assert os.getpgid(*pids(tmp_path)) != os.getpgid(process.pid)


def test_a_bystander_is_left_alone(supervise):
    with subprocess.Popen(["sleep", "600"]) as bystander:
        process = supervise(SLEEPS)
        process.send_signal(signal.SIGINT)
        process.wait()
        assert bystander.poll() is None
        bystander.kill()
