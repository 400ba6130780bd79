"""Showing a person what a command is doing, one quiet line a step."""

import io
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.core.management.base import OutputWrapper

_WIDTH: Final = 24
_MAX_NOTE_CHARACTERS: Final = 50
_CLEAR_LINE: Final = "\r\x1b[2K"


class Steps:
    """Prints each step with the seconds it took; on a terminal it also shows the step while it runs."""

    def __init__(self, out: OutputWrapper) -> None:
        self._out = out
        self._is_live = out.isatty()

    @contextmanager
    def step(self, title: str) -> Iterator["StepNotes"]:
        """Run a block as one step; what is written to the notes shows beside it while it runs."""
        notes = StepNotes(self, title)
        notes.write("…")
        started = time.perf_counter()
        try:
            yield notes
        except BaseException:
            self._end(f"✗ {title}")
            raise
        self._end(f"✓ {title:<{_WIDTH}}{time.perf_counter() - started:6.1f} s")

    def show(self, line: str) -> None:
        """Show a line until the next one, on a terminal only."""
        if self._is_live:
            self._out.write(f"{_CLEAR_LINE}{line}", ending="")
            self._out.flush()

    def _end(self, line: str) -> None:
        self._out.write(f"{_CLEAR_LINE if self._is_live else ''}  {line}")
        self._out.flush()


class StepNotes(io.TextIOBase):
    """A stream whose last line is shown beside a running step; commands can write their progress to it."""

    def __init__(self, steps: Steps, title: str) -> None:
        self._steps = steps
        self._title = title

    def write(self, text: str) -> int:
        """Show the last line of the text, cut to fit."""
        if words := text.rpartition("\r")[-1].split():
            self._steps.show(f"  · {self._title:<{_WIDTH}}{' '.join(words)[:_MAX_NOTE_CHARACTERS]}")
        return len(text)
