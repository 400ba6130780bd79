"""Statements that each connection to the database plans once: planning takes longer than many of them run."""

import re
from functools import cached_property
from typing import Any, Final
from weakref import WeakKeyDictionary

_PARAMETER: Final = re.compile(r"%\((\w+)\)s")
#: What runs each of the statements that a connection has prepared.
_RUNS: Final = WeakKeyDictionary[Any, dict[str, str]]()


class Prepared(str):  # noqa: SLOT000 -- what is worked out of the text is kept beside it
    """A statement with named parameters, each of one type, that one plan serves whatever it is given.

    A text made of it, by a filter say, is none.
    """

    @cached_property
    def numbered(self) -> str:
        """The text with its parameters by number, as PREPARE takes it."""
        places = {name: f"${place}" for place, name in enumerate(self._names, start=1)}
        return _PARAMETER.sub(lambda found: places[found[1]], self).replace("%%", "%")

    @cached_property
    def arguments(self) -> str:
        """The parameters in the order of their numbers, as EXECUTE takes them; empty where it takes none."""
        return f"({', '.join(f'%({name})s' for name in self._names)})" if self._names else ""

    @cached_property
    def _names(self) -> list[str]:
        return list(dict.fromkeys(_PARAMETER.findall(self)))


def execution(cursor: Any, sql: Prepared) -> str:  # noqa: ANN401 -- Django's cursor wrapper has no public type
    """Return what runs a statement, with its parameters, on a cursor's connection, prepared there if it was not yet."""
    runs = _RUNS.setdefault(cursor.connection, {})
    if sql not in runs:
        name = f"corecube_{len(runs)}"
        cursor.execute(f"PREPARE {name} AS {sql.numbered}")
        runs[sql] = f"EXECUTE {name} {sql.arguments}"
    return runs[sql]
