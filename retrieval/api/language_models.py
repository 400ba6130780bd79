"""/api/v1/language-models, /api/v1/routing and /api/v1/usage, for admins; the console uses the same functions."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Final, Literal, Self

from django.http import HttpRequest
from django.utils import timezone
from django.utils.text import slugify
from ninja import Query, Router, Status
from pydantic import BaseModel, ConfigDict, Field

from corecube.access import user_named
from corecube.api import principal_of
from corecube.database import first_or
from corecube.errors import InvalidRequestError, NotFoundError
from corecube.models import Compartment, User
from corecube.sanitise import storable
from retrieval.admin import language_models as services
from retrieval.admin.language_models import key_length
from retrieval.api.managed import installation_admin
from retrieval.api.schemas import CHANGE_REFUSALS, REFUSALS, StrictBody, filled, links
from retrieval.llm.clients import default_of, service_of, stored_models
from retrieval.llm.reachability import ModelState, status_of, try_saved
from retrieval.llm.trial import Trial, try_model
from retrieval.models import LanguageModel, RoutingRule
from retrieval.operations import usage
from retrieval.operations.usage import Line, Sums

router = Router(tags=["language models"])

_RENAMED: Final = {"enabled": "is_enabled", "default": "is_default"}
_MAX_DAYS: Final = 3660
_DAYS: Final = 30
Slug = Annotated[str, Field(max_length=50, pattern=r"^[-a-zA-Z0-9_]*$")]
Seconds = Annotated[float, Field(ge=0.1, le=600)]
Price = Annotated[Decimal, Field(ge=0, max_digits=12, decimal_places=4, description="Per million tokens.")]
ApiKeyIn = Annotated[
    str | None, Field(max_length=4000, repr=False, description="Write-only. An empty one is removed; null: no change.")
]


class LanguageModelChange(StrictBody):
    """Settings to change; omitted ones stay."""

    model_config = ConfigDict(hide_input_in_errors=True)

    name: str = Field(default="", max_length=120)
    slug: Slug = ""
    api: Literal["openai", "azure"] = "openai"
    base_url: str = Field(default="", max_length=500, description="Including /v1; for Azure: the resource URL.")
    api_version: str = Field(default="", max_length=40, description="Azure only.")
    model: str = Field(default="", max_length=200, description="Name at the service; for Azure: the deployment.")
    api_key: ApiKeyIn = None
    timeout_seconds: float = Field(default=60.0, ge=1, le=600, description="For the complete answer.")
    silence_seconds: Seconds = 30.0
    max_retries: int = Field(default=2, ge=0, le=5)
    context_tokens: int = Field(default=8192, ge=1024, le=10**7)
    max_answer_tokens: int = Field(default=1024, ge=16, le=10**6)
    tokenizer: str = Field(
        default="",
        max_length=100,
        description="Model folder on the server with a tokenizer.json to count tokens; empty: the embedding model's.",
    )
    temperature: float = Field(default=0.1, ge=0, le=2, description="For requests that set none.")
    allows_system_prompt: bool = Field(default=True, description="Whether applications may add a system prompt.")
    min_temperature: float = Field(default=0.0, ge=0, le=2, description="Minimum temperature that a request may set.")
    max_temperature: float = Field(default=1.0, ge=0, le=2, description="Maximum temperature that a request may set.")
    prompt_price: Price = Decimal(0)
    completion_price: Price = Decimal(0)
    fallback: Slug | None = Field(default=None, description="Slug of the model to use when this one fails, or null.")
    enabled: bool = True
    default: bool = Field(default=False, description="Answers if no routing rule selects another model.")


class LanguageModelIn(LanguageModelChange):
    """A new language model. An empty slug is generated from the name."""

    name: str = Field(min_length=1, max_length=120)
    base_url: str = Field(min_length=1, max_length=500)
    model: str = Field(min_length=1, max_length=200)


class LanguageModelOut(BaseModel):
    """A language model. Only the length of its key is included."""

    language_model: str = Field(description="The slug.")
    name: str
    api: str
    base_url: str
    api_version: str
    model: str
    api_key: int = Field(description="Characters of the key; 0 for none.")
    timeout_seconds: float
    silence_seconds: float
    max_retries: int
    context_tokens: int
    max_answer_tokens: int
    tokenizer: str
    temperature: float
    allows_system_prompt: bool
    min_temperature: float
    max_temperature: float
    prompt_price: Decimal
    completion_price: Decimal
    fallback: str | None
    enabled: bool
    default: bool
    locked: bool = Field(description="The environment configures it: its URL, model and key cannot be changed here.")
    state: ModelState = Field(
        description="ready: the last request succeeded; untried; failing: the last request failed; off; "
        "key_lost: its key cannot be decrypted."
    )
    since: datetime | None = Field(description="Time of the last answer, or of the first failure since then.")
    checked_at: datetime | None = Field(description="Time of the last request or check.")
    problem: str = Field(description="Why it fails; empty if it does not.")

    @classmethod
    def of(cls, model: LanguageModel, default: LanguageModel | None) -> Self:
        """Return the response for a model; `default` is the model that answers if no rule selects another."""
        status = status_of(model)
        return filled(
            cls,
            model,
            language_model=model.slug,
            api_key=key_length(model),
            fallback=model.fallback.slug if model.fallback else None,
            enabled=model.is_enabled,
            default=default is not None and default.pk == model.pk,
            locked=model.is_locked,
            **{name: getattr(status, name) for name in ("state", "since", "checked_at", "problem")},
        )


class TrialOut(BaseModel):
    """The result of a test of a language model."""

    ok: bool
    problem: str
    said: str
    first_token_seconds: float | None
    seconds: float
    models: list[str] = Field(description="Other models of the service; empty if it does not list them.")

    @classmethod
    def of(cls, trial: Trial) -> Self:
        """Return the response for a test."""
        return filled(cls, trial, said=trial.answer)


class RuleIn(StrictBody):
    """A rule for one user or for one compartment."""

    user: str | None = Field(default=None, max_length=150)
    compartment: str | None = Field(default=None, max_length=50)
    language_model: str | None = Field(description="A slug; null for no language model.", max_length=50)


class RuleOut(BaseModel):
    """A routing rule: a user's selects a model; a compartment's allows only that model to read its passages."""

    user: str | None
    compartment: str | None
    language_model: str | None

    @classmethod
    def of(cls, rule: RoutingRule) -> Self:
        """Return the response for a rule."""
        return cls(
            user=rule.user.get_username() if rule.user else None,
            compartment=rule.compartment.slug if rule.compartment else None,
            language_model=rule.language_model.slug if rule.language_model else None,
        )


class UsageLine(BaseModel):
    """Usage of some answers."""

    name: str = Field(description="The user, the key's prefix, the model or the month; empty for the total.")
    answers: int
    prompt_tokens: int
    completion_tokens: int
    cost: Decimal = Field(description="In the installation's currency, at the prices of that time.")
    estimated: int = Field(description="Answers with token counts estimated here: the service reported none.")

    @classmethod
    def of(cls, name: str, sums: Sums) -> Self:
        """Return the response for sums."""
        return filled(cls, sums, name=name)


class UsageOut(BaseModel):
    """Usage of a period."""

    first: date
    last: date
    total: UsageLine
    by: Literal["user", "key", "model", "month"]
    lines: list[UsageLine]


def line_name(line: Line, by: str) -> str:
    """Return the name of a line; "deleted" for a user, key or model that no longer exists."""
    fields = {"user": "user__username", "key": "key__prefix", "model": "model_name", "month": "month"}
    value = line.names[fields[by]]
    if by == "month":
        return f"{value:%Y-%m}"
    return value or ("no key" if by == "key" else "deleted")


@router.get("/language-models", response={200: list[LanguageModelOut], **REFUSALS}, summary="List language models")
def list_models(request: HttpRequest) -> list[LanguageModelOut]:
    """Return all language models, by name. For admins."""
    _admin(request)
    models = stored_models()
    return [LanguageModelOut.of(model, default_of(models)) for model in models]


@router.post(
    "/language-models",
    response={201: LanguageModelOut, **CHANGE_REFUSALS},
    openapi_extra={
        "responses": {
            201: links(__name__, "slug", "language_model", "read_model", "patch_model", "remove_model", "try_stored")
        }
    },
    summary="Add a language model",
)
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
    found = Compartment.objects.filter(slug=storable(compartment or ""))
    return first_or(NotFoundError("No compartment has this slug."), found)
