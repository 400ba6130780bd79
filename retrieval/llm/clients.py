"""The language models at hand: one client per model in each process, remade when its settings change."""

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

#: The name of the one secret that a language model has.
KEY: Final = "api_key"

_clients: Final[dict[int, ModelClient]] = {}
_lock: Final = Lock()


def client_of(model: LanguageModel) -> ModelClient:
    """Return the client of a stored model; raise ConfigError when its key cannot be opened."""
    service = service_of(model)
    with _lock:
        kept = _clients.get(model.pk)
        if kept is not None and kept.service == service:
            return kept
        if kept is not None:
            kept.close()
        _clients[model.pk] = ModelClient(service)
        return _clients[model.pk]


def forget_others(ids: Iterable[int]) -> None:
    """Close the clients of models that are gone; `ids` are those that are left."""
    left = set(ids)
    with _lock:
        for gone in _clients.keys() - left:
            _clients.pop(gone).close()


def service_of(model: LanguageModel, key: str | None = None) -> ModelService:
    """Return how a model is asked, with another key than the stored one where `key` is given; raise ConfigError."""
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
    """Return a model's key, empty for none; raise ConfigError when it cannot be opened."""
    if model.is_locked:
        return settings.CORECUBE_LLM_API_KEY
    return unseal(model.sealed_key, Purpose.LANGUAGE_MODEL).get(KEY, "")


def usable_client(model: LanguageModel) -> ModelClient | None:
    """Return the client of a model that can be asked; None for one that is off or whose key cannot be opened."""
    if not model.is_enabled:
        return None
    try:
        return client_of(model)
    except ConfigError:
        logger.warning("answer.key_not_opened model=%s", model.slug)
        return None
