"""/api/v1/language-models, /api/v1/routing and /api/v1/usage, for admins; the console does it by the same functions."""

from datetime import date, timedelta
from typing import Annotated, Final, Literal

from django.http import HttpRequest
from django.utils import timezone
from django.utils.text import slugify
from ninja import Query, Router, Status

from corecube.access import user_named
from corecube.api import principal_of
from corecube.errors import InvalidRequestError, NotFoundError, NotPermittedError
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
from retrieval.api.managed import may_manage_presets
from retrieval.api.schemas import REFUSALS, ErrorOut
from retrieval.llm.clients import service_of
from retrieval.llm.environment import default_of, stored_models
from retrieval.llm.reachability import try_saved
from retrieval.llm.trial import try_model
from retrieval.models import LanguageModel, RoutingRule
from retrieval.operations import usage

router = Router(tags=["language models"])

_REFUSALS: Final = {**REFUSALS, 409: ErrorOut}
_RENAMED: Final = {"enabled": "is_enabled", "default": "is_default"}
_MAX_DAYS: Final = 3660
_DAYS: Final = 30


@router.get("/language-models", response={200: list[LanguageModelOut], **REFUSALS}, summary="List language models")
def list_models(request: HttpRequest) -> list[LanguageModelOut]:
    """Return all language models, by name. For admins."""
    _admin(request)
    models = stored_models()
    return [LanguageModelOut.of(model, default_of(models)) for model in models]


@router.post("/language-models", response={201: LanguageModelOut, **_REFUSALS}, summary="Add a language model")
def add_model(request: HttpRequest, body: LanguageModelIn) -> Status[LanguageModelOut]:
    """Add a language model and try it; `state` says whether it answers. For admins."""
    actor = _admin(request)
    model = LanguageModel(slug=slugify(body.name)[:50].strip("-_"))
    _apply(model, body)
    services.create_model(model, body.api_key or "", actor=actor)
    return Status(201, _tried(model))


@router.post("/language-models/test", response={200: TrialOut, **_REFUSALS}, summary="Try a language model")
def try_new(request: HttpRequest, body: LanguageModelIn) -> TrialOut:
    """Ask a model for one short answer, and store nothing. For admins."""
    _admin(request)
    model = LanguageModel(slug="unsaved")
    _apply(model, body)
    services.require_right(model, body.api_key or "")
    return TrialOut.of(try_model(service_of(model, body.api_key or "")))


@router.get("/language-models/{slug}", response={200: LanguageModelOut, **REFUSALS}, summary="Read a language model")
def read_model(request: HttpRequest, slug: str) -> LanguageModelOut:
    """Return a language model; its key is never told. For admins."""
    _admin(request)
    return _shown(services.model_named(slug))


@router.patch(
    "/language-models/{slug}", response={200: LanguageModelOut, **_REFUSALS}, summary="Change a language model"
)
def patch_model(request: HttpRequest, slug: str, body: LanguageModelChange) -> LanguageModelOut:
    """Change settings and try it. With another host its key has to be sent again. For admins."""
    actor = _admin(request)
    model = services.model_named(slug)
    _apply(model, body)
    services.change_model(model, body.api_key, actor=actor)
    return _tried(model)


@router.delete("/language-models/{slug}", response={204: None, **_REFUSALS}, summary="Delete a language model")
def remove_model(request: HttpRequest, slug: str) -> Status[None]:
    """Delete a language model that no rule names; what it used stays. For admins."""
    actor = _admin(request)
    services.delete_model(services.model_named(slug), actor=actor)
    return Status(204, None)


@router.post("/language-models/{slug}/test", response={200: TrialOut, **_REFUSALS}, summary="Try a stored model")
def try_stored(request: HttpRequest, slug: str) -> TrialOut:
    """Ask a stored model for one short answer. For admins."""
    _admin(request)
    return TrialOut.of(try_saved(services.model_named(slug), in_seconds=None))


