"""The routing rule: which language model may answer from which passages.

A user's rule chooses the model, else the default answers. A compartment's rule binds: passages of its connections are
sent to that model only; without a model they are sent to none. The extractive answerer quotes passages that no language
model may read.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

Id = int  #: A language model's or a connection's id.


_DATE: Final = re.compile(r"-\d{4}-\d\d-\d\d\Z")  #: Of a version, behind the name of a model.


class Reason(StrEnum):
    """Why another model than the chosen one answers."""

    NONE = ""
    BOUND = "bound_to_model"  #: The passages are bound to one model, which is not the chosen one.
    MAY_NOT_READ = "no_model_may_read"  #: The passages are bound to different models, or to none.
    SWITCHED_OFF = "model_switched_off"


def is_model(served: str, wanted: str) -> bool:
    """Return whether a service's name of a model means the wanted one; every name does for an empty one.

    A provider before it and the date of a version behind it do not count: "openai/gpt-4o-2024-08-06" is "gpt-4o".
    """
    name = served.rpartition("/")[2]
    return not wanted or wanted in (served, name, _DATE.sub("", served), _DATE.sub("", name))


@dataclass(frozen=True, slots=True)
class Candidate:
    """A language model and its fallback."""

    id: Id
    is_usable: bool = True
    fallback: Id | None = None


@dataclass(frozen=True, slots=True)
class Bindings:
    """The only models that may read texts of connections."""

    #: By connection: the model, or None for no model. Other connections are not bound.
    bound: Mapping[Id, Id | None] = field(default_factory=dict)
    #: Connections whose rules are known; None for all. No model may read texts of other connections.
    known: frozenset[Id] | None = None
    reachable: frozenset[Id] | None = None  #: Connections that a text of unknown origin may come from; None for any.
    memories: frozenset[Id] = frozenset()  #: Connections whose texts are of unknown origin: memories of agents.

    def of(self, connections: Iterable[Id]) -> frozenset[Id | None]:
        """Return the models that the connections are bound to; empty if they are not bound."""
        requested = frozenset(connections)
        owners = frozenset(
            self.bound.get(it)
            for it in requested
            if it in self.bound or (self.known is not None and it not in self.known)
        )
        return owners | self._of_unknown_origin() if requested & self.memories else owners

    def allow(self, model: Id, connections: Iterable[Id]) -> bool:
        """Return whether a model may read texts of all of these connections."""
        return self.of(connections) <= {model}

    def allow_unknown_origin(self, model: Id) -> bool:
        """Return whether a model may read texts of unknown origin."""
        return self._of_unknown_origin() <= {model}

    def _of_unknown_origin(self) -> frozenset[Id | None]:
        return frozenset(owner for it, owner in self.bound.items() if self.reachable is None or it in self.reachable)


@dataclass(frozen=True, slots=True)
class Plan:
    """The models in the order of use, before the extractive answerer."""

    models: tuple[Id, ...] = ()
    reason: Reason = Reason.NONE


def plan(
    models: Mapping[Id, Candidate],
    *,
    chosen: Id | None,
    connections: Iterable[Id],
    bindings: Bindings,
    is_barred: bool = False,
) -> Plan:
    """Return the models that may answer from passages of these connections.

    `chosen` is the user's model or the default, None for neither; `is_barred` means that the user's rule names no
    model.
    """
    if is_barred:
        return Plan()
    connections = frozenset(connections)
    bound = bindings.of(connections)
    if len(bound) > 1 or None in bound:
        return Plan((), Reason.MAY_NOT_READ if models else Reason.NONE)
    first = next(iter(bound), chosen)
    allowed = tuple(it for it in _chain(models, first) if models[it].is_usable and bindings.allow(it, connections))
    if not allowed:
        return Plan((), Reason.NONE if first is None else Reason.SWITCHED_OFF)
    return Plan(allowed, Reason.BOUND if bound and first != chosen else Reason.NONE)


def _chain(models: Mapping[Id, Candidate], first: Id | None) -> Iterator[Id]:
    seen: set[Id] = set()
    while first is not None and first in models and first not in seen:
        seen.add(first)
        yield first
        first = models[first].fallback
