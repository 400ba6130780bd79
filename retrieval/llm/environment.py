"""The language model that the environment names, kept as a row like any other, and locked."""

from typing import Final

from django.conf import settings

from retrieval.models import LanguageModel

SLUG: Final = "environment"


def is_named() -> bool:
    """Return whether the environment names a language model; it is the default then."""
    return bool(settings.CORECUBE_LLM_URL)


def stored_models() -> list[LanguageModel]:
    """Return all language models, by name, the environment's in step with the environment."""
    models = list(LanguageModel.objects.select_related("fallback"))
    locked = next((model for model in models if model.is_locked), None)
    if _is_in_step(locked):
        return models
    _bring_in_step(locked)
    return list(LanguageModel.objects.select_related("fallback"))


def default_of(models: list[LanguageModel]) -> LanguageModel | None:
    """Return the model that answers where no rule names another: the environment's, else the one marked so."""
    if is_named():
        return next((model for model in models if model.is_locked), None)
    return next((model for model in models if model.is_default), None)


def _is_in_step(locked: LanguageModel | None) -> bool:
    if locked is None:
        return not is_named()
    if not is_named():
        return not locked.is_enabled
    wanted = (settings.CORECUBE_LLM_URL, settings.CORECUBE_LLM_MODEL, True)
    return (locked.base_url, locked.model, locked.is_enabled) == wanted


def _bring_in_step(locked: LanguageModel | None) -> None:
    """Write what the environment says; a model that it names no more stays, switched off, for rules and usage."""
    if not is_named():
        LanguageModel.objects.filter(is_locked=True).update(is_enabled=False)
        return
    named = {"base_url": settings.CORECUBE_LLM_URL, "model": settings.CORECUBE_LLM_MODEL, "is_enabled": True}
    # Nothing is known of it at another address.
    untried = {"answered_at": None, "failing_since": None, "checked_at": None, "failure": ""}
    if locked is not None:
        LanguageModel.objects.filter(pk=locked.pk).update(**named, **untried)
        return
    # Another process may make it at the same moment.
    LanguageModel.objects.get_or_create(
        slug=SLUG, defaults={"name": "From the environment", "is_locked": True, **named}
    )
