"""Which language model may answer from which passages: the rule itself. Pure.

A user's rule chooses, else the default answers. A compartment's rule binds: passages of its connections go to that
model and to no other; without a model they go to none. What no language model may read is quoted by the extractive
answerer.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

#: A language model's or a connection's id.
Id = int


class Reason(StrEnum):
    """Why somebody other than the chosen model answers."""

    #: The chosen one does, or none is configured.
    NONE = ""
    #: The passages are bound to one model, which is not the chosen one.
    BOUND = "bound_to_model"
    #: The passages are bound to different models, or to none.
    MAY_NOT_READ = "no_model_may_read"
    #: Whoever may read them is switched off.
    SWITCHED_OFF = "model_switched_off"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A language model, and who follows when it cannot answer."""

    id: Id
    is_usable: bool = True
    fallback: Id | None = None


@dataclass(frozen=True, slots=True)
class Bindings:
    """Which model alone may read what comes from a connection."""

    #: By connection: the model, or None for no model at all. A connection that is not here is not bound.
    bound: Mapping[Id, Id | None] = field(default_factory=dict)
    #: Connections whose rules are known; None for all. What is from elsewhere is kept from everyone.
    known: frozenset[Id] | None = None
    #: Connections that a text of unknown origin may come from; None for any.
    reachable: frozenset[Id] | None = None
    #: Connections whose texts are of unknown origin: what agents remember.
    memories: frozenset[Id] = frozenset()

    def of(self, connections: Iterable[Id]) -> frozenset[Id | None]:
        """Return the models that the connections are bound to; empty where they are free."""
        asked = frozenset(connections)
        owners = frozenset(
            self.bound.get(it) for it in asked if it in self.bound or (self.known is not None and it not in self.known)
        )
        return owners | self._of_anything() if asked & self.memories else owners

    def allow(self, model: Id, connections: Iterable[Id]) -> bool:
        """Return whether a model may read what comes from all of these connections."""
        return self.of(connections) <= {model}

    def allow_anything(self, model: Id) -> bool:
        """Return whether a model may read what comes from nobody knows where."""
        return self._of_anything() <= {model}

    def _of_anything(self) -> frozenset[Id | None]:
        """Return the models that a text of unknown origin may be bound to."""
        return frozenset(owner for it, owner in self.bound.items() if self.reachable is None or it in self.reachable)


@dataclass(frozen=True, slots=True)
class Plan:
    """Who is asked, in order; after the last one the extractive answerer is."""

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
    """Return who may answer from passages of these connections.

    `chosen` is the user's model or the default, None for neither; `is_barred` a user whom no language model answers.
    """
    if is_barred:
        return Plan()
    connections = frozenset(connections)
    bound = bindings.of(connections)
    if len(bound) > 1 or None in bound:
        return Plan((), Reason.MAY_NOT_READ if models else Reason.NONE)
    first = next(iter(bound), chosen)
    asked = tuple(it for it in _chain(models, first) if models[it].is_usable and bindings.allow(it, connections))
    if not asked:
        return Plan((), Reason.NONE if first is None else Reason.SWITCHED_OFF)
    return Plan(asked, Reason.BOUND if bound and first != chosen else Reason.NONE)


def _chain(models: Mapping[Id, Candidate], first: Id | None) -> Iterator[Id]:
    """Yield a model and those that follow it, each once."""
    met: set[Id] = set()
    while first is not None and first in models and first not in met:
        met.add(first)
        yield first
        first = models[first].fallback
