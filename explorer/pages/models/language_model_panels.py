"""Rows of language models and routing rules, and results of tests."""

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
    ModelState.UNTRIED: "not tested yet",
    ModelState.FAILING: "not answering",
    ModelState.OFF: "off",
    ModelState.KEY_LOST: "key cannot be decrypted",
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
    #: The state as text: "not answering for 3 minutes".
    label: str
    tone: str
    #: The error, or the time of the last answer; empty if unknown.
    detail: str
    fallback: str
    context: int
    price: str
    is_default: bool
    is_locked: bool
    has_key: bool


@dataclass(frozen=True, slots=True)
class RuleRow:
    """A routing rule with its effect."""

    id: int
    #: "compartment" or "user".
    kind: str
    name: str
    effect: str
    model: str


@dataclass(frozen=True, slots=True)
class TrialSummary:
    """The result of a test."""

    ok: bool
    heading: str
    rows: tuple[tuple[str, str], ...]
    models: tuple[str, ...]


def model_rows(models: Sequence[LanguageModel], default: LanguageModel | None, now: datetime) -> list[ModelRow]:
    """Return the rows of the list, the default first."""
    ordered = by_rank(models, default)
    return [_row(model, now, is_default=default is not None and model.pk == default.pk) for model in ordered]


def by_rank(models: Sequence[LanguageModel], default: LanguageModel | None) -> list[LanguageModel]:
    """Return the models, the default first and disabled ones last."""
    return sorted(models, key=lambda model: (default is None or model.pk != default.pk, not model.is_enabled))


def rule_rows(rules: Iterable[RoutingRule]) -> list[RuleRow]:
    """Return the rows of rules, whose users, compartments and models must be loaded."""
    return [_rule(rule) for rule in rules]


def trial_summary(trial: Trial) -> TrialSummary:
    """Return the result of a test as text."""
    if not trial.ok:
        return TrialSummary(ok=False, heading="No answer", rows=(("Reason", trial.problem),), models=trial.models)
    usage = f"{trial.usage.prompt} input, {trial.usage.completion} output" if trial.usage else "not reported"
    rows = (
        ("Answer", trial.answer),
        ("Time to first token", _seconds(trial.first_token_seconds)),
        ("Total time", _seconds(trial.seconds)),
        ("Tokens", usage),
    )
    return TrialSummary(ok=True, heading="The model answers", rows=rows, models=trial.models)


def money(amount: Decimal) -> str:
    """Return an amount with two decimal places from 1, four below; "0" for none."""
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
    """Return the error of a model, or the time of its last answer."""
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
        effect = f"passages go only to {model}" if model else "passages go to no language model"
        return RuleRow(rule.pk, "compartment", rule.compartment.name, effect, model)
    name = rule.user.get_username() if rule.user else ""
    return RuleRow(rule.pk, "user", name, f"answered by {model}" if model else "answered with quotes only", model)


def _seconds(value: float | None) -> str:
    return "\N{EN DASH}" if value is None else f"{value * 1000:,.0f} ms" if value < 1 else f"{value:.1f} s"
