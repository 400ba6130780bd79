"""Clients of the stored language models: one per model in each process, replaced when its settings change."""

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
        _clients[model.pk] = ModelClient(service)
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
