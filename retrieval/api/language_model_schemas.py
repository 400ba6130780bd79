"""Request and response bodies about language models, routing rules and usage."""

from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from retrieval.admin.language_models import key_length
from retrieval.api.schemas import StrictBody, filled
from retrieval.llm.reachability import ModelState, status_of
from retrieval.llm.trial import Trial
from retrieval.models import LanguageModel, RoutingRule
from retrieval.operations.usage import Line, Sums

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
    cost: Decimal = Field(description="In the installation's currency, at the prices of the time.")
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
