"""Which documents a request's conditions on metadata leave, found before the search by the facts they ask about."""

import json
from typing import Any, Final

from corecube.errors import InvalidRequestError
from corecube.scope import AccessScope
from retrieval.engine.metadata_conditions import Conditions
from retrieval.engine.state import MetadataFilter
from retrieval.index import statements
from retrieval.index.reading import read

#: Maximum number of filter fields; a PostgreSQL function has at most 100 arguments.
_MAX_NAMES: Final = 20
#: Different combinations of facts that are looked at.
_LIMIT: Final = 50_000


def metadata_prefilter(conditions: Conditions, *, scope: AccessScope, timeout_seconds: float) -> MetadataFilter:
    """Return what conditions leave of the scope's documents.

    Raises InvalidRequestError for too many facts, or ones of which the scope holds too many different values, and
    SearchTimeoutError.
    """
    names = conditions.names
    if len(names) > _MAX_NAMES:
        raise InvalidRequestError(f"Filters can name at most {_MAX_NAMES} fields.")
    parameters = {"scope": scope.connection_ids, "limit": _LIMIT, **name_parameters(names)}
    rows = read(statements.fact_values(names), parameters, timeout_seconds=timeout_seconds)
    if len(rows) > _LIMIT:
        listed = ", ".join(names)
        raise InvalidRequestError(f"Too many different values to filter by: {listed}. Narrow the scope.")
    found = (row["facts"] for row in rows)
    return MetadataFilter(
        names, tuple(it for it in found if conditions.met_by(dict(zip(names, json.loads(it), strict=True))))
    )


def metadata_parameters(metadata: MetadataFilter | None) -> dict[str, Any]:
    """Return the parameters of a statement that reads only what is kept."""
    return {} if metadata is None else {"metadata": list(metadata.facts), **name_parameters(metadata.names)}


def name_parameters(names: tuple[str, ...]) -> dict[str, str]:
    """Return the names of facts as parameters `fact_1`, `fact_2` ..."""
    return {f"fact_{number}": name for number, name in enumerate(names, start=1)}
