"""Running a few programs together, and again when one of them ends."""

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
#: A program that ran for so long was well; one that ends sooner is started again so many times in a row.
_LONG_SECONDS: Final = 60.0
_MAX_QUICK_RESTARTS: Final = 3
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class Program:
    """A program to run beside others, and the file that its output goes to."""

    name: str
    command: tuple[str, ...]
    log: Path
    #: What asks it to end in good order.
    stop_signal: signal.Signals = signal.SIGTERM


class StopRequest:
    """Set by Ctrl-C, by SIGTERM and by a closed terminal, between entering and leaving it.

    A second signal says that there is no time to end in good order.
    """

    def __init__(self) -> None:
        # A plain number: a handler may interrupt anything, so it must not take a lock.
        self._received = 0
        self._before: dict[int, signal._HANDLER] = {}

    def __enter__(self) -> Self:
        """Take over the signals, except those that the caller chose to ignore (nohup, a job in the background)."""
        taken = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        self._before = {number: signal.signal(number, self._receive) for number in taken}
        return self

    def __exit__(self, *_: object) -> None:
        """Give the signals back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _receive(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 -- a signal handler's arguments
        self._received += 1

    @property
    def has_come(self) -> bool:
        """Whether it was asked for."""
        return self._received > 0

    @property
    def is_urgent(self) -> bool:
        """Whether it was asked for again."""
        return self._received > 1


class Restarts:
    """Decides whether programs that ended are started again, and counts those that end soon after their start."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begun = clock()
        self._started: dict[str, float] = {}
        self._quick_ends: dict[str, int] = {}

    def allows(self, program: Program, *, was_killed: bool) -> bool:
        """Return whether a program that has just ended may be started again, and count that it is."""
        name, now = program.name, self._clock()
        ran_long = now - self._started.get(name, self._begun) >= _LONG_SECONDS
        if name not in self._started and not (ran_long or was_killed):
            return False  # it never came up: a setting may be wrong
        self._started[name] = now
        self._quick_ends[name] = 0 if ran_long else self._quick_ends.get(name, 0) + 1
        return self._quick_ends[name] <= _MAX_QUICK_RESTARTS


class Team:
    """Programs that run as children of this process, each in a process group of its own.

    Ctrl-C in the terminal therefore reaches only this process, which then stops the children in good order.
    """

    def __init__(self) -> None:
        self._children: list[tuple[Program, subprocess.Popen[bytes]]] = []

    def start(self, program: Program, *, folder: Path) -> None:
        """Start one more program in this working directory."""
        self._children.append((program, _start(program, folder)))

    def ended(self) -> Program | None:
        """Return a program that does not run any more, or None."""
        for program, child in self._children:
            if _has_ended(child):
                _collect(child)
                return program
        return None

    def was_killed(self, program: Program) -> bool:
        """Return whether a program that does not run any more was ended by a signal."""
        return any(child.returncode < 0 for ended, child in self._children if ended is program)

    def start_again(self, program: Program, *, folder: Path) -> None:
        """Start a program again that has ended."""
        self._children = [entry for entry in self._children if entry[0] is not program]
        self.start(program, folder=folder)

    def stop(self, request: StopRequest, *, grace_seconds: float) -> None:
        """End every program and all that it started: politely first, by force when the grace is over."""
        for program, child in self._children:
            if not _has_ended(child):
                child.send_signal(program.stop_signal)
        deadline = time.monotonic() + grace_seconds
        while self._any_running() and time.monotonic() < deadline and not request.is_urgent:
            time.sleep(_POLL_SECONDS)
        for _, child in self._children:
            _collect(child)

    def _any_running(self) -> bool:
        return not all(_has_ended(child) for _, child in self._children)


@contextmanager
def running(
    programs: Sequence[Program], request: StopRequest, *, folder: Path, grace_seconds: float = 10.0
) -> Iterator[Team]:
    """Run the programs while the block runs; they have all ended when it is left, however it is left."""
    team = Team()
    try:
        for program in programs:
            team.start(program, folder=folder)
        yield team
    finally:
        team.stop(request, grace_seconds=grace_seconds)


def wait_until(condition: Callable[[], bool], team: Team, request: StopRequest) -> Program | None:
    """Return None once the condition holds or a stop was asked for, or else the program that has ended."""
    while not (condition() or request.has_come):
        if ended := team.ended():
            return ended
        time.sleep(_POLL_SECONDS)
    return None


def keep_running(team: Team, request: StopRequest, *, folder: Path, tell: Callable[[Program], None]) -> Program | None:
    """Start programs again that end, until a stop is asked for; `tell` is called with each before.

    Return a program that ends again and again, or that never came up; else None.
    """
    restarts = Restarts()
    while ended := wait_until(lambda: False, team, request):
        if not restarts.allows(ended, was_killed=team.was_killed(ended)):
            return ended
        tell(ended)
        team.start_again(ended, folder=folder)
    return None


def _start(program: Program, folder: Path) -> "subprocess.Popen[bytes]":
    with open_log(program.log) as output:
        return subprocess.Popen(  # noqa: S603 -- our own programs
            [*end_with_parent(program.stop_signal), *program.command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            process_group=0,
            cwd=folder,
        )


def _has_ended(child: "subprocess.Popen[bytes]") -> bool:
    """Return whether a child has ended; it is not collected, so that its number stays its own."""
    if child.returncode is not None or not hasattr(os, "waitid"):
        return child.poll() is not None
    return os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _collect(child: "subprocess.Popen[bytes]") -> None:
    """Kill what is left of a child and of all that it started, once: later its number may be another group's."""
    if child.returncode is None or not hasattr(os, "waitid"):
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
