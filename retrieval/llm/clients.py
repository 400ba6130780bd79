"""The stored language models: the environment's locked row, and a client of each model in each process."""

import logging
from collections.abc import Iterable
from threading import Lock
from typing import Final

from django.conf import settings

from corecube.errors import ConfigError
from corecube.secrets import Purpose, unseal
from retrieval.llm.language_model import ModelClient
from retrieval.llm.service import Api, ModelService
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


logger = logging.getLogger(__name__)

KEY: Final = "api_key"

_clients: Final[dict[int, ModelClient]] = {}
_lock: Final = Lock()


def client_of(model: LanguageModel) -> ModelClient:
    """Return the client of a stored model; raise ConfigError if its key cannot be decrypted."""
    service = service_of(model)
    with _lock:
        client = _clients.get(model.pk)
        if client is not None and client.service == service:
            return client
        if client is not None:
            client.close()
        # A changed model begins without failures.
        _clients[model.pk] = ModelClient(service, f"{model.pk} {service} {service.api_key}")
        return _clients[model.pk]


def close_others(ids: Iterable[int]) -> None:
    """Close the clients of deleted models; `ids` are the existing ones."""
    existing = set(ids)
    with _lock:
        for deleted in _clients.keys() - existing:
            _clients.pop(deleted).close()


def service_of(model: LanguageModel, key: str | None = None) -> ModelService:
    """Return the service of a model, with `key` instead of the stored one if given; raise ConfigError."""
    return ModelService(
        name=model.name,
        api=Api(model.api),
        base_url=model.base_url,
        api_version=model.api_version,
        model=model.model,
        api_key=key_of(model) if key is None else key,
        timeout_seconds=model.timeout_seconds,
        silence_seconds=model.silence_seconds,
        max_retries=model.max_retries,
        max_answer_tokens=model.max_answer_tokens,
        temperature=model.temperature,
    )


def key_of(model: LanguageModel) -> str:
    """Return a model's key, empty without one; raise ConfigError if it cannot be decrypted."""
    if model.is_locked:
        return settings.CORECUBE_LLM_API_KEY
    return unseal(model.sealed_key, Purpose.LANGUAGE_MODEL).get(KEY, "")


def usable_client(model: LanguageModel) -> ModelClient | None:
    """Return the client of a model; None if the model is off or its key cannot be decrypted."""
    if not model.is_enabled:
        return None
    try:
        return client_of(model)
    except ConfigError:
        logger.warning("language_model.key_not_decrypted model=%s", model.slug)
        return None
