"""Tunables: configuration that declares its default, bounds, unit and help in one place.

Forms and `docs/configuration.md` are generated from the declarations. A value out of bounds cannot exist.
Nested configs are accessed by dotted names: `config.with_values({"blend.dense": 0.7})`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import partial
from typing import Any, ClassVar, Final, Self, TypeVar

from corecube.errors import ConfigError
from retrieval.errors import OverridesError, TunablesError

_Config = TypeVar("_Config", bound="Tunables")
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class TunableFacts:
    """The declaration of a tunable, for forms and documentation."""

    name: str
    default: float  #: The default; in a nested config that of the outermost config.
    low: float
    high: float
    unit: str
    help: str
    costs: bool  #: Whether a higher value costs time or memory: a request may only lower it.
    at_most: str  #: Name of the tunable that it must not exceed; empty for none.
    is_shared: bool  #: Whether it affects all searches: a request may not change it.
    is_whole: bool

    @property
    def title(self) -> str:
        """The tunable in words, without its section: "Seat share"."""
        return self.name.rpartition(".")[2].replace("_", " ").capitalize()

    def problem(self, value: object) -> str:
        """Return why a value is invalid, to follow the tunable's name; empty for a valid one."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return "must be a number"
        if not self.low <= value <= self.high:
            return f"must be between {self.low} and {self.high}"
        if self.is_whole and value != int(value):
            return "must be a whole number"
        return ""

    def typed(self, value: float) -> float:
        """Return a valid value in the declared type: 5.0 becomes 5 for an integer."""
        return int(value) if self.is_whole else float(value)


