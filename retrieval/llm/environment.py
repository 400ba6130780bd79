"""The language model of the environment, stored as a locked row."""

from typing import Final

from django.conf import settings

from retrieval.models import LanguageModel

SLUG: Final = "environment"


def is_configured() -> bool:
    """Return whether the environment configures a language model, which is the default then."""
    return bool(settings.CORECUBE_LLM_URL)


def stored_models() -> list[LanguageModel]:
    """Return all language models by name, after updating the environment's."""
    models = list(LanguageModel.objects.select_related("fallback"))
    locked = next((model for model in models if model.is_locked), None)
    if _is_current(locked):
        return models
    _update(locked)
    return list(LanguageModel.objects.select_related("fallback"))


def default_of(models: list[LanguageModel]) -> LanguageModel | None:
    """Return the default model: the environment's, else the one that is marked as default."""
    if is_configured():
        return next((model for model in models if model.is_locked), None)
    return next((model for model in models if model.is_default), None)


def _is_current(locked: LanguageModel | None) -> bool:
    if locked is None:
        return not is_configured()
    if not is_configured():
        return not locked.is_enabled
    configured = (settings.CORECUBE_LLM_URL, settings.CORECUBE_LLM_MODEL, True)
    return (locked.base_url, locked.model, locked.is_enabled) == configured


def _update(locked: LanguageModel | None) -> None:
    """Store the environment's model; one that is no longer configured is switched off and stays for rules and usage."""
    if not is_configured():
        LanguageModel.objects.filter(is_locked=True).update(is_enabled=False)
        return
    fields = {"base_url": settings.CORECUBE_LLM_URL, "model": settings.CORECUBE_LLM_MODEL, "is_enabled": True}
    # Its status at another address is unknown.
    unknown = {"answered_at": None, "failing_since": None, "checked_at": None, "failure": ""}
    if locked is not None:
        LanguageModel.objects.filter(pk=locked.pk).update(**fields, **unknown)
        return
    # Another process may create it at the same time.
    LanguageModel.objects.get_or_create(
        slug=SLUG, defaults={"name": "From the environment", "is_locked": True, **fields}
    )
