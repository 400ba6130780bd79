"""A test that is marked pure starts no process, opens no model, does not sleep and asks for no database."""

import sys
import threading
import time
from pathlib import Path
from typing import Any, Final

import pytest
from django.conf import settings

_PROCESSES: Final = frozenset({"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"})
_MODELS: Final = str(Path(settings.CORECUBE_MODELS_DIR))
#: Seconds of all sleeps of a pure test together.
_MAX_SLEEP: Final = 0.3
_sleep: Final = time.sleep
#: What the main thread did since the running test began that no pure test does.
_impure: list[str] = []
_slept: list[float] = []


def watch() -> None:
    """Note from now on what is not pure."""
    sys.addaudithook(_hook)
    time.sleep = _noted_sleep


def begin() -> None:
    """Forget what the tests before did."""
    _impure.clear()
    _slept.clear()


def check(item: pytest.Item) -> None:
    """Fail a test that is marked pure and is not."""
    if item.get_closest_marker("pure"):
        database = ["db"] * ("db" in item.funcargs)
        sleep = [f"sleep {sum(_slept):.1f} seconds"] * (sum(_slept) > _MAX_SLEEP)
        if done := dict.fromkeys([*_impure, *database, *sleep]):
            pytest.fail(f"marked pure (by tests/marks.py), but did: {', '.join(done)}", pytrace=False)


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _PROCESSES and _in_main_thread():
        _impure.append(event)
    elif event == "open" and isinstance(arguments[0], str) and arguments[0].startswith(_MODELS):
        _impure.append(f"open {arguments[0]}")


def _noted_sleep(seconds: float) -> None:
    if _in_main_thread():
        _slept.append(seconds)
    _sleep(seconds)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
