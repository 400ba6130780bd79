"""Problems of a connection's config by field, worded for the person who fills it in."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from corecube.connectors import connector_for
from corecube.connectors.kinds import kind_named
from corecube.connectors.setup import FieldError
from corecube.errors import ConfigError
from corecube.models import Connection

#: Messages by pydantic's type of error; other types use pydantic's message.
_MESSAGES: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "missing": lambda _: "This field is required.",
    "extra_forbidden": lambda _: "This field does not exist.",
    "greater_than_equal": lambda limit: f"It must be at least {_figure(limit['ge'])}.",
    "greater_than": lambda limit: f"It must be more than {_figure(limit['gt'])}.",
    "less_than_equal": lambda limit: f"It must be at most {_figure(limit['le'])}.",
    "less_than": lambda limit: f"It must be less than {_figure(limit['lt'])}.",
    "string_too_short": lambda limit: f"It needs at least {limit['min_length']} characters.",
    "string_too_long": lambda limit: f"It has more than {limit['max_length']} characters.",
    "string_pattern_mismatch": lambda _: "It contains an invalid character.",
    "too_short": lambda limit: f"It needs at least {limit['min_length']} line.",
    "too_long": lambda limit: f"It has more than {limit['max_length']} lines.",
    "literal_error": lambda limit: f"It must be {limit['expected']}.",
    "int_type": lambda _: "It must be a whole number.",
    "int_parsing": lambda _: "It must be a whole number.",
    "int_from_float": lambda _: "It must be a whole number.",
    "float_type": lambda _: "It must be a number.",
    "float_parsing": lambda _: "It must be a number.",
    "bool_type": lambda _: "It must be true or false.",
    "bool_parsing": lambda _: "It must be true or false.",
    "tuple_type": lambda _: "It must be a list.",
    "string_type": lambda _: "It must be text.",
    "ip_any_network": lambda _: "It is not a network. Write it as 10.20.0.0/16.",
}


def config_problems(connection: Connection, secrets: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the problems of a connection's kind, config and secrets by field, without contacting the source.

    The key of a problem without a field is empty. No message contains a secret. `secrets` replace the stored ones.
    """
    try:
        kind_named(connection.kind).model().model_validate(connection.config)
        connector_for(connection, secrets)
    except ValidationError as error:
        return _by_field(error)
    except FieldError as error:
        return {error.field: str(error)}
    except ConfigError as error:
        return {"": str(error)}
    return {}


def normal_config(kind: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a valid config in its stored form: JSON without default values."""
    return kind_named(kind).model().model_validate(dict(config)).model_dump(mode="json", exclude_defaults=True)


def _by_field(error: ValidationError) -> dict[str, str]:
    found: dict[str, str] = {}
    for detail in error.errors(include_input=False, include_url=False):
        place = detail["loc"]
        field = str(place[0]) if place else ""
        lines = [f"Line {part + 1}: " for part in place[1:2] if isinstance(part, int)]
        found.setdefault(field, "".join(lines) + _message(detail))
    return found


def _figure(number: float) -> str:
    return f"{int(number):,}" if number == int(number) else str(number)


def _message(detail: ErrorDetails) -> str:
    message = _MESSAGES.get(detail["type"])
    return message(detail.get("ctx", {})) if message else f"{detail['msg']}."
