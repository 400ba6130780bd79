"""Marks that come from what a test uses: its fixtures, and the names in its code, its helpers' and its fixtures'.

`pure` is a test that uses none of it: no database, process, model, browser, clock or sleep.
"""

import functools
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final

import pytest
from django.conf import settings

_TESTS: Final = str(Path(__file__).parent)
_FIXTURES: Final = {"database": {"db", "transactional_db", "django_db_setup", "live_server"}, "browser": {"chromium"}}
#: What the names begin with; a module's attribute is written after a dot, a text of the code as it is.
_NAMES: Final = {
    "process": (
        "subprocess",
        "multiprocessing",
        "os.fork",
        "corecube.embedded.server",
        "corecube.embedded.upgrade",
        "corecube.supervise",
        "retrieval.ingest.sandbox.process",
        "retrieval.encoders.fetch.obtain",
    ),
    "server": ("moto.", "oidc_provider_mock"),
    "model": ("CORECUBE_MODELS_DIR", str(settings.CORECUBE_MODELS_DIR)),
    "sleep": ("time.sleep", "asyncio.sleep", "tests.race.until"),
    "timing": ("tests.growth", "time.perf_counter", "time.process_time", "time.thread_time"),
    "redis": ("redis-server",),
    "pgbouncer": ("tests.pooler",),
    "torch": ("needs the torch extra",),
}
_STARTS: Final = tuple(start for starts in _NAMES.values() for start in starts)
#: One quick file of each area that needs more than pure tests do.
_SMOKE: Final = frozenset(
    {
        "tests/corecube/test_access.py",
        "tests/corecube/test_admin.py",
        "tests/explorer/pages/access/test_pages.py",
        "tests/explorer/pages/documents/test_views.py",
        "tests/explorer/pages/evidence/test_views.py",
        "tests/explorer/pages/explorer/test_views.py",
        "tests/explorer/pages/health/test_views.py",
        "tests/retrieval/agents/test_view.py",
        "tests/retrieval/answers/conversations/test_asking.py",
        "tests/retrieval/api/test_leaks.py",
        "tests/retrieval/evaluation/test_runner.py",
        "tests/retrieval/index/test_neighbours.py",
        "tests/retrieval/index/test_scope_condition.py",
        "tests/retrieval/ingest/test_model_change.py",
        "tests/retrieval/operations/test_quality_preview.py",
        "tests/retrieval/presets/consolidated/stages/test_recovery.py",
        "tests/retrieval/presets/helix/stages/test_route.py",
        "tests/retrieval/records/test_judgments.py",
        "tests/retrieval/search/test_configuration.py",
        "tests/retrieval/search/test_languages.py",
        "tests/retrieval/stages/test_fulltext.py",
    }
)


def add_marks(item: pytest.Item) -> None:
    """Give a test the marks of what it uses."""
    found = marks_of(item)
    for name in found or {"pure"}:
        item.add_marker(name)
    if item.location[0] in _SMOKE:
        item.add_marker("smoke")


def marks_of(item: pytest.Item) -> set[str]:
    """Return the marks of what a test uses."""
    fixtures = set(getattr(item, "fixturenames", ()))
    found = {mark for mark, names in _FIXTURES.items() if not names.isdisjoint(fixtures)}
    if item.get_closest_marker("django_db"):
        found.add("database")
    definitions = item._fixtureinfo.name2fixturedefs
    for function in (item.obj, *(definitions[name][-1].func for name in fixtures & definitions.keys())):
        found |= _marks_of(function)
    return found


@functools.cache
def _marks_of(function: Any) -> frozenset[str]:
    return _marks_of_code(_inner(function))


@functools.cache
def _marks_of_code(value: Any) -> frozenset[str]:
    """Return the marks of a function or class, and of the tests' own ones that it uses, directly or not."""
    found: set[str] = set()
    reached, waiting = {value}, [value]
    while waiting:
        marks, used = _own_marks(waiting.pop())
        found |= marks
        waiting += used - reached
        reached |= used
    return frozenset(found)


def _inner(function: Any) -> Any:
    """Return what is behind wrappers: of Hypothesis, of decorators, of methods."""
    function = (getattr(function, "hypothesis", None) and function.hypothesis.inner_test) or function
    function = getattr(function, "func", function)
    return inspect.unwrap(getattr(function, "__func__", function))


@functools.cache
def _own_marks(value: Any) -> tuple[frozenset[str], frozenset[Any]]:
    """Return the marks of what a function's code names, and the functions and classes in the code or in a class."""
    names: set[str] = set()
    used: list[Any] = []
    if isinstance(value, type):
        used += map(_inner, vars(value).values())
    elif _is_ours(value):
        for code in _codes(value.__code__):
            names.update(it for it in code.co_consts if isinstance(it, str))
            names.update(code.co_names)
            used += _add_referred(code, value.__globals__, names)
    telling = [name for name in names if name.startswith(_STARTS)]
    marks = (mark for mark, starts in _NAMES.items() if any(name.startswith(starts) for name in telling))
    return frozenset(marks), frozenset(it for it in used if isinstance(it, type) or _is_ours(it))


def _is_ours(value: Any) -> bool:
    """Whether it is a function of the tests."""
    return inspect.isfunction(value) and value.__code__.co_filename.startswith(_TESTS)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _add_referred(code: CodeType, scope: dict[str, Any], names: set[str]) -> Iterator[Any]:
    """Add what the names of a code refer to to the names, and yield what may have code of its own."""
    for name in code.co_names:
        value = scope.get(name)
        if isinstance(value, ModuleType):
            names.add(value.__name__)
            names.update(f"{value.__name__}.{attribute}" for attribute in code.co_names)
        elif isinstance(value, Path):
            names.add(str(value))
        elif module := getattr(value, "__module__", None):
            names.add(f"{module}.{getattr(value, '__qualname__', name)}")
            yield _inner(value)
