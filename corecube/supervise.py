"""Runs several programs together, and restarts those that end."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Final, Self

from corecube.logs import open_log
from corecube.process import end_with_parent

_POLL_SECONDS: Final = 0.2
_LONG_SECONDS: Final = 60.0  #: A program that ends sooner is restarted only a few times in a row.
_MAX_EARLY_RESTARTS: Final = 3
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  #: What requests a stop.


@dataclass(frozen=True, slots=True)
class Program:
    """A program and its log file."""

    name: str
    command: tuple[str, ...]
    log: Path
    stop_signal: signal.Signals = signal.SIGTERM


class StopRequest:
    """A context manager that records Ctrl-C, SIGTERM and a closed terminal; a second one requests an immediate end."""

    def __init__(self) -> None:
        # A plain number, because a signal handler must not use locks.
        self._received = 0
        self._before: dict[int, signal._HANDLER] = {}

    def __enter__(self) -> Self:
        """Handle the signals, except ignored ones (nohup, background jobs)."""
        taken = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        self._before = {number: signal.signal(number, self._receive) for number in taken}
        return self

    def __exit__(self, *_: object) -> None:
        """Restore the previous handlers."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _receive(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 -- a signal handler's arguments
        self._received += 1

    @property
    def is_set(self) -> bool:
        """Whether a stop was requested."""
        return self._received > 0

    @property
    def is_urgent(self) -> bool:
        """Whether an immediate stop was requested."""
        return self._received > 1


class Restarts:
    """Decides whether programs are restarted, and counts early ends."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begun = clock()
        self._started: dict[str, float] = {}
        self._early_ends: dict[str, int] = {}

    def allows(self, program: Program, *, was_killed: bool) -> bool:
        """Return whether a program that has just ended may be restarted, and count the restart."""
        name, now = program.name, self._clock()
        ran_long = now - self._started.get(name, self._begun) >= _LONG_SECONDS
        if name not in self._started and not (ran_long or was_killed):
            return False  # it never started properly; a setting may be wrong
        self._started[name] = now
        self._early_ends[name] = 0 if ran_long else self._early_ends.get(name, 0) + 1
        return self._early_ends[name] <= _MAX_EARLY_RESTARTS


class Team:
    """Programs that run as children of this process, each in its own process group.

    Ctrl-C in the terminal therefore reaches only this process, which then stops the children gracefully.
    """

    def __init__(self) -> None:
        self._children: list[tuple[Program, subprocess.Popen[bytes]]] = []

    def start(self, program: Program, *, folder: Path) -> None:
        """Start a program in this working directory."""
        with open_log(program.log) as output:
            child = subprocess.Popen(  # noqa: S603 -- our own programs
                [*end_with_parent(program.stop_signal), *program.command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                process_group=0,
                cwd=folder,
            )
        self._children.append((program, child))

    def ended(self) -> Program | None:
        """Return a program that has ended, or None."""
        for program, child in self._children:
            if _has_ended(child):
                _reap(child)
                return program
        return None

    def was_killed(self, program: Program) -> bool:
        """Return whether an ended program was killed by a signal."""
        return any(child.returncode < 0 for ended, child in self._children if ended is program)

    def restart(self, program: Program, *, folder: Path) -> None:
        """Restart an ended program."""
        self._children = [entry for entry in self._children if entry[0] is not program]
        self.start(program, folder=folder)

    def stop(self, request: StopRequest, *, grace_seconds: float) -> None:
        """Stop all programs with their children: gracefully first, then by force."""
        for program, child in self._children:
            if not _has_ended(child):
                child.send_signal(program.stop_signal)
        deadline = time.monotonic() + grace_seconds
        while not all(_has_ended(child) for _, child in self._children):
            if time.monotonic() >= deadline or request.is_urgent:
                break
            time.sleep(_POLL_SECONDS)
        for _, child in self._children:
            _reap(child)


@contextmanager
def running(
    programs: Sequence[Program], request: StopRequest, *, folder: Path, grace_seconds: float = 10.0
) -> Iterator[Team]:
    """Run the programs during the block; all have ended when it is left."""
    team = Team()
    try:
        for program in programs:
            team.start(program, folder=folder)
        yield team
    finally:
        team.stop(request, grace_seconds=grace_seconds)


def wait_until(condition: Callable[[], bool], team: Team, request: StopRequest) -> Program | None:
    """Wait for the condition or a stop request and return None, or return a program that has ended."""
    while not (condition() or request.is_set):
        if ended := team.ended():
            return ended
        time.sleep(_POLL_SECONDS)
    return None


def keep_running(
    team: Team, request: StopRequest, *, folder: Path, report: Callable[[Program], None]
) -> Program | None:
    """Restart ended programs until a stop request; `report` is called before each restart.

    Return a program that ends repeatedly or never started properly; else None.
    """
    restarts = Restarts()
    while ended := wait_until(lambda: False, team, request):
        if not restarts.allows(ended, was_killed=team.was_killed(ended)):
            return ended
        report(ended)
        team.restart(ended, folder=folder)
    return None


def _has_ended(child: "subprocess.Popen[bytes]") -> bool:
    """Return whether a child has ended, without reaping it, so that its PID is not reused."""
    if child.returncode is not None or not hasattr(os, "waitid"):
        return child.poll() is not None
    return os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _reap(child: "subprocess.Popen[bytes]") -> None:
    """Kill the process group of a child and reap it, only once, because the PID may be reused later."""
    if child.returncode is None or not hasattr(os, "waitid"):
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
