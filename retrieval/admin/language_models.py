"""Create, change and delete language models and routing rules, with validation, encryption and audit events.

The console and the API both use these functions.
"""

from typing import Any, Final
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError

from corecube import audit
from corecube.database import atomic_change, first_or
from corecube.errors import ConfigError, ConflictError, InvalidFieldsError, NotFoundError
from corecube.metadata_addresses import REFUSAL, names_refused
from corecube.models import Compartment, User
from corecube.secrets import Purpose, seal
from retrieval.llm.clients import KEY, is_configured, key_of
from retrieval.llm.reachability import reset_status
from retrieval.llm.token_counters import tokenizer_problem
from retrieval.models import LanguageModel, RoutingRule

#: Slugs with another meaning: in the console's URLs, or for answers without a language model.
_RESERVED: Final = frozenset({"new", "local", "test", "routing", "usage", "extractive", "environment"})
#: Fields of a locked model that the environment sets.
LOCKED: Final = frozenset({"slug", "api", "base_url", "api_version", "model", "is_default", "is_enabled"})
CHANGEABLE: Final = (
    *("slug", "name", "api", "base_url", "api_version", "model", "timeout_seconds", "silence_seconds", "max_retries"),
    *("context_tokens", "max_answer_tokens", "tokenizer", "temperature", "prompt_price", "completion_price"),
    *("allows_system_prompt", "min_temperature", "max_temperature", "fallback_id", "is_enabled", "is_default"),
)
#: A change of these means another service or account, so the stored status no longer applies.
_SERVICE_FIELDS: Final = frozenset({"api", "base_url", "api_version", "model", "api_key"})
_TAKEN: Final = "Another user has just used this slug or changed the default model."
_KEY_AGAIN: Final = "Enter the key again or remove it: the model now has another host."
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class InvalidModelError(InvalidFieldsError, code="invalid_language_model"):
    """The language model is not valid."""


class UnknownModelError(NotFoundError, code="unknown_language_model"):
    """There is no such language model."""


class RuledModelError(ConflictError, code="language_model_in_use"):
    """Routing rules use this language model; change them first."""


class LockedModelError(ConflictError, code="language_model_locked"):
    """The environment configures this language model; change it there."""


def model_named(slug: str) -> LanguageModel:
    """Return a language model; raise UnknownModelError."""
    # PostgreSQL rejects NUL, and no slug contains it.
    found = LanguageModel.objects.select_related("fallback").filter(slug=slug.replace("\0", ""))
    return first_or(UnknownModelError(), found)


def problems_of(model: LanguageModel, key: str | None) -> dict[str, str]:
    """Return the validation errors of a model, by field.

    `key` is a new one, empty to remove it, None for no change. An unchanged key is not sent to another host, since
    the operator of that host could read it.
    """
    problems = _row_problems(model)
    if key is not None and (not key.isascii() or not key.isprintable() or " " in key):
        problems["api_key"] = "A key has only visible ASCII characters, without spaces."
    before = LanguageModel.objects.filter(pk=model.pk).first() if model.pk else None
    if model.is_default and is_configured() and not (before and before.is_default):
        problems.setdefault("is_default", "The environment sets the default model.")
    if before is None:
        return problems
    if key is None and before.sealed_key and _destination(model) != _destination(before):
        problems["api_key"] = _KEY_AGAIN
    if before.is_locked and (key is not None or _changes(before, model) & LOCKED):
        problems.setdefault("", str(LockedModelError()))
    return problems


def _destination(model: LanguageModel) -> tuple[str, str, int | None]:
    try:
        parts = urlsplit(model.base_url)
        return parts.scheme, parts.hostname or "", parts.port or _DEFAULT_PORTS.get(parts.scheme)
    except ValueError:
        return "", model.base_url, None


def key_length(model: LanguageModel) -> int:
    """Return the length of a model's key, 0 for none and for one that can no longer be decrypted."""
    try:
        return len(key_of(model))
    except ConfigError:
        return 0


def require_right(model: LanguageModel, key: str | None) -> None:
    """Raise InvalidModelError for an invalid model."""
    if problems := problems_of(model, key):
        raise InvalidModelError(problems)


def create_model(model: LanguageModel, key: str, *, actor: User) -> LanguageModel:
    """Store a new model with its key, empty for none, and return it; raise InvalidModelError, ConflictError."""
    require_right(model, key)
    model.sealed_key = _sealed(key)
    with atomic_change(_TAKEN):
        _clear_other_default(model)
        model.save()
        audit.record("language_model.created", actor=actor, subject=model.slug, has_key=bool(key), **_audited(model))
    return model


