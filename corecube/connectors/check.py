"""Checks of a connection: of its source, with limits on time and concurrent checks, and of its config by field."""

import logging
from collections.abc import Mapping
from threading import BoundedSemaphore, Event, Thread
from typing import Any, Final

from pydantic import ValidationError

from corecube.connectors import connector_for
from corecube.connectors.kinds import kind_named
from corecube.connectors.setup import FieldError
from corecube.connectors.types import Capability, Connector
from corecube.data import read_toml
from corecube.errors import ConfigError, CoreCubeError
from corecube.models import Connection

logger = logging.getLogger(__name__)

CHECK_SECONDS: Final = 20.0
#: The capabilities that a source needs, in the order of the checks.
STEPS: Final = ("reach", "authenticate", "list", "read")
_MAX_AT_ONCE: Final = 4
_slots = BoundedSemaphore(_MAX_AT_ONCE)
_MESSAGES: Final[Mapping[str, str]] = read_toml("corecube.connectors", "config_errors.toml")
_BOUNDS: Final = frozenset({"ge", "gt", "le", "lt"})


def check_source(
    connection: Connection, secrets: Mapping[str, str] | None = None, *, seconds: float = CHECK_SECONDS
) -> tuple[Capability, ...]:
    """Return the capabilities of a connection's source, checked in order up to the first failure.

    A check that exceeds the time limit has failed. `secrets` replace the stored ones. Raises ConfigError for an
    invalid config.
    """
    connector = connector_for(connection, secrets)
    if connection.kind == "push":
        # It only reads the database, over this thread's connection.
        return tuple(connector.preflight())
    slots = _slots
    if not slots.acquire(blocking=False):
        return (Capability.failed("reach", "Other checks are still running. Try again in a minute."),)
    check = _Check(connector, slots)
    Thread(target=check.run, name="check", daemon=True).start()
    return check.result(seconds)


class _Check:
    """A preflight in a separate thread, which the connector's limits end if the caller no longer waits."""

    def __init__(self, connector: Connector, slots: BoundedSemaphore) -> None:
        self._connector = connector
        self._slots = slots
        self._found: list[Capability] = []
        self._done = Event()

    def run(self) -> None:
        try:
            for capability in self._connector.preflight():
                self._found.append(capability)
        except CoreCubeError as error:
            self._found.append(Capability.failed(self._next(), str(error)))
        except Exception as error:  # noqa: BLE001 -- every failure is reported to the user
            logger.warning("check.failed error=%s", type(error).__name__)
            self._found.append(Capability.failed(self._next(), f"The check failed ({type(error).__name__})."))
        finally:
            self._done.set()
            self._slots.release()

    def result(self, seconds: float) -> tuple[Capability, ...]:
        """Return the checked capabilities, after at most the given time."""
        if self._done.wait(seconds):
            return tuple(self._found)
        return (*self._found, Capability.failed(self._next(), f"The check took longer than {seconds:g} seconds."))

    def _next(self) -> str:
        checked = {capability.name for capability in self._found}
        return next((step for step in STEPS if step not in checked), STEPS[-1])


def config_problems(connection: Connection, secrets: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the problems of a connection's kind, config and secrets by field, without contacting the source.

    The key of a problem without a field is empty. No message contains a secret. `secrets` replace the stored ones.
    """
    try:
        kind_named(connection.kind).model().model_validate(connection.config)
        connector_for(connection, secrets)
    except ValidationError as error:
        found: dict[str, str] = {}
        for detail in error.errors(include_input=False, include_url=False):
            place = detail["loc"]
            field = str(place[0]) if place else ""
            lines = [f"Line {part + 1}: " for part in place[1:2] if isinstance(part, int)]
            limits = {name: _figure(it) if name in _BOUNDS else it for name, it in detail.get("ctx", {}).items()}
            message = _MESSAGES.get(detail["type"])
            text = message.format(**limits) if message else f"{detail['msg']}."
            found.setdefault(field, "".join(lines) + text)
        return found
    except FieldError as error:
        return {error.field: str(error)}
    except ConfigError as error:
        return {"": str(error)}
    return {}


def normal_config(kind: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a valid config in its stored form: JSON without default values."""
    return kind_named(kind).model().model_validate(dict(config)).model_dump(mode="json", exclude_defaults=True)


def _figure(number: float) -> str:
    return f"{int(number):,}" if number == int(number) else str(number)
