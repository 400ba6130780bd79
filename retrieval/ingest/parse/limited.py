"""Parsing in a process of its own, so that a hostile file costs a time and a memory that are known beforehand."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from types import TracebackType
from typing import IO, Any, Final, Self

from corecube.errors import CoreCubeError
from retrieval.errors import IngestError
from retrieval.ingest.parse.frames import read_document, read_part, write_raw
from retrieval.ingest.types import ParsedDocument, RawDocument

_ROOT: Final = Path(__file__).resolve().parents[3]
_MEBIBYTE: Final = 1024 * 1024
_START_SECONDS: Final = 60.0
_END_SECONDS: Final = 5.0
#: No secret of this process is handed on.
_ENVIRONMENT: Final = {"LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}


class ParserStartError(CoreCubeError):
    """The process that parses files does not start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParseLimits:
    """What parsing one file may cost."""

    seconds: float = 120.0
    #: Address space of the process; 0 for any. Only Linux enforces it.
    mebibytes: int = 2048
    #: Files after which the process is replaced, since libraries leak.
    files: int = 2_000


class LimitedParser:
    """Parses in a child process that is used again and again, and replaced when a file is too much for it.

    The child starts with the first file. It reads no database and no secret, writes no file, and ends with
    the process that started it. One parser serves one thread.
    """

    def __init__(self, limits: ParseLimits | None = None, *, function: str = "retrieval.ingest.parse:parse") -> None:
        """Use `function` ("module:name", from a source item to a document) for parsing."""
        self._limits = limits or ParseLimits()
        self._function = function
        self._child: _Child | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the child; parsing again starts another one."""
        if self._child:
            self._child.end()
            self._child = None

    def parse(self, raw: RawDocument) -> ParsedDocument:
        """Return the document as the function does.

        Raises IngestError as it does, and `too_slow` for a file that takes longer than the limit, `too_large`
        for one that needs more memory, `corrupt` for one that crashes the child; ParserStartError when no
        child can be started.
        """
        child = self._ready_child()
        answer = child.answer(raw, self._limits.seconds)
        is_spent = answer is None or bool(answer.get("is_spent"))
        if is_spent or child.is_late or child.parsed >= self._limits.files:
            self.close()
        if child.is_late and answer is None:
            raise IngestError("too_slow", f"The file takes longer to read than {self._limits.seconds:g} seconds.")
        if is_spent and child.parsed > 1:
            # What a child has read before may have taken its memory or broken it.
            return self.parse(raw)
        return _document(answer)

    def _ready_child(self) -> "_Child":
        if self._child is None:
            self._child = _Child(self._function, self._limits)
        return self._child


class _Child:
    """One parsing process and the pipes to it."""

    def __init__(self, function: str, limits: ParseLimits) -> None:
        #: Files that it was given.
        self.parsed = 0
        #: Whether it was killed for its time.
        self.is_late = False
        command = (sys.executable, "-m", "retrieval.ingest.parse.worker", function)
        self._process = subprocess.Popen(  # noqa: S603 -- the command is ours
            (*command, str(limits.seconds), str(limits.mebibytes * _MEBIBYTE)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=_ROOT,
            env=_ENVIRONMENT | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        if self._exchange(None, _START_SECONDS) is None:
            self.end()
            raise ParserStartError

    def answer(self, raw: RawDocument, seconds: float) -> Mapping[str, Any] | None:
        """Return the process's answer, None when it died or was killed for its time."""
        self.parsed += 1
        return self._exchange(raw, seconds)

    def end(self) -> None:
        """End the process, by force when it does not end with its input."""
        with suppress(OSError):
            self._input.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._output.close()

    def _exchange(self, raw: RawDocument | None, seconds: float) -> Mapping[str, Any] | None:
        """Send an item, if any, and return what the process says within its time."""
        watchdog = Timer(seconds, self._kill)
        watchdog.start()
        try:
            if raw:
                write_raw(self._input, raw)
            answer = json.loads(read_part(self._output))
        except (OSError, EOFError, ValueError):
            return None
        finally:
            watchdog.cancel()
        return answer if isinstance(answer, dict) else None

    def _kill(self) -> None:
        self.is_late = True
        self._process.kill()

    @property
    def _input(self) -> IO[bytes]:
        return _opened(self._process.stdin)

    @property
    def _output(self) -> IO[bytes]:
        return _opened(self._process.stdout)


def _opened(pipe: IO[bytes] | None) -> IO[bytes]:
    """Return a pipe that was asked for when the process was started."""
    if pipe is None:
        raise ParserStartError
    return pipe


def _document(answer: Mapping[str, Any] | None) -> ParsedDocument:
    """Return the document of an answer; raise IngestError for none, a refusal or nonsense."""
    crashed = IngestError("corrupt", "The file makes its parser crash.")
    if answer is None:
        raise crashed
    if "reason" in answer:
        raise IngestError(str(answer["reason"]), str(answer.get("message", "")))
    try:
        return read_document(answer["document"])
    except (KeyError, TypeError, ValueError) as error:
        raise crashed from error