def change_model(model: LanguageModel, key: str | None, *, actor: User) -> list[str]:
    """Store the changes of a model and return the names of the changed fields.

    An empty `key` removes it, None: no change. Raises InvalidModelError, ConflictError, NotFoundError if deleted.
    """
    require_right(model, key)
    with atomic_change(_TAKEN):
        before = LanguageModel.objects.select_for_update().get(pk=model.pk)
        changed = [*sorted(_changes(before, model)), *(["api_key"] if key is not None else [])]
        if not changed:
            return []
        if key is not None:
            model.sealed_key = _sealed(key)
        _clear_other_default(model)
        forgotten = reset_status(model) if _SERVICE_FIELDS & set(changed) else ()
        model.save(update_fields=[*CHANGEABLE, *(["sealed_key"] if key is not None else []), *forgotten])
        audit.record("language_model.changed", actor=actor, subject=model.slug, changed=changed, **_audited(model))
    return changed


def delete_model(model: LanguageModel, *, actor: User) -> None:
    """Delete a model; its usage records stay. Raises RuledModelError, LockedModelError for the environment's model."""
    if model.is_locked and is_configured():
        raise LockedModelError
    with atomic_change():
        if model.rules.exists():
            raise RuledModelError
        model.delete()
        audit.record("language_model.deleted", actor=actor, subject=model.slug)


def set_rule(owner: User | Compartment, model: LanguageModel | None, *, actor: User) -> RoutingRule:
    """Set the model for a user, or the only model for a compartment's passages; None for no model."""
    with atomic_change():
        rule, _ = RoutingRule.objects.update_or_create(defaults={"language_model": model}, **_owner(owner))
        audit.record("routing.changed", actor=actor, subject=model.slug if model else "", **_owner_name(owner))
    return rule


def remove_rule(owner: User | Compartment, *, actor: User) -> bool:
    """Remove a rule, and return whether there was one."""
    with atomic_change():
        removed, _ = RoutingRule.objects.filter(**_owner(owner)).delete()
        if removed:
            audit.record("routing.removed", actor=actor, **_owner_name(owner))
    return bool(removed)


def _row_problems(model: LanguageModel) -> dict[str, str]:
    problems: dict[str, str] = {}
    if model.slug in _RESERVED and not model.is_locked:
        problems["slug"] = "This slug is reserved."
    try:
        # The default is not checked here: a new one replaces the previous one when it is saved.
        model.full_clean(exclude=["is_default"], validate_constraints=False)
        model.validate_unique()
    except ValidationError as error:
        for name, messages in error.message_dict.items():
            problems["" if name == "__all__" else name] = " ".join(messages)
    if "base_url" not in problems and (problem := _url_problem(model.base_url)):
        problems["base_url"] = problem
    if model.fallback_id is not None and model.fallback_id == model.pk:
        problems["fallback"] = "A model cannot be its own fallback."
    if model.max_answer_tokens and model.context_tokens and model.max_answer_tokens * 2 > model.context_tokens:
        problems.setdefault("max_answer_tokens", "Must be at most half of the context window.")
    if None not in {model.min_temperature, model.max_temperature} and model.min_temperature > model.max_temperature:
        problems.setdefault("max_temperature", "The maximum is below the minimum.")
    if model.tokenizer and "tokenizer" not in problems and (problem := tokenizer_problem(model.tokenizer)):
        problems["tokenizer"] = problem
    return problems


def _url_problem(url: str) -> str:
    """Return what is wrong with a URL, without repeating it: it may contain a password."""
    try:
        parts = urlsplit(url)
        is_complete = parts.scheme in _DEFAULT_PORTS and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return "This is not a valid URL."
    if not is_complete or not (url.isascii() and url.isprintable() and " " not in url):
        return "A URL starts with http:// or https:// and has a host."
    if parts.username is not None or parts.password is not None:
        return "The URL must not contain a user or a password."
    if names_refused(parts.hostname or ""):
        return REFUSAL
    return "The URL must not contain a query or a fragment." if parts.query or parts.fragment else ""


def _clear_other_default(model: LanguageModel) -> None:
    if model.is_default:
        LanguageModel.objects.filter(is_default=True).exclude(pk=model.pk).update(is_default=False)


def _changes(before: LanguageModel, after: LanguageModel) -> set[str]:
    return {name.removesuffix("_id") for name in CHANGEABLE if getattr(before, name) != getattr(after, name)}


def _audited(model: LanguageModel) -> dict[str, object]:
    """Return the details of an audit event: where passages are sent from now on."""
    host = urlsplit(model.base_url).hostname or ""
    fallback = model.fallback.slug if model.fallback else None
    return {"host": host, "enabled": model.is_enabled, "default": model.is_default, "fallback": fallback}


def _sealed(key: str) -> str:
    return seal({KEY: key} if key else {}, Purpose.LANGUAGE_MODEL)


def _owner(owner: User | Compartment) -> dict[str, Any]:
    return {"user" if isinstance(owner, User) else "compartment": owner}


def _owner_name(owner: User | Compartment) -> dict[str, str]:
    return {"user": owner.username} if isinstance(owner, User) else {"compartment": owner.slug}
