"""Reading the rules and the models for one request: who may answer this principal from these passages."""

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from django.db.models import Q

from corecube.access import Principal
from corecube.models import Connection, Grant, User
from retrieval.index import active
from retrieval.llm.clients import forget_others, usable_client
from retrieval.llm.environment import default_of, stored_models
from retrieval.llm.model_provider import ModelProvider
from retrieval.llm.reachability import hearer
from retrieval.llm.routing import Bindings, Candidate, Plan, Reason, plan
from retrieval.llm.spending import Account
from retrieval.llm.token_counters import counter_of
from retrieval.llm.types import Notice, Window
from retrieval.models import LanguageModel, RoutingRule

_WORDS: Final[Mapping[Reason, str]] = {
    Reason.MAY_NOT_READ: (
        "No single language model may read all of these passages, so they are quoted instead: their compartments are "
        "bound to different models or to none."
    ),
    Reason.SWITCHED_OFF: "The language model that would answer is switched off, so the passages are quoted instead.",
}


@dataclass(frozen=True, slots=True)
class _Rules:
    """The rules that concern one request."""

    bindings: Bindings
    #: Whether the user has a rule, and the model that it names.
    has_own: bool = False
    own: int | None = None


@dataclass(frozen=True, slots=True)
class Allowed:
    """The language models that a request may ask."""

    #: In the order in which they are tried.
    providers: tuple[ModelProvider, ...] = ()
    notices: tuple[Notice, ...] = ()


def models_over(
    principal: Principal,
    connections: Iterable[int],
    *,
    record: uuid.UUID | None = None,
    noted: list[int] | None = None,
) -> Allowed:
    """Return the models that may read what comes from these connections; `record` names the search in the usage.

    The keys of the usage that is stored are added to `noted`. Raises ModelMissingError.
    """
    models = {model.pk: model for model in stored_models()}
    forget_others(models)
    if not models:
        return Allowed()
    rules = _rules(principal)
    clients = {pk: client for pk, model in models.items() if (client := usable_client(model)) is not None}
    planned = _planned(models, set(clients), rules, connections)
    key = principal.key.pk if principal.key else None
    account = Account(principal.user.pk, key, record, [] if noted is None else noted)
    standing_in = active.encoder().count_tokens
    counters = {pk: counter_of(models[pk]) for pk in planned.models}
    asked = tuple(
        ModelProvider(
            id=pk,
            name=models[pk].slug,
            client=clients[pk],
            window=Window(models[pk].context_tokens, models[pk].max_answer_tokens, counters[pk]),
            bindings=rules.bindings,
            count=counter.count if (counter := counters[pk]) else standing_in,
            spend=account.with_model(models[pk]),
            hear=hearer(models[pk]),
        )
        for pk in planned.models
    )
    return Allowed(asked, tuple(_notices(planned, models)))


def _planned(models: Mapping[int, LanguageModel], usable: set[int], rules: _Rules, connections: Iterable[int]) -> Plan:
    default = default_of(list(models.values()))
    chosen = rules.own if rules.has_own else default.pk if default else None
    candidates = {pk: Candidate(pk, pk in usable, model.fallback_id) for pk, model in models.items()}
    return plan(
        candidates,
        chosen=chosen,
        connections=connections,
        bindings=rules.bindings,
        is_barred=rules.has_own and rules.own is None,
    )


def _rules(principal: Principal) -> _Rules:
    """Read the user's rule and every compartment's: earlier answers may come from any of them."""
    found = RoutingRule.objects.filter(Q(user=principal.user) | Q(compartment__isnull=False))
    by_compartment: dict[int, int | None] = {}
    own: list[int | None] = []
    for rule in found:
        if rule.compartment_id is None:
            own.append(rule.language_model_id)
        else:
            by_compartment[rule.compartment_id] = rule.language_model_id
    bindings = _bindings(by_compartment, principal.user) if by_compartment else Bindings()
    return _Rules(bindings, bool(own), own[0] if own else None)


def _bindings(by_compartment: Mapping[int, int | None], user: User) -> Bindings:
    """Return what the rules bind. What the user brings or has had remembered may come from all that is open to them."""
    rows = list(Connection.objects.values_list("pk", "compartment_id", "memory__pk"))
    places = {pk: place for pk, place, _ in rows}
    held = Grant.objects.filter(Q(user=user) | Q(group__in=user.groups.all()))
    opened = set(held.values_list("compartment_id", flat=True))
    return Bindings(
        bound={pk: by_compartment[place] for pk, place in places.items() if place in by_compartment},
        known=frozenset(places),
        reachable=frozenset(pk for pk, place in places.items() if place in opened),
        memories=frozenset(pk for pk, _, memory in rows if memory is not None),
    )


def _notices(planned: Plan, models: Mapping[int, LanguageModel]) -> Iterable[Notice]:
    if planned.reason is Reason.BOUND:
        name = models[planned.models[0]].name
        yield Notice(Reason.BOUND, f"Only {name} may read these passages, so it answers and not the usual model.")
    elif planned.reason in _WORDS:
        yield Notice(planned.reason, _WORDS[planned.reason])