@router.get("/routing", response={200: list[RuleOut], **REFUSALS}, summary="List routing rules")
def list_rules(request: HttpRequest) -> list[RuleOut]:
    """Return every rule. For admins."""
    _admin(request)
    found = RoutingRule.objects.select_related("user", "compartment", "language_model")
    return [RuleOut.of(rule) for rule in found.order_by("compartment__slug", "user__username")]


@router.post("/routing", response={200: RuleOut, **_REFUSALS}, summary="Set a routing rule")
def set_rule(request: HttpRequest, body: RuleIn) -> RuleOut:
    """Set the rule of a user or of a compartment, in place of one that is there. For admins."""
    actor = _admin(request)
    owner = _owner(body.user, body.compartment)
    model = services.model_named(body.language_model) if body.language_model is not None else None
    return RuleOut.of(services.set_rule(owner, model, actor=actor))


@router.delete("/routing", response={204: None, **_REFUSALS}, summary="Remove a routing rule")
def remove_rule(request: HttpRequest, user: str | None = None, compartment: str | None = None) -> Status[None]:
    """Remove the rule of a user or of a compartment. For admins."""
    actor = _admin(request)
    if not services.remove_rule(_owner(user, compartment), actor=actor):
        raise NotFoundError("There is no such rule.")
    return Status(204, None)


@router.get("/usage", response={200: UsageOut, **REFUSALS}, summary="Usage of language models")
def read_usage(
    request: HttpRequest,
    by: Literal["user", "key", "model", "month"] = "model",
    first: Annotated[date | None, Query(description="In UTC; by default 30 days back.")] = None,
    last: Annotated[date | None, Query(description="In UTC, included; by default today.")] = None,
) -> UsageOut:
    """Return tokens and costs of some days, summed by user, key, model or month. For admins."""
    _admin(request)
    last = last or timezone.now().date()
    first = first or last - timedelta(days=min(_DAYS, last.toordinal() - 1))
    if not 0 <= (last - first).days <= _MAX_DAYS or last == date.max:
        raise InvalidRequestError(f"The days must be in order, and {_MAX_DAYS} at most.")
    found = usage.used_between(first, last)
    lines = [UsageLine.of(line_name(line, by), line.sums) for line in usage.by_group(found, by)]
    return UsageOut(first=first, last=last, total=UsageLine.of("", usage.total(found)), by=by, lines=lines)


def _admin(request: HttpRequest) -> User:
    """Return the admin who asks; raise NotPermittedError for anyone else and for a key that is narrowed."""
    principal = principal_of(request)
    if not may_manage_presets(principal):
        raise NotPermittedError("Only an admin may do this, with a key that is not narrowed.")
    return principal.user


def _apply(model: LanguageModel, body: LanguageModelChange) -> None:
    """Write what was sent into a model."""
    for name in body.model_fields_set - {"api_key", "fallback"}:
        value = getattr(body, name)
        if name != "slug" or value:
            setattr(model, _RENAMED.get(name, name), storable(value) if isinstance(value, str) else value)
    if "fallback" in body.model_fields_set:
        model.fallback = services.model_named(body.fallback) if body.fallback is not None else None


def _tried(model: LanguageModel) -> LanguageModelOut:
    """Return a model that was just stored, once it was tried."""
    if model.is_enabled:
        try_saved(model)
    return _shown(services.model_named(model.slug))


def _shown(model: LanguageModel) -> LanguageModelOut:
    return LanguageModelOut.of(model, default_of(stored_models()))


def _owner(user: str | None, compartment: str | None) -> User | Compartment:
    """Return whom a rule concerns; raise InvalidRequestError unless it is one user or one compartment."""
    if (user is None) == (compartment is None):
        raise InvalidRequestError("A rule belongs to one user or to one compartment.")
    if user is not None:
        return user_named(storable(user))
    found = Compartment.objects.filter(slug=storable(compartment or "")).first()
    if found is None:
        raise NotFoundError("There is no such compartment.")
    return found
