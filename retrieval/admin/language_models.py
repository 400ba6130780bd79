"""Making and changing language models and the rules that choose among them: checked, sealed, audited.

Console and API both come here.
"""

from collections.abc import Iterable
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError

from corecube import audit
from corecube.database import atomic_change
from corecube.errors import ConfigError, ConflictError, InvalidRequestError, NotFoundError
from corecube.metadata_addresses import REFUSAL, names_refused
from corecube.models import Compartment, User
from corecube.secrets import Purpose, seal
from retrieval.llm.clients import KEY, key_of
from retrieval.llm.environment import is_named
from retrieval.llm.reachability import forget_status
from retrieval.llm.token_counters import tokenizer_problem
from retrieval.models import LanguageModel, RoutingRule

#: Slugs that stand for something else: in the console's addresses, or for who only quotes.
_RESERVED: Final = frozenset({"new", "test", "routing", "usage", "extractive", "environment"})
#: What the environment decides of a locked model.
LOCKED: Final = frozenset({"slug", "api", "base_url", "api_version", "model", "is_default", "is_enabled"})
CHANGEABLE: Final = (
    *("slug", "name", "api", "base_url", "api_version", "model", "timeout_seconds", "silence_seconds", "max_retries"),
    *("context_tokens", "max_answer_tokens", "tokenizer", "temperature", "prompt_price", "completion_price"),
    *("fallback_id", "is_enabled", "is_default"),
)
#: With another of these it is another service or account, and nothing is known of it yet.
_OF_THE_SERVICE: Final = frozenset({"api", "base_url", "api_version", "model", "api_key"})
_TAKEN: Final = "Somebody else has just taken its slug, or made another model the default."
_KEY_AGAIN: Final = "Enter it again or remove it: the model is now at another host."
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class InvalidModelError(InvalidRequestError):
    """The language model cannot be as it was sent."""

    code: ClassVar[str] = "invalid_language_model"

    def __init__(self, problems: dict[str, str]) -> None:
        self.problems = problems
        field, words = next(iter(problems.items()))
        self.param = field or None
        super().__init__(f"{field}: {words}" if field else words)


class UnknownModelError(NotFoundError):
    """There is no such language model."""

    code: ClassVar[str] = "unknown_language_model"


class RuledModelError(ConflictError):
    """Rules name this language model; change them first."""

    code: ClassVar[str] = "language_model_in_use"


class LockedModelError(ConflictError):
    """The environment names this language model; change it there."""

    code: ClassVar[str] = "language_model_locked"


def model_named(slug: str) -> LanguageModel:
    """Return a language model; raise UnknownModelError."""
    # PostgreSQL takes no NUL, and no slug has one.
    model = LanguageModel.objects.select_related("fallback").filter(slug=slug.replace("\0", "")).first()
    if model is None:
        raise UnknownModelError
    return model


def problems_of(model: LanguageModel, key: str | None) -> dict[str, str]:
    """Return what is wrong with a model that is to be stored, by field.

    `key` is a new one, empty to remove it, None to keep it. A kept key does not follow to another host, since whoever
    runs that would read it.
    """
    problems = _row_problems(model)
    if key is not None and (not key.isascii() or not key.isprintable() or " " in key):
        problems["api_key"] = "A key is of visible ASCII signs without blanks."
    before = LanguageModel.objects.filter(pk=model.pk).first() if model.pk else None
    if model.is_default and is_named() and not (before and before.is_default):
        problems.setdefault("is_default", "The environment names the default.")
    if before is None:
        return problems
    if key is None and before.sealed_key and destination(model) != destination(before):
        problems["api_key"] = _KEY_AGAIN
    if before.is_locked and (key is not None or _changes(before, model) & LOCKED):
        problems.setdefault("", str(LockedModelError()))
    return problems


def destination(model: LanguageModel) -> tuple[str, str, int | None]:
    """Return where a model's key goes: scheme, host and port of its address."""
    try:
        parts = urlsplit(model.base_url)
        return parts.scheme, parts.hostname or "", parts.port or _DEFAULT_PORTS.get(parts.scheme)
    except ValueError:
        return "", model.base_url, None


def key_length(model: LanguageModel) -> int:
    """Return the length of a model's key, 0 for none and for one that cannot be opened any more."""
    try:
        return len(key_of(model))
    except ConfigError:
        return 0


def require_right(model: LanguageModel, key: str | None) -> None:
    """Raise InvalidModelError for a model that cannot be stored."""
    if problems := problems_of(model, key):
        raise InvalidModelError(problems)


def create_model(model: LanguageModel, key: str, *, actor: User) -> LanguageModel:
    """Store a new model with its key, empty for none, and return it; raise InvalidModelError, ConflictError."""
    require_right(model, key)
    model.sealed_key = _sealed(key)
    with atomic_change(_TAKEN):
        _make_room(model)
        model.save()
        audit.record("language_model.created", actor=actor, subject=model.slug, has_key=bool(key), **_told(model))
    return model


