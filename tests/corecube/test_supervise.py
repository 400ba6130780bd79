"""Supervision with real processes: a supervisor of its own, with small children that write their numbers down."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from corecube.supervise import Program, Restarts
from tests.race import until
from tests.started import is_running, with_usual_signals

CHILD = "import os, pathlib, sys, time; pathlib.Path(sys.argv[1]).write_text(str(os.getpid())); {}"
SUPERVISOR = """
import signal, sys
from pathlib import Path
from corecube.supervise import Program, StopRequest, keep_running, running, wait_until

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
        ended = ended or LATER
    print(ended.name if ended else "asked", flush=True)
"""
STOPS = "wait_until(lambda: False, team, request)"
STARTS_AGAIN = "keep_running(team, request, folder=folder, report=lambda it: print('again', it.name, flush=True))"
SLEEPS = CHILD.format("time.sleep(600)")
ENDS = CHILD.format("time.sleep(0.5); print('bye')")
KILLED = CHILD.format("import signal; time.sleep(0.5); os.kill(os.getpid(), signal.SIGKILL)")
DEAF = CHILD.format("import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)")
PARENT = CHILD.format(
    "import subprocess; g = subprocess.Popen(['sleep', '600']); pathlib.Path(sys.argv[1]).with_suffix('.grand')"
    ".write_text(str(g.pid)); time.sleep(600)"
)


@pytest.fixture
def supervise(tmp_path):
    """Start a supervisor of these children and wait until they run."""
    started = []

    def start(*children, grace=30, later=STOPS):
        code = SUPERVISOR.replace("GRACE", str(grace)).replace("LATER", later)
        process = subprocess.Popen(
            with_usual_signals(sys.executable, "-c", code, tmp_path, *children),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
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


def killed(folder, name):
    """Kill a child and return its number."""
    pid = int((folder / f"{name}.pid").read_text())
    os.kill(pid, signal.SIGKILL)
    return pid


def test_a_killed_child_is_started_again_and_the_others_are_left_alone(supervise, tmp_path):
    process = supervise(SLEEPS, SLEEPS, later=STARTS_AGAIN)
    other = (tmp_path / "child0.pid").read_text()
    before = killed(tmp_path, "child1")
    assert process.stdout.readline() == "again child1\n"
    until(lambda: (tmp_path / "child1.pid").read_text() not in {"", str(before)}, seconds=60)
    assert is_running(int(other))
    assert (tmp_path / "child0.pid").read_text() == other
    process.send_signal(signal.SIGINT)
    assert process.stdout.read() == "asked\n"
    assert not any(is_running(pid) for pid in pids(tmp_path))


def test_what_a_killed_child_had_started_is_gone_before_it_is_started_again(supervise, tmp_path):
    process = supervise(PARENT, later=STARTS_AGAIN)
    until(lambda: pids(tmp_path, "grand"), seconds=60)
    (grandchild,) = pids(tmp_path, "grand")
    killed(tmp_path, "child0")
    assert process.stdout.readline() == "again child0\n"
    until(lambda: pids(tmp_path, "grand") not in ([], [grandchild]), seconds=60)
    assert not is_running(grandchild)
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 0
    assert not is_running(*pids(tmp_path, "grand"))


def test_a_child_that_is_killed_again_and_again_is_given_up(supervise, tmp_path):
    process = supervise(SLEEPS, KILLED, later=STARTS_AGAIN)
    assert process.stdout.read() == "again child1\n" * 3 + "child1\n"
    assert not any(is_running(pid) for pid in pids(tmp_path))


def test_a_child_that_never_came_up_is_not_started_again(supervise):
    process = supervise(SLEEPS, ENDS, later=STARTS_AGAIN)
    assert process.stdout.read() == "child1\n"


def test_a_child_that_was_well_for_a_minute_may_end_as_often_as_it_likes():
    now = 0.0
    restarts = Restarts(clock=lambda: now)
    program = Program("web", (), Path())
    for _ in range(10):
        now += 61
        assert restarts.allows(program, was_killed=False)
    quick = []
    for _ in range(4):
        now += 1
        quick.append(restarts.allows(program, was_killed=False))
    assert quick == [True, True, True, False]