@dataclass(frozen=True, slots=True)
class TunableSection:
    """The tunables of one config, under dotted names."""

    name: str  #: Dotted name of the config; empty for the outermost.
    label: str
    help: str
    tunables: tuple[TunableFacts, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """A tunable with different values in two configs."""

    name: str
    before: float
    after: float


def tunable(  # noqa: PLR0913 -- declared by keyword, like dataclasses.field
    default: Any,  # noqa: ANN401 -- like dataclasses.field
    *,
    low: float,
    high: float,
    help: str,  # noqa: A002 -- like dataclasses.field
    unit: str = "",
    costs: bool = False,
    at_most: str = "",
    is_shared: bool = False,
) -> Any:  # noqa: ANN401 -- like dataclasses.field
    """Declare a number from `low` to `high`, both inclusive; higher values of one that `costs` take time or memory.

    `at_most` names a tunable of the same config that it must not exceed. A request cannot change one that `is_shared`.
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


fraction = partial(tunable, low=0.0, high=1.0)  #: Declares a number from 0 to 1, as `tunable` does.
switch = partial(tunable, low=0, high=1)  #: Declares a whole number, 1 for on and 0 for off, as `tunable` does.
costly = partial(tunable, costs=True)  #: Declares a number that costs time or memory, as `tunable` does.


@dataclass(frozen=True, slots=True, kw_only=True)
class Tunables:
    """Base of the config dataclasses; checks every bound at construction."""

    label: ClassVar[str] = ""  #: Heading of its section; empty for one made of the section's name.
    #: Dotted names of inherited tunables that are unused here: they are neither shown nor set.
    unused: ClassVar[frozenset[str]] = frozenset()
    #: Dotted names of an earlier release with their present names. Stored searches and programs may still use them.
    former_names: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls, *, label: str = "") -> None:
        # `dataclass` makes a class with slots a second time, without the label, from what the first one has.
        if label:
            cls.label = label

    def __post_init__(self) -> None:
        for facts in self.declared():
            value = getattr(self, facts.name)
            if problem := facts.problem(value):
                raise ConfigError(f"{type(self).__name__}.{facts.name} {problem}, not {value}.")
        for facts in self.declared():
            if facts.at_most and getattr(self, facts.name) > getattr(self, facts.at_most):
                raise ConfigError(f"{type(self).__name__}.{facts.name} must not exceed {facts.at_most}.")

    @classmethod
    def declared(cls) -> tuple[TunableFacts, ...]:
        """Return the declarations of the tunables, in order."""
        if cls not in _DECLARED:
            _DECLARED[cls] = tuple(
                TunableFacts(name=it.name, default=it.default, is_whole=it.type is int, **it.metadata)  # type: ignore[arg-type]  # a tunable has a default
                for it in fields(cls)
                if "low" in it.metadata
            )
        return _DECLARED[cls]

    @classmethod
    def sections(cls) -> tuple[TunableSection, ...]:
        """Return the sections of this config and the nested ones."""
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
        """Yield the declarations of this config and the nested ones, under dotted names."""
        for section in cls.sections():
            yield from section.tunables

    def values(self, prefix: str = "") -> dict[str, float]:
        """Return every number by its dotted name, nested ones included."""
        found = {f"{prefix}{facts.name}": getattr(self, facts.name) for facts in self.declared()}
        for name, inner in self.nested():
            found |= inner.values(f"{prefix}{name}.")
        return found

    @classmethod
    def by_present_names(cls, values: Mapping[str, _Value]) -> dict[str, _Value]:
        """Return values by the present names of their tunables; one already under its present name wins."""
        former = {cls.former_names[name]: value for name, value in values.items() if name in cls.former_names}
        return former | {name: value for name, value in values.items() if name not in cls.former_names}

    def problems(self, values: Mapping[str, object]) -> dict[str, str]:
        """Return why values are invalid, by dotted name: unknown names, wrong types, bounds, order."""
        declared = {facts.name: facts for facts in self.declared_below()}
        found = {
            name: declared[name].problem(value) if name in declared else "is not a setting"
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
        """Return a copy with some numbers changed, by dotted name; raise TunablesError naming all invalid ones."""
        values = self.by_present_names(values)
        if problems := self.problems(values):
            raise TunablesError(problems)
        return _replaced(self, values)

    def with_overrides(self, values: Mapping[str, object], *, limits: Mapping[str, float] | None = None) -> Self:
        """Return a copy with the overrides of a request, which can only lower what costs time or memory.

        Up to its value in `limits` it can also raise it. It cannot change what all searches share. Raises
        OverridesError naming all invalid ones.
        """
        values, own = self.by_present_names(values), self.values()
        limits = {name: limit for name, limit in (limits or {}).items() if limit > own.get(name, limit)}
        raised = {
            facts.name: f"is costly: a request can set at most {limits[facts.name]}"
            if facts.name in limits
            else f"is costly: a request can only lower it from {own[facts.name]}"
            for facts in self.declared_below()
            if facts.costs and facts.name in values and not facts.problem(values[facts.name])
            if values[facts.name] > limits.get(facts.name, own[facts.name])  # type: ignore[operator]  # a value without a problem is a number
        }
        shared = {
            facts.name: "applies to all searches: a request cannot change it"
            for facts in self.declared_below()
            if facts.is_shared and facts.name in values
        }
        if problems := {**raised, **shared, **self.problems(values)}:
            raise OverridesError(problems)
        return _replaced(self, values)

    def fitted(self, values: Mapping[str, object]) -> tuple[Self, dict[str, str]]:
        """Return a copy with the valid values, and why each of the others is invalid."""
        unfit: dict[str, str] = {}
        valid = self.by_present_names(values)
        # Without one value another can exceed a default.
        while problems := self.problems(valid):
            unfit |= problems
            valid = {name: value for name, value in valid.items() if name not in problems}
        return _replaced(self, valid), unfit

    def nested(self) -> Iterator[tuple[str, "Tunables"]]:
        """Yield the directly nested configs, by name."""
        for item in fields(self):
            inner = getattr(self, item.name)
            if isinstance(inner, Tunables):
                yield item.name, inner


def diff(before: Tunables, after: Tunables) -> tuple[Change, ...]:
    """Return the tunables that differ between two configs of one type, in order."""
    old, new = before.values(), after.values()
    return tuple(Change(name, old[name], new[name]) for name in old if old[name] != new[name])


#: Cached per class, since every search reads them.
_DECLARED: Final[dict[type[Tunables], tuple[TunableFacts, ...]]] = {}
_SECTIONS: Final[dict[type[Tunables], tuple[TunableSection, ...]]] = {}


def _sections(kind: type[Tunables]) -> Iterator[TunableSection]:
    yield TunableSection("", kind.label, _help(kind), kind.declared())
    for item in fields(kind):
        if item.default_factory is not MISSING and isinstance(nested := item.default_factory(), Tunables):
            yield from _inner_sections(nested, item.name)


def _inner_sections(config: Tunables, name: str) -> Iterator[TunableSection]:
    tunables = tuple(
        replace(
            facts,
            name=f"{name}.{facts.name}",
            default=getattr(config, facts.name),
            at_most=facts.at_most and f"{name}.{facts.at_most}",
        )
        for facts in config.declared()
    )
    label = config.label or name.replace("_", " ").replace(".", ": ").capitalize()
    yield TunableSection(name, label, _help(type(config)), tunables)
    for inner_name, inner in config.nested():
        yield from _inner_sections(inner, f"{name}.{inner_name}")


def _help(kind: type[Tunables]) -> str:
    return (kind.__doc__ or "").strip()


def _replaced(config: _Config, values: Mapping[str, Any], prefix: str = "") -> _Config:
    changes: dict[str, Any] = {
        facts.name: facts.typed(values[f"{prefix}{facts.name}"])
        for facts in config.declared()
        if f"{prefix}{facts.name}" in values
    }
    changes |= {name: _replaced(inner, values, f"{prefix}{name}.") for name, inner in config.nested()}
    return replace(config, **changes)