def change_model(model: LanguageModel, key: str | None, *, actor: User) -> list[str]:
    """Store what was changed in a model that was read before, and return the names of what did change.

    An empty `key` removes it, None keeps it. Raises InvalidModelError, ConflictError, NotFoundError when it is gone.
    """
    require_right(model, key)
    with atomic_change(_TAKEN):
        before = LanguageModel.objects.select_for_update().get(pk=model.pk)
        changed = [*sorted(_changes(before, model)), *(["api_key"] if key is not None else [])]
        if not changed:
            return []
        if key is not None:
            model.sealed_key = _sealed(key)
        _make_room(model)
        forgotten = forget_status(model) if _OF_THE_SERVICE & set(changed) else ()
        model.save(update_fields=[*CHANGEABLE, *(["sealed_key"] if key is not None else []), *forgotten])
        audit.record("language_model.changed", actor=actor, subject=model.slug, changed=changed, **_told(model))
    return changed


def delete_model(model: LanguageModel, *, actor: User) -> None:
    """Delete a model; what it used stays. Raises RuledModelError, and LockedModelError for the environment's."""
    if model.is_locked and is_named():
        raise LockedModelError
    with atomic_change():
        if model.rules.exists():
            raise RuledModelError
        model.delete()
        audit.record("language_model.deleted", actor=actor, subject=model.slug)


def set_rule(owner: User | Compartment, model: LanguageModel | None, *, actor: User) -> RoutingRule:
    """Let a model answer a user, or alone read a compartment's passages; None for no model at all."""
    with atomic_change():
        rule, _ = RoutingRule.objects.update_or_create(defaults={"language_model": model}, **_owner(owner))
        audit.record("routing.changed", actor=actor, subject=model.slug if model else "", **_said(owner))
    return rule


def remove_rule(owner: User | Compartment, *, actor: User) -> bool:
    """Take a rule away, and return whether there was one."""
    with atomic_change():
        removed, _ = RoutingRule.objects.filter(**_owner(owner)).delete()
        if removed:
            audit.record("routing.removed", actor=actor, **_said(owner))
    return bool(removed)


def fallback_choices(model: LanguageModel, models: Iterable[LanguageModel]) -> list[LanguageModel]:
    """Return the models that may follow a model: every other one. Circles end where they began."""
    return [it for it in models if it.pk != model.pk]


def _row_problems(model: LanguageModel) -> dict[str, str]:
    problems: dict[str, str] = {}
    if model.slug in _RESERVED and not model.is_locked:
        problems["slug"] = "This word stands for something else."
    try:
        # Making room comes later: a new default takes the place of the one before.
        model.full_clean(exclude=["is_default"], validate_constraints=False)
        model.validate_unique()
    except ValidationError as error:
        problems |= {_field(name): " ".join(words) for name, words in error.message_dict.items()}
    if "base_url" not in problems and (words := _address_problem(model.base_url)):
        problems["base_url"] = words
    if model.fallback_id is not None and model.fallback_id == model.pk:
        problems["fallback"] = "A model cannot follow itself."
    if model.max_answer_tokens and model.context_tokens and model.max_answer_tokens * 2 > model.context_tokens:
        problems.setdefault("max_answer_tokens", "The answer may take at most half of the context.")
    if model.tokenizer and "tokenizer" not in problems and (words := tokenizer_problem(model.tokenizer)):
        problems["tokenizer"] = words
    return problems


def _address_problem(address: str) -> str:
    """Return what is wrong with an address; it is not repeated, since it may hold a password."""
    try:
        parts = urlsplit(address)
        is_whole = parts.scheme in _DEFAULT_PORTS and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return "This is no address."
    if not is_whole or not (address.isascii() and address.isprintable() and " " not in address):
        return "An address begins with http:// or https:// and names a host."
    if parts.username is not None or parts.password is not None:
        return "The address must not hold a user or a password."
    if names_refused(parts.hostname or ""):
        return REFUSAL
    return "The address must not hold a query or a fragment." if parts.query or parts.fragment else ""


def _field(name: str) -> str:
    return "" if name == "__all__" else name


def _make_room(model: LanguageModel) -> None:
    """Let no other model be the default where this one is to be."""
    if model.is_default:
        LanguageModel.objects.filter(is_default=True).exclude(pk=model.pk).update(is_default=False)


def _changes(before: LanguageModel, after: LanguageModel) -> set[str]:
    return {name.removesuffix("_id") for name in CHANGEABLE if getattr(before, name) != getattr(after, name)}


def _told(model: LanguageModel) -> dict[str, object]:
    """Return what the audit log keeps: where passages go from now on."""
    host = urlsplit(model.base_url).hostname or ""
    fallback = model.fallback.slug if model.fallback else None
    return {"host": host, "enabled": model.is_enabled, "default": model.is_default, "fallback": fallback}


def _sealed(key: str) -> str:
    return seal({KEY: key} if key else {}, Purpose.LANGUAGE_MODEL)


def _owner(owner: User | Compartment) -> dict[str, Any]:
    return {"user" if isinstance(owner, User) else "compartment": owner}


def _said(owner: User | Compartment) -> dict[str, str]:
    return {"user": owner.username} if isinstance(owner, User) else {"compartment": owner.slug}
