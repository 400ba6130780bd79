"""/api/v1/language-models, /api/v1/routing and /api/v1/usage, for admins; the console uses the same functions."""

from datetime import date, timedelta
from typing import Annotated, Final, Literal

from django.http import HttpRequest
from django.utils import timezone
from django.utils.text import slugify
from ninja import Query, Router, Status

from corecube.access import user_named
from corecube.api import principal_of
from corecube.errors import InvalidRequestError, NotFoundError
from corecube.models import Compartment, User
from corecube.sanitise import storable
from retrieval.admin import language_models as services
from retrieval.api.language_model_schemas import (
    LanguageModelChange,
    LanguageModelIn,
    LanguageModelOut,
    RuleIn,
    RuleOut,
    TrialOut,
    UsageLine,
    UsageOut,
    line_name,
)
from retrieval.api.managed import installation_admin
from retrieval.api.schemas import CHANGE_REFUSALS, REFUSALS
from retrieval.llm.clients import default_of, service_of, stored_models
from retrieval.llm.reachability import try_saved
from retrieval.llm.trial import try_model
from retrieval.models import LanguageModel, RoutingRule
from retrieval.operations import usage

router = Router(tags=["language models"])

_RENAMED: Final = {"enabled": "is_enabled", "default": "is_default"}
_MAX_DAYS: Final = 3660
_DAYS: Final = 30


@router.get("/language-models", response={200: list[LanguageModelOut], **REFUSALS}, summary="List language models")
def list_models(request: HttpRequest) -> list[LanguageModelOut]:
    """Return all language models, by name. For admins."""
    _admin(request)
    models = stored_models()
    return [LanguageModelOut.of(model, default_of(models)) for model in models]


@router.post("/language-models", response={201: LanguageModelOut, **CHANGE_REFUSALS}, summary="Add a language model")
def add_model(request: HttpRequest, body: LanguageModelIn) -> Status[LanguageModelOut]:
    """Add a language model and test it; `state` shows whether it responds. For admins."""
    actor = _admin(request)
    model = LanguageModel(slug=slugify(body.name)[:50].strip("-_"))
    _apply(model, body)
    services.create_model(model, body.api_key or "", actor=actor)
    return Status(201, _tested(model))


@router.post("/language-models/test", response={200: TrialOut, **CHANGE_REFUSALS}, summary="Test a language model")
def try_new(request: HttpRequest, body: LanguageModelIn) -> TrialOut:
    """Request one short answer from a model, and store nothing. For admins."""
    _admin(request)
    model = LanguageModel(slug="unsaved")
    _apply(model, body)
    services.require_right(model, body.api_key or "")
    return TrialOut.of(try_model(service_of(model, body.api_key or "")))


@router.get("/language-models/{slug}", response={200: LanguageModelOut, **REFUSALS}, summary="Read a language model")
def read_model(request: HttpRequest, slug: str) -> LanguageModelOut:
    """Return a language model, without its key. For admins."""
    _admin(request)
    return _shown(services.model_named(slug))


@router.patch(
    "/language-models/{slug}", response={200: LanguageModelOut, **CHANGE_REFUSALS}, summary="Change a language model"
)
def patch_model(request: HttpRequest, slug: str, body: LanguageModelChange) -> LanguageModelOut:
    """Change settings and test the model. A change of the host needs the key again. For admins."""
    actor = _admin(request)
    model = services.model_named(slug)
    _apply(model, body)
    services.change_model(model, body.api_key, actor=actor)
    return _tested(model)


@router.delete("/language-models/{slug}", response={204: None, **CHANGE_REFUSALS}, summary="Delete a language model")
def remove_model(request: HttpRequest, slug: str) -> Status[None]:
    """Delete a language model without routing rules; its usage records stay. For admins."""
    actor = _admin(request)
    services.delete_model(services.model_named(slug), actor=actor)
    return Status(204, None)


