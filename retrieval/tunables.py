"""Tunables: configuration that declares its default, bounds, unit and help in one place.

Forms and `docs/configuration.md` are made from the declarations, and a value out of its bounds cannot exist.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any

from corecube.errors import ConfigError


@dataclass(frozen=True, slots=True)
class TunableFacts:
    """What a tunable's declaration says, for forms and documentation."""

    name: str
    default: float
    low: float
    high: float
    unit: str
    help: str
    #: Whether more of it costs time or memory: a request may then only lower it.
    costs: bool


def tunable(
    default: Any,  # noqa: ANN401 -- like dataclasses.field
    *,
    low: float,
    high: float,
    unit: str,
    help: str,  # noqa: A002 -- like dataclasses.field
    costs: bool = False,
) -> Any:  # noqa: ANN401 -- like dataclasses.field
    """Declare a number within `low` to `high`, both allowed; more of one that `costs` takes time or memory."""
    return field(default=default, metadata={"low": low, "high": high, "unit": unit, "help": help, "costs": costs})


@dataclass(frozen=True, slots=True, kw_only=True)
class Tunables:
    """Base of the config dataclasses; checks every bound when made."""

    def __post_init__(self) -> None:
        """Raise ConfigError for a value out of its bounds."""
        for facts in self.declared():
            value = getattr(self, facts.name)
            if not facts.low <= value <= facts.high:
                message = (
                    f"{type(self).__name__}.{facts.name} must lie between {facts.low} and {facts.high}, not {value}."
                )
                raise ConfigError(message)

    @classmethod
    def declared(cls) -> Iterator[TunableFacts]:
        """Yield what each tunable declares, in order."""
        for item in fields(cls):
            if "low" in item.metadata:
                yield TunableFacts(name=item.name, default=item.default, **item.metadata)  # type: ignore[arg-type]

    def declared_below(self, prefix: str = "") -> Iterator[TunableFacts]:
        """Yield what this config and the configs nested in it declare, under dotted names."""
        for facts in self.declared():
            yield replace(facts, name=f"{prefix}{facts.name}")
        for item in fields(self):
            nested = getattr(self, item.name)
            if isinstance(nested, Tunables):
                yield from nested.declared_below(f"{prefix}{item.name}.")
