"""Trying a source while somebody waits."""

import threading
import time

import pytest

from corecube.connectors import check as module
from corecube.connectors.check import check_source
from corecube.connectors.types import Capability
from corecube.errors import ConfigError, UnavailableError
from corecube.models import Connection


class Slow:
    """A connector that says one thing and then what the test lets it do."""

    def __init__(self, then):
        self.then = then

    def preflight(self):
        yield Capability.passed("reach", "There.")
        yield from self.then() or ()


@pytest.fixture
def source(monkeypatch):
    """Return a function that lets a source do something after it was reached."""

    def put(then):
        monkeypatch.setattr(module, "connector_for", lambda *_: Slow(then))
        return Connection(kind="git", slug="x")

    return put


def test_what_was_found_is_returned_in_order(source):
    it = source(lambda: [Capability.passed("authenticate", "Known."), Capability.failed("list", "Refused.")])
    assert [(found.name, found.ok) for found in check_source(it)] == [
        ("reach", True),
        ("authenticate", True),
        ("list", False),
    ]


def test_it_ends_in_time_whatever_the_source_does(source):
    over = threading.Event()
    it = source(lambda: over.wait(10) and None)
    began = time.monotonic()
    found = check_source(it, seconds=0.1)
    assert time.monotonic() - began < 5
    assert [(one.name, one.ok, one.message) for one in found] == [
        ("reach", True, "There."),
        ("authenticate", False, "The check took longer than 0.1 seconds."),
    ]
    over.set()


def test_only_so_many_are_tried_at_once(source, monkeypatch):
    monkeypatch.setattr(module, "_slots", threading.BoundedSemaphore(1))
    over = threading.Event()
    it = source(lambda: over.wait(10) and None)
    check_source(it, seconds=0.05)
    assert "still running" in check_source(it)[0].message
    over.set()
    for _ in range(100):
        if check_source(it)[0].ok:
            break
        time.sleep(0.02)
    else:
        pytest.fail("The slot was never given back.")


@pytest.mark.parametrize(
    ("error", "message"),
    [(UnavailableError("The server is busy."), "The server is busy."), (KeyError("zanzibar"), "(KeyError)")],
)
def test_an_error_is_said_at_the_step_that_was_next(source, error, message, caplog):
    def fail():
        raise error

    found = check_source(source(fail))
    assert (found[1].name, found[1].ok) == ("authenticate", False)
    assert message in found[1].message
    assert "zanzibar" not in found[1].message + caplog.text


def test_a_config_that_cannot_be_is_an_error():
    with pytest.raises(ConfigError):
        check_source(Connection(kind="folder", slug="x", config={}))
