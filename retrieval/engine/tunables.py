"""Tunables: configuration that declares its default, bounds, unit and help in one place.

Forms and `docs/configuration.md` are made from the declarations, and a value out of its bounds cannot exist.
Nested configs are read and changed by dotted names: `config.with_values({"blend.dense": 0.7})`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, ClassVar, Final, Self, TypeVar

from corecube.errors import ConfigError
from retrieval.errors import OverridesError, TunablesError

_Config = TypeVar("_Config", bound="Tunables")


@dataclass(frozen=True, slots=True)
class TunableFacts:
    """What a tunable's declaration says, for forms and documentation."""

    name: str
    #: The number where nobody sets another one: in a nest that of the whole nest, not of the nested config by itself.
    default: float
    low: float
    high: float
    unit: str
    help: str
    #: Whether more of it costs time or memory: a request may then only lower it.
    costs: bool
    #: Name of the tunable that it must not exceed; empty for none.
    at_most: str
    #: Whether all searches share what it governs: a request may not change it.
    is_shared: bool
    #: Whether it is counted in whole numbers.
    is_whole: bool

    def problem(self, value: object) -> str:
        """Return what is wrong with a value, to stand behind the tunable's name; empty for one that fits."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return "must be a number"
        if not self.low <= value <= self.high:
            return f"must lie between {self.low} and {self.high}"
        if self.is_whole and value != int(value):
            return "must be a whole number"
        return ""

    def typed(self, value: float) -> float:
        """Return a value that fits in the declared type: 5.0 is 5 where whole numbers are counted."""
        return int(value) if self.is_whole else float(value)


@dataclass(frozen=True, slots=True)
class TunableSection:
    """The tunables that one config of a nest declares, under dotted names."""

    #: Dotted name of the config; empty for the outermost.
    name: str
    label: str
    help: str
    tunables: tuple[TunableFacts, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """A tunable that has different values in two configs."""

    name: str
    before: float
    after: float


def tunable(  # noqa: PLR0913 -- declared by keyword, like dataclasses.field
    default: Any,  # noqa: ANN401 -- like dataclasses.field
    *,
    low: float,
    high: float,
    unit: str,
    help: str,  # noqa: A002 -- like dataclasses.field
    costs: bool = False,
    at_most: str = "",
    is_shared: bool = False,
) -> Any:  # noqa: ANN401 -- like dataclasses.field
    """Declare a number within `low` to `high`, both allowed; more of one that `costs` takes time or memory.

    `at_most` names a tunable of the same config that it must not exceed. One that `is_shared` governs what all searches
    share, so that no request can change it for itself.
    """
    facts = {
        "low": low,
        "high": high,
        "unit": unit,
        "help": help,
        "costs": costs,
        "at_most": at_most,
        "is_shared": is_shared,
    }
    return field(default=default, metadata=facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tunables:
    """Base of the config dataclasses; checks every bound when made."""

    #: Heading of its section; empty for one made of the section's name.
    label: ClassVar[str] = ""
    #: Dotted names of inherited numbers that go unused here: they can be neither seen nor set.
    unused: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        """Raise ConfigError for a value out of its bounds."""
        for facts in self.declared():
            value = getattr(self, facts.name)
            if problem := facts.problem(value):
                raise ConfigError(f"{type(self).__name__}.{facts.name} {problem}, not {value}.")
        for facts in self.declared():
            if facts.at_most and getattr(self, facts.name) > getattr(self, facts.at_most):
                raise ConfigError(f"{type(self).__name__}.{facts.name} must not exceed {facts.at_most}.")

    @classmethod
    def declared(cls) -> tuple[TunableFacts, ...]:
        """Return what each tunable declares, in order."""
        if cls not in _DECLARED:
            _DECLARED[cls] = tuple(
                TunableFacts(name=it.name, default=it.default, is_whole=it.type is int, **it.metadata)  # type: ignore[arg-type]  # a tunable has a default
                for it in fields(cls)
                if "low" in it.metadata
            )
        return _DECLARED[cls]

    @classmethod
    def sections(cls) -> tuple[TunableSection, ...]:
        """Return this config and those nested in it, each with what it declares."""
        if cls not in _SECTIONS:
            found = (
                replace(it, tunables=tuple(facts for facts in it.tunables if facts.name not in cls.unused))
                for it in _sections(cls)
                if not it.tunables or not cls.unused.issuperset(facts.name for facts in it.tunables)
            )
            _SECTIONS[cls] = tuple(found)
        return _SECTIONS[cls]

    @classmethod
    def declared_below(cls) -> Iterator[TunableFacts]:
        """Yield what this config and the configs nested in it declare, under dotted names."""
        for section in cls.sections():
            yield from section.tunables

    def values(self, prefix: str = "") -> dict[str, float]:
        """Return every number by its dotted name, those of nested configs included."""
        own = {f"{prefix}{facts.name}": getattr(self, facts.name) for facts in self.declared()}
        for name, inner in self.nested():
            own |= inner.values(f"{prefix}{name}.")
        return own

    def problems(self, values: Mapping[str, object]) -> dict[str, str]:
        """Return what keeps values from being set, by dotted name: unknown names, wrong types, bounds, order."""
        declared = {facts.name: facts for facts in self.declared_below()}
        found = {
            name: declared[name].problem(value) if name in declared else "is no tunable"
            for name, value in values.items()
        }
        found = {name: problem for name, problem in found.items() if problem}
        changed: dict[str, Any] = {**self.values(), **{name: values[name] for name in values if name not in found}}
        for facts in declared.values():
            if facts.at_most and changed[facts.name] > changed[facts.at_most]:
                disorder = {facts.name: f"must not exceed {facts.at_most}", facts.at_most: f"is below {facts.name}"}
                found |= {name: problem for name, problem in disorder.items() if name in values}
        return found

    def with_values(self, values: Mapping[str, object]) -> Self:
        """Return a copy with some numbers changed, by dotted name; raise TunablesError naming all that do not fit."""
        if problems := self.problems(values):
            raise TunablesError(problems)
        return _replaced(self, values)

    def with_overrides(self, values: Mapping[str, object]) -> Self:
        """Return a copy with what one request changes. What costs time or memory it can only lower.

        What all searches share it cannot change. Raises OverridesError naming all that do not fit.
        """
        own = self.values()
        raised = {
            facts.name: f"costs time, and a request can only lower it from {own[facts.name]}"
            for facts in self.declared_below()
            if facts.costs and facts.name in values and not facts.problem(values[facts.name])
            if values[facts.name] > own[facts.name]  # type: ignore[operator]  # a value without a problem is a number
        }
        shared = {
            facts.name: "holds for all searches, and a request cannot change it"
            for facts in self.declared_below()
            if facts.is_shared and facts.name in values
        }
        if problems := {**raised, **shared, **self.problems(values)}:
            raise OverridesError(problems)
        return _replaced(self, values)

    def fitted(self, values: Mapping[str, object]) -> tuple[Self, dict[str, str]]:
        """Return a copy with the values that fit, and what is wrong with each of the others."""
        unfit: dict[str, str] = {}
        kept = dict(values)
        # Leaving one out can put another out of order with a default.
        while problems := self.problems(kept):
            unfit |= problems
            kept = {name: value for name, value in kept.items() if name not in problems}
        return _replaced(self, kept), unfit

    def nested(self) -> Iterator[tuple[str, "Tunables"]]:
        """Yield the configs right inside this one, by name."""
        for item in fields(self):
            inner = getattr(self, item.name)
            if isinstance(inner, Tunables):
                yield item.name, inner


def diff(before: Tunables, after: Tunables) -> tuple[Change, ...]:
    """Return the tunables that differ between two configs of one kind, in the order of their declaration."""
    old, new = before.values(), after.values()
    return tuple(Change(name, old[name], new[name]) for name in old if old[name] != new[name])


#: Read from the classes once, since a search reads them again and again.
_DECLARED: Final[dict[type[Tunables], tuple[TunableFacts, ...]]] = {}
_SECTIONS: Final[dict[type[Tunables], tuple[TunableSection, ...]]] = {}


def _sections(kind: type[Tunables]) -> Iterator[TunableSection]:
    """Yield a config's own section, then those of the configs in it under dotted names."""
    yield TunableSection("", kind.label, _help(kind), kind.declared())
    for item in fields(kind):
        if item.default_factory is not MISSING and isinstance(nested := item.default_factory(), Tunables):
            yield from _inner_sections(nested, item.name)


def _inner_sections(config: Tunables, name: str) -> Iterator[TunableSection]:
    """Yield the sections of a nested config, whose values are the defaults of the nest."""
    tunables = tuple(
        replace(
            facts,
            name=f"{name}.{facts.name}",
            default=getattr(config, facts.name),
            at_most=facts.at_most and f"{name}.{facts.at_most}",
        )
        for facts in config.declared()
    )
    label = config.label or name.replace("_", " ").capitalize()
    yield TunableSection(name, label, _help(type(config)), tunables)
    for inner_name, inner in config.nested():
        yield from _inner_sections(inner, f"{name}.{inner_name}")


def _help(kind: type[Tunables]) -> str:
    return (kind.__doc__ or "").strip()


def _replaced(config: _Config, values: Mapping[str, Any], prefix: str = "") -> _Config:
    """Return a copy of a config with values that were checked."""
    changes: dict[str, Any] = {
        facts.name: facts.typed(values[f"{prefix}{facts.name}"])
        for facts in config.declared()
        if f"{prefix}{facts.name}" in values
    }
    changes |= {name: _replaced(inner, values, f"{prefix}{name}.") for name, inner in config.nested()}
    return replace(config, **changes)
