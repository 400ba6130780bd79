"""Display of the steps of a start."""

import io
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TextIO

_WIDTH: Final = 24
_MAX_NOTE_CHARACTERS: Final = 50
_CLEAR_LINE: Final = "\r\x1b[2K"


class Steps:
    """Prints each step with its duration; a terminal also shows the running step."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._is_live = out.isatty()

    @contextmanager
    def step(self, title: str) -> Iterator["StepNotes"]:
        """Run a block as one step; the notes show progress next to the title."""
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
        """Show a temporary line, on a terminal only."""
        if self._is_live:
            self._out.write(f"{_CLEAR_LINE}{line}")
            self._out.flush()

    def _end(self, line: str) -> None:
        self._out.write(f"{_CLEAR_LINE if self._is_live else ''}  {line}\n")
        self._out.flush()


class StepNotes(io.TextIOBase):
    """A stream for the progress of a running step; its last line is shown."""

    def __init__(self, steps: Steps, title: str) -> None:
        self._steps = steps
        self._title = title

    def write(self, text: str) -> int:
        """Show the last line of the text, truncated."""
        if words := text.rpartition("\r")[-1].split():
            self._steps.show(f"  · {self._title:<{_WIDTH}}{' '.join(words)[:_MAX_NOTE_CHARACTERS]}")
        return len(text)
