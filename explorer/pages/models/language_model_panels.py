"""Language models, their rules and what a trial of one said, as the console shows them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final
from urllib.parse import urlsplit

from explorer import wording
from retrieval.admin.language_models import key_length
from retrieval.llm.reachability import ModelState, ModelStatus, status_of
from retrieval.llm.trial import Trial
from retrieval.models import LanguageModel, RoutingRule

_LABELS: Final = {
    ModelState.READY: "ready",
    ModelState.UNTRIED: "not tried yet",
    ModelState.FAILING: "not answering",
    ModelState.OFF: "off",
    ModelState.KEY_LOST: "key cannot be opened",
}
_TONES: Final = {
    ModelState.READY: "good",
    ModelState.UNTRIED: "warn",
    ModelState.FAILING: "bad",
    ModelState.OFF: "",
    ModelState.KEY_LOST: "bad",
}


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A language model in the list."""

    slug: str
    name: str
    model: str
    host: str
    state: ModelState
    #: The state in words: "not answering for 3 minutes", and its tone.
    label: str
    tone: str
    #: Why it fails, or when it last answered; empty where nothing is known.
    detail: str
    fallback: str
    context: int
    price: str
    is_default: bool
    is_locked: bool
    has_key: bool


@dataclass(frozen=True, slots=True)
class RuleRow:
    """A routing rule: whom it concerns, and what it does."""

    id: int
    #: "compartment" or "user".
    kind: str
    name: str
    does: str
    model: str


@dataclass(frozen=True, slots=True)
class TrialWords:
    """What a trial said."""

    ok: bool
    heading: str
    rows: tuple[tuple[str, str], ...]
    models: tuple[str, ...]


def model_rows(models: Sequence[LanguageModel], default: LanguageModel | None, now: datetime) -> list[ModelRow]:
    """Return the rows of the list, the default first."""
    ordered = by_rank(models, default)
    return [_row(model, now, is_default=default is not None and model.pk == default.pk) for model in ordered]


def by_rank(models: Sequence[LanguageModel], default: LanguageModel | None) -> list[LanguageModel]:
    """Return the models with the default first, and those that are off last."""
    return sorted(models, key=lambda model: (default is None or model.pk != default.pk, not model.is_enabled))


def rule_rows(rules: Iterable[RoutingRule]) -> list[RuleRow]:
    """Return the rules' rows; users, compartments and models must be read already."""
    return [_rule(rule) for rule in rules]


def trial_words(trial: Trial) -> TrialWords:
    """Return what a trial said in plain words."""
    if not trial.ok:
        return TrialWords(ok=False, heading="It does not answer", rows=(("Why", trial.problem),), models=trial.models)
    usage = (
        f"{trial.usage.prompt} read, {trial.usage.completion} written" if trial.usage else "the service does not say"
    )
    rows = (
        ("It said", trial.said),
        ("First token", _seconds(trial.first_token_seconds)),
        ("Whole answer", _seconds(trial.seconds)),
        ("Tokens", usage),
    )
    return TrialWords(ok=True, heading="It answers", rows=rows, models=trial.models)


def money(amount: Decimal) -> str:
    """Return an amount in the installation's currency: two places from 1 on, four below; "0" for none."""
    if not amount:
        return "0"
    return f"{amount:,.2f}" if amount >= 1 else f"{amount:.4f}"


def _row(model: LanguageModel, now: datetime, *, is_default: bool) -> ModelRow:
    status = status_of(model)
    return ModelRow(
        slug=model.slug,
        name=model.name,
        model=model.model,
        host=urlsplit(model.base_url).netloc,
        state=status.state,
        label=_label(status, now),
        tone=_TONES[status.state],
        detail=_detail(status, now),
        fallback=model.fallback.name if model.fallback else "",
        context=model.context_tokens,
        price=_price(model),
        is_default=is_default,
        is_locked=model.is_locked,
        has_key=bool(key_length(model)),
    )


def _label(status: ModelStatus, now: datetime) -> str:
    label, age = _LABELS[status.state], wording.ago(status.since or now, now)
    return f"{label} for {age.removesuffix(' ago')}" if status.state is ModelState.FAILING and "ago" in age else label


def _detail(status: ModelStatus, now: datetime) -> str:
    """Return why a model fails, or how old it is that it was found to answer."""
    if status.state is ModelState.READY and status.since:
        return f"answered {wording.ago(status.since, now)}"
    return status.problem


def _price(model: LanguageModel) -> str:
    if not (model.prompt_price or model.completion_price):
        return "\N{EN DASH}"
    return f"{money(model.prompt_price)} / {money(model.completion_price)}"


def _rule(rule: RoutingRule) -> RuleRow:
    model = rule.language_model.name if rule.language_model else ""
    if rule.compartment is not None:
        does = f"its passages go to {model} only" if model else "its passages go to no language model"
        return RuleRow(rule.pk, "compartment", rule.compartment.name, does, model)
    name = rule.user.get_username() if rule.user else ""
    return RuleRow(rule.pk, "user", name, f"answered by {model}" if model else "answered by quotations only", model)


def _seconds(value: float | None) -> str:
    return "\N{EN DASH}" if value is None else f"{value * 1000:,.0f} ms" if value < 1 else f"{value:.1f} s"
