"""The one condition that limits a statement to what its principal may see. Nothing else writes it.

A statement names the column of a table's connection, `{in scope: chunk.connection_id}`; its parameter `scope` holds the
connections of an AccessScope. Deny by default: no connection, no rows.
"""

import re
from typing import Final

_PLACE: Final = re.compile(r"\{in scope: ([\w.]+)\}")
#: What `with_scope` writes, also where a planner is kept from an index over the column.
CONDITION: Final = re.compile(r"connection_id(?: \+ 0)? = ANY\(%\(scope\)s\)")


def scope_condition(column: str) -> str:
    """Return the condition on the column of a row's connection."""
    return f"{column} = ANY(%(scope)s)"


def with_scope(sql: str) -> str:
    """Return a statement with the condition at every place that asks for it."""
    return _PLACE.sub(lambda found: scope_condition(found[1]), sql)
