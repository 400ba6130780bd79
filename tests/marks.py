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
        found |= _marks_of_code(_inner(function))
    return found


@functools.cache
def _marks_of_code(function: Any) -> frozenset[str]:
    names = frozenset(_names(function, set()))
    return frozenset(mark for mark, starts in _NAMES.items() if any(name.startswith(starts) for name in names))


def _inner(function: Any) -> Any:
    """Return what is behind wrappers: of Hypothesis, of decorators, of methods."""
    function = (getattr(function, "hypothesis", None) and function.hypothesis.inner_test) or function
    function = getattr(function, "func", function)
    return inspect.unwrap(getattr(function, "__func__", function))


def _names(value: Any, seen: set[int]) -> Iterator[str]:
    """Yield the names and texts in the code of a function or class, and in that of the tests' own ones that it uses."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, type):
        for member in vars(value).values():
            yield from _names(_inner(member), seen)
    elif inspect.isfunction(value) and value.__code__.co_filename.startswith(_TESTS):
        for code in _codes(value.__code__):
            yield from (it for it in code.co_consts if isinstance(it, str))
            yield from code.co_names
            yield from _referred(code, value.__globals__, seen)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _referred(code: CodeType, scope: dict[str, Any], seen: set[int]) -> Iterator[str]:
    for name in code.co_names:
        value = scope.get(name)
        if isinstance(value, ModuleType):
            yield value.__name__
            yield from (f"{value.__name__}.{attribute}" for attribute in code.co_names)
        elif isinstance(value, Path):
            yield str(value)
        elif module := getattr(value, "__module__", None):
            yield f"{module}.{getattr(value, '__qualname__', name)}"
            yield from _names(_inner(value), seen)
