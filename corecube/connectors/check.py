"""Trying a source while somebody waits: within a time limit, and only so many at once."""

import logging
from collections.abc import Mapping
from threading import BoundedSemaphore, Event, Lock, Thread
from typing import Final

from corecube.connectors import connector_for
from corecube.connectors.types import Capability, ProbedConnector
from corecube.errors import CoreCubeError
from corecube.models import Connection

logger = logging.getLogger(__name__)

CHECK_SECONDS: Final = 20.0
#: What a source must allow, in the order in which it is needed.
STEPS: Final = ("reach", "authenticate", "list", "read")
_MAX_AT_ONCE: Final = 4
_slots = BoundedSemaphore(_MAX_AT_ONCE)


def check_source(
    connection: Connection, secrets: Mapping[str, str] | None = None, *, seconds: float = CHECK_SECONDS
) -> tuple[Capability, ...]:
    """Return what a connection's source allows, tried in order; what could not be tried in time has failed.

    It ends with the first that is missing. `secrets` stand in for the stored ones. Raises ConfigError for a config
    that no source could be read with.
    """
    connector = connector_for(connection, secrets)
    if connection.kind == "push":
        # It asks the database, which this thread has a connection to, and nothing that could keep it waiting.
        return tuple(connector.preflight())
    slots = _slots
    if not slots.acquire(blocking=False):
        return (Capability.failed("reach", "Other checks are still at work. Try again in a minute."),)
    trial = _Trial(connector, slots)
    Thread(target=trial.run, name="check", daemon=True).start()
    return trial.result(seconds)


class _Trial:
    """A preflight in a thread of its own, which ends by the connector's own limits when nobody waits any more."""

    def __init__(self, connector: ProbedConnector, slots: BoundedSemaphore) -> None:
        self._connector = connector
        self._slots = slots
        self._found: list[Capability] = []
        self._lock = Lock()
        self._done = Event()

    def run(self) -> None:
        try:
            for capability in self._connector.preflight():
                self._add(capability)
        except CoreCubeError as error:
            self._add(Capability.failed(self._next(), str(error)))
        except Exception as error:  # noqa: BLE001 -- whatever is wrong is said to the one who waits
            logger.warning("check.failed error=%s", type(error).__name__)
            self._add(Capability.failed(self._next(), f"It could not be tried ({type(error).__name__})."))
        finally:
            self._done.set()
            self._slots.release()

    def result(self, seconds: float) -> tuple[Capability, ...]:
        """Return what was found after so many seconds at most."""
        in_time = self._done.wait(seconds)
        with self._lock:
            found = tuple(self._found)
        if in_time:
            return found
        return (*found, Capability.failed(self._next(), f"It took longer than {seconds:g} seconds."))

    def _add(self, capability: Capability) -> None:
        with self._lock:
            self._found.append(capability)

    def _next(self) -> str:
        """Return the step after the last that was tried."""
        tried = {capability.name for capability in self._found}
        return next((step for step in STEPS if step not in tried), STEPS[-1])
