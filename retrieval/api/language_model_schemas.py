"""What the API reads and writes about language models, routing rules and usage."""

from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from retrieval.admin.language_models import key_length
from retrieval.api.request_body import RequestBody
from retrieval.llm.reachability import ModelState, status_of
from retrieval.llm.trial import Trial
from retrieval.models import LanguageModel, RoutingRule
from retrieval.operations.usage import Line, Sums

Slug = Annotated[str, Field(max_length=50, pattern=r"^[-a-zA-Z0-9_]*$")]
Seconds = Annotated[float, Field(ge=0.1, le=600)]
Price = Annotated[Decimal, Field(ge=0, max_digits=12, decimal_places=4, description="Of a million tokens.")]
_KEY: Final = "Write-only. An empty one is removed; null changes nothing."
ApiKeyIn = Annotated[str | None, Field(max_length=4000, repr=False, description=_KEY)]


class LanguageModelChange(RequestBody):
    """Settings to change; what is not named stays."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    name: str = Field(default="", max_length=120)
    slug: Slug = ""
    api: Literal["openai", "azure"] = "openai"
    base_url: str = Field(
        default="", max_length=500, description="Up to and with /v1; for Azure the resource's address."
    )
    api_version: str = Field(default="", max_length=40, description="Azure only.")
    model: str = Field(default="", max_length=200, description="What the service calls it; for Azure the deployment.")
    api_key: ApiKeyIn = None
    timeout_seconds: float = Field(default=60.0, ge=1, le=600, description="For a whole answer.")
    silence_seconds: Seconds = 30.0
    max_retries: int = Field(default=2, ge=0, le=5)
    context_tokens: int = Field(default=8192, ge=1024, le=10**7)
    max_answer_tokens: int = Field(default=1024, ge=16, le=10**6)
    tokenizer: str = Field(
        default="",
        max_length=100,
        description="Folder of the models on the server whose tokenizer.json counts its tokens; empty: the embedding "
        "model's stands in.",
    )
    temperature: float = Field(default=0.1, ge=0, le=2)
    prompt_price: Price = Decimal(0)
    completion_price: Price = Decimal(0)
    fallback: Slug | None = Field(
        default=None, description="Slug of the model that is asked when this one fails, or null."
    )
    enabled: bool = True
    default: bool = Field(default=False, description="Answers where no rule names another.")


class LanguageModelIn(LanguageModelChange):
    """A new language model. Without a slug it gets one from its name."""

    name: str = Field(min_length=1, max_length=120)
    base_url: str = Field(min_length=1, max_length=500)
    model: str = Field(min_length=1, max_length=200)


class LanguageModelOut(BaseModel):
    """A language model. Of its key only the length is told."""

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
    prompt_price: Decimal
    completion_price: Decimal
    fallback: str | None
    enabled: bool
    default: bool
    locked: bool = Field(description="The environment names it, and decides its address, its model and its key.")
    state: ModelState = Field(
        description="ready: it answered last; untried: nothing was asked yet; failing: the last request failed; off; "
        "key_lost: its key cannot be opened."
    )
    since: datetime | None = Field(description="When it last answered, or since when it fails.")
    checked_at: datetime | None = Field(description="When it was last asked or checked.")
    problem: str = Field(description="Why it fails; empty while it does not.")

    @classmethod
    def of(cls, model: LanguageModel, default: LanguageModel | None) -> Self:
        """Return a model as the API shows it; `default` is the one that answers where no rule names another."""
        same = (
            *("name", "api", "base_url", "api_version", "model", "timeout_seconds", "silence_seconds", "max_retries"),
            *("context_tokens", "max_answer_tokens", "tokenizer", "temperature", "prompt_price", "completion_price"),
        )
        status = status_of(model)
        return cls(
            language_model=model.slug,
            state=status.state,
            since=status.since,
            checked_at=status.checked_at,
            problem=status.problem,
            api_key=key_length(model),
            fallback=model.fallback.slug if model.fallback else None,
            enabled=model.is_enabled,
            default=default is not None and default.pk == model.pk,
            locked=model.is_locked,
            **{name: getattr(model, name) for name in same},
        )


class TrialOut(BaseModel):
    """What a language model answered when it was tried."""

    ok: bool
    problem: str
    said: str
    first_token_seconds: float | None
    seconds: float
    models: list[str] = Field(description="What else its service offers; empty where it does not say.")

    @classmethod
    def of(cls, trial: Trial) -> Self:
        """Return a trial as the API shows it."""
        return cls(
            ok=trial.ok,
            problem=trial.problem,
            said=trial.said,
            first_token_seconds=trial.first_token_seconds,
            seconds=trial.seconds,
            models=list(trial.models),
        )


class RuleIn(RequestBody):
    """A rule for one user or for one compartment."""

    model_config = ConfigDict(extra="forbid")

    user: str | None = Field(default=None, max_length=150)
    compartment: str | None = Field(default=None, max_length=50)
    language_model: str | None = Field(description="A slug; null for no language model at all.", max_length=50)


class RuleOut(BaseModel):
    """A rule: a user's chooses, a compartment's binds its passages to that model alone."""

    user: str | None
    compartment: str | None
    language_model: str | None

    @classmethod
    def of(cls, rule: RoutingRule) -> Self:
        """Return a rule as the API shows it."""
        return cls(
            user=rule.user.get_username() if rule.user else None,
            compartment=rule.compartment.slug if rule.compartment else None,
            language_model=rule.language_model.slug if rule.language_model else None,
        )


class UsageLine(BaseModel):
    """What some answers took."""

    name: str = Field(description="The user, the key's prefix, the model or the month; empty for the whole.")
    answers: int
    prompt_tokens: int
    completion_tokens: int
    cost: Decimal = Field(description="In the installation's currency, by the prices at the time.")
    estimated: int = Field(description="Answers whose tokens were counted here because the service did not say.")

    @classmethod
    def of(cls, name: str, sums: Sums) -> Self:
        """Return sums as the API shows them."""
        return cls(
            name=name,
            answers=sums.answers,
            prompt_tokens=sums.prompt_tokens,
            completion_tokens=sums.completion_tokens,
            cost=sums.cost,
            estimated=sums.estimated,
        )


class UsageOut(BaseModel):
    """Usage of some days, summed."""

    first: date
    last: date
    total: UsageLine
    by: Literal["user", "key", "model", "month"]
    lines: list[UsageLine]


def line_name(line: Line, by: str) -> str:
    """Return what a line is named by; what was deleted since is said to be."""
    fields = {"user": "user__username", "key": "key__prefix", "model": "model_name", "month": "month"}
    value = line.names[fields[by]]
    if by == "month":
        return f"{value:%Y-%m}"
    return value or ("no key" if by == "key" else "deleted")
