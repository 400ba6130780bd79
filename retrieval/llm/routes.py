"""Which models may answer from the passages of a request, by the stored routing rules, and the usage of answers."""

import logging
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Final

from asgiref.sync import sync_to_async
from django.db import DatabaseError, transaction
from django.db.models import Q

from corecube.access import Principal
from corecube.data import read_toml
from corecube.database import release_connection
from corecube.models import Connection, Grant, User
from retrieval.index import active
from retrieval.llm.clients import close_others, default_of, stored_models, usable_client
from retrieval.llm.model_provider import ModelProvider, RecordUsage
from retrieval.llm.options import Limits
from retrieval.llm.reachability import result_recorder
from retrieval.llm.routing import Bindings, Candidate, Plan, Reason, is_model, plan
from retrieval.llm.token_counters import counter_of
from retrieval.llm.types import Notice, TokenUsage, Window
from retrieval.models import LanguageModel, RoutingRule, Usage

logger = logging.getLogger(__name__)

_MESSAGES: Final = read_toml("retrieval.llm", "messages.toml")["plans"]
_PRICE_UNIT: Final = 1_000_000
_PLACES: Final = Decimal("0.000001")


@dataclass(frozen=True, slots=True)
class Allowed:
    """The language models for a request."""

    providers: tuple[ModelProvider, ...] = ()  #: In the order of use.
    notices: tuple[Notice, ...] = ()


def models_over(
    principal: Principal,
    connections: Iterable[int],
    *,
    record: uuid.UUID | None = None,
    usage_ids: list[int] | None = None,
    preferred: str = "",
) -> Allowed:
    """Return the models that may read texts of these connections; `record` is the search in the usage records.

    A model with the `preferred` slug or name replaces the default one, which is then its fallback, but not the user's.
    The keys of the stored usage records are added to `usage_ids`. Raises ModelMissingError.
    """
    models = {model.pk: model for model in stored_models()}
    close_others(models)
    if not models:
        return Allowed()
    bindings, of_user = _rules(principal)
    clients = {pk: client for pk, model in models.items() if (client := usable_client(model)) is not None}
    usual = default.pk if (default := default_of(list(models.values()))) else None
    by_slug = {models[pk].slug: pk for pk in clients}
    by_name = (pk for pk in clients if preferred and is_model(models[pk].model, preferred))
    named = by_slug.get(preferred) or next(by_name, None)
    fallbacks = {pk: model.fallback_id or (usual if pk == named else None) for pk, model in models.items()}
    planned = plan(
        {pk: Candidate(pk, pk in clients, fallbacks[pk]) for pk in models},
        chosen=of_user[0] if of_user else named or usual,
        connections=connections,
        bindings=bindings,
        is_barred=bool(of_user) and of_user[0] is None,
    )
    key = principal.key.pk if principal.key else None
    account = Account(principal.user.pk, key, record, [] if usage_ids is None else usage_ids)
    default_counter = active.encoder().count_tokens
    counters = {pk: counter_of(models[pk]) for pk in planned.models}
    providers = tuple(
        ModelProvider(
            id=pk,
            name=models[pk].slug,
            client=clients[pk],
            limits=_limits(models[pk]),
            window=Window(models[pk].context_tokens, models[pk].max_answer_tokens, counters[pk]),
            bindings=bindings,
            count=counter.count if (counter := counters[pk]) else default_counter,
            record_usage=account.recorder_for(models[pk]),
            record_result=result_recorder(models[pk]),
        )
        for pk in planned.models
    )
    return Allowed(providers, tuple(_notices(planned, models)))


def _limits(model: LanguageModel) -> Limits:
    return Limits(
        max_tokens=model.max_answer_tokens,
        min_temperature=model.min_temperature,
        max_temperature=model.max_temperature,
        allows_system_prompt=model.allows_system_prompt,
    )


def _rules(principal: Principal) -> tuple[Bindings, list[int | None]]:
    """Read the rules of all compartments, as earlier answers may come from any of them, and the user's, if any."""
    found = RoutingRule.objects.filter(Q(user=principal.user) | Q(compartment__isnull=False))
    by_compartment: dict[int, int | None] = {}
    of_user: list[int | None] = []
    for rule in found:
        if rule.compartment_id is None:
            of_user.append(rule.language_model_id)
        else:
            by_compartment[rule.compartment_id] = rule.language_model_id
    return _bindings(by_compartment, principal.user) if by_compartment else Bindings(), of_user


def _bindings(by_compartment: Mapping[int, int | None], user: User) -> Bindings:
    """Return the bindings. Texts of the user and memories may come from every compartment that the user can access."""
    rows = list(Connection.objects.values_list("pk", "compartment_id", "memory__pk"))
    compartments = {pk: compartment for pk, compartment, _ in rows}
    grants = Grant.objects.filter(Q(user=user) | Q(group__in=user.groups.all()))
    accessible = set(grants.values_list("compartment_id", flat=True))
    return Bindings(
        bound={pk: by_compartment[it] for pk, it in compartments.items() if it in by_compartment},
        known=frozenset(compartments),
        reachable=frozenset(pk for pk, it in compartments.items() if it in accessible),
        memories=frozenset(pk for pk, _, memory in rows if memory is not None),
    )


def _notices(planned: Plan, models: Mapping[int, LanguageModel]) -> Iterable[Notice]:
    if planned.reason is Reason.BOUND:
        name = models[planned.models[0]].name
        yield Notice(Reason.BOUND, f"Only {name} may read these passages, so it answers instead of the usual model.")
    elif planned.reason in _MESSAGES:
        yield Notice(planned.reason, _MESSAGES[planned.reason])


@dataclass(frozen=True, slots=True)
class Account:
    """The account that is charged for an answer."""

    user_id: int
    key_id: uuid.UUID | None = None
    record_id: uuid.UUID | None = None
    usage_ids: list[int] = field(default_factory=list, compare=False)

    def recorder_for(self, model: LanguageModel) -> RecordUsage:
        """Return a function that records the usage of a model's answers on this account."""
        return sync_to_async(partial(self._write, model))

    def _write(self, model: LanguageModel, usage: TokenUsage, seconds: float) -> None:
        """Store the usage; after a database error the numbers are logged, and the answer remains valid."""
        try:
            # In a nested transaction: a failure must not break an outer one.
            with transaction.atomic():
                self.write(model, usage, seconds)
        except DatabaseError:
            numbers = (model.slug, self.user_id, self.key_id, usage.prompt, usage.completion)
            logger.exception("usage.not_stored model=%s user=%s key=%s prompt=%d completion=%d", *numbers)
        release_connection()

    def write(self, model: LanguageModel, usage: TokenUsage, seconds: float) -> Usage:
        """Store the usage of an answer and return the record; raise DatabaseError."""
        total = usage.prompt * Decimal(model.prompt_price) + usage.completion * Decimal(model.completion_price)
        used = Usage.objects.create(
            user_id=self.user_id,
            key_id=self.key_id,
            record_id=self.record_id,
            language_model=model,
            model_name=model.name,
            prompt_tokens=usage.prompt,
            completion_tokens=usage.completion,
            is_estimated=usage.is_estimated,
            cost=(total / _PRICE_UNIT).quantize(_PLACES),
            seconds=seconds,
        )
        self.usage_ids.append(used.pk)
        return used