@router.post("/language-models/{slug}/test", response={200: TrialOut, **CHANGE_REFUSALS}, summary="Test a stored model")
def try_stored(request: HttpRequest, slug: str) -> TrialOut:
    """Request one short answer from a stored model. For admins."""
    _admin(request)
    return TrialOut.of(try_saved(services.model_named(slug), in_seconds=None))


@router.get("/routing", response={200: list[RuleOut], **REFUSALS}, summary="List routing rules")
def list_rules(request: HttpRequest) -> list[RuleOut]:
    """Return every rule. For admins."""
    _admin(request)
    found = RoutingRule.objects.select_related("user", "compartment", "language_model")
    return [RuleOut.of(rule) for rule in found.order_by("compartment__slug", "user__username")]


@router.post("/routing", response={200: RuleOut, **CHANGE_REFUSALS}, summary="Set a routing rule")
def set_rule(request: HttpRequest, body: RuleIn) -> RuleOut:
    """Set the rule of a user or of a compartment; it replaces an existing one. For admins."""
    actor = _admin(request)
    owner = _owner(body.user, body.compartment)
    model = services.model_named(body.language_model) if body.language_model is not None else None
    return RuleOut.of(services.set_rule(owner, model, actor=actor))


@router.delete("/routing", response={204: None, **CHANGE_REFUSALS}, summary="Remove a routing rule")
def remove_rule(request: HttpRequest, user: str | None = None, compartment: str | None = None) -> Status[None]:
    """Remove the rule of a user or of a compartment. For admins."""
    actor = _admin(request)
    if not services.remove_rule(_owner(user, compartment), actor=actor):
        raise NotFoundError("There is no rule for this user or compartment.")
    return Status(204, None)


@router.get("/usage", response={200: UsageOut, **REFUSALS}, summary="Report language model usage")
def read_usage(
    request: HttpRequest,
    by: Literal["user", "key", "model", "month"] = "model",
    first: Annotated[date | None, Query(description="First day in UTC; default: 30 days ago.")] = None,
    last: Annotated[date | None, Query(description="Last day in UTC; default: today.")] = None,
) -> UsageOut:
    """Return the tokens and costs of a period, summed by user, key, model or month. For admins."""
    _admin(request)
    last = last or timezone.now().date()
    first = first or last - timedelta(days=min(_DAYS, last.toordinal() - 1))
    if not 0 <= (last - first).days <= _MAX_DAYS or last == date.max:
        raise InvalidRequestError(f"The first day must not be after the last, and {_MAX_DAYS} days is the maximum.")
    found = usage.used_between(first, last)
    lines = [UsageLine.of(line_name(line, by), line.sums) for line in usage.by_group(found, by)]
    return UsageOut(first=first, last=last, total=UsageLine.of("", usage.total(found)), by=by, lines=lines)


def _admin(request: HttpRequest) -> User:
    return installation_admin(principal_of(request))


def _apply(model: LanguageModel, body: LanguageModelChange) -> None:
    for name in body.model_fields_set - {"api_key", "fallback"}:
        value = getattr(body, name)
        if name != "slug" or value:
            setattr(model, _RENAMED.get(name, name), storable(value) if isinstance(value, str) else value)
    if "fallback" in body.model_fields_set:
        model.fallback = services.model_named(body.fallback) if body.fallback is not None else None


def _tested(model: LanguageModel) -> LanguageModelOut:
    if model.is_enabled:
        try_saved(model)
    return _shown(services.model_named(model.slug))


def _shown(model: LanguageModel) -> LanguageModelOut:
    return LanguageModelOut.of(model, default_of(stored_models()))


def _owner(user: str | None, compartment: str | None) -> User | Compartment:
    """Return the owner of a rule; raise InvalidRequestError unless it is one user or one compartment."""
    if (user is None) == (compartment is None):
        raise InvalidRequestError("A rule belongs to one user or to one compartment.")
    if user is not None:
        return user_named(storable(user))
    found = Compartment.objects.filter(slug=storable(compartment or "")).first()
    if found is None:
        raise NotFoundError("No compartment has this slug.")
    return found
