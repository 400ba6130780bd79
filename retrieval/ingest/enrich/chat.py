"""A client for a language model with an OpenAI-compatible chat endpoint."""

import json
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.conf import settings

from corecube.errors import ConfigError
from retrieval.encoders.bounded_http import BoundedClient, ServiceFaultError
from retrieval.errors import EnrichError
from retrieval.ingest.enrich.prompts import MAX_ANSWER_TOKENS

_ATTEMPTS: Final = 3
#: Seconds before the second attempt, doubled before the third; each times a random factor from 0.5 to 1.5.
_FIRST_WAIT_SECONDS: Final = 1.0
_MAX_WAIT_SECONDS: Final = 30.0
_RANDOM: Final = random.SystemRandom()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatService:
    """The address and name of a model."""

    url: str
    model: str
    api_key: str = field(default="", repr=False)
    timeout_seconds: float = 60.0
    first_wait_seconds: float = _FIRST_WAIT_SECONDS


def configured_service() -> ChatService | None:
    """Return the installation's model, None if none is configured; raise ConfigError for half a configuration."""
    url, model = settings.CORECUBE_ENRICH_URL, settings.CORECUBE_ENRICH_MODEL
    if bool(url) != bool(model):
        raise ConfigError("Set both CORECUBE_ENRICH_URL and CORECUBE_ENRICH_MODEL, or neither.")
    return ChatService(url=url, model=model, api_key=settings.CORECUBE_ENRICH_API_KEY) if url else None


class ChatModel:
    """Answers messages. Safe to call from several threads."""

    def __init__(self, service: ChatService) -> None:
        self._service = service
        headers = {"authorization": f"Bearer {service.api_key}"} if service.api_key else {}
        self._client = BoundedClient(headers)

    def answer(self, messages: Sequence[Mapping[str, str]], *, max_tokens: int = MAX_ANSWER_TOKENS) -> str:
        """Return the model's answer, of at most `max_tokens` tokens.

        A transient failure (timeout, 429, 5xx) is tried three times, with the waits that the service requests. Raises
        EnrichError, whose message has nothing that was sent or received.
        """
        body = json.dumps(
            {"model": self._service.model, "messages": list(messages), "max_tokens": max_tokens, "temperature": 0}
        ).encode()
        for attempt in range(_ATTEMPTS):
            try:
                return _text(self._client.post(self._service.url, body, timeout_seconds=self._service.timeout_seconds))
            except ServiceFaultError as fault:
                if not fault.is_retryable or attempt == _ATTEMPTS - 1:
                    raise EnrichError(f"The language model {fault}.") from fault
                backoff = self._service.first_wait_seconds * 2**attempt * _RANDOM.uniform(0.5, 1.5)
                wait = backoff if fault.retry_after_seconds is None else fault.retry_after_seconds
                time.sleep(min(wait, _MAX_WAIT_SECONDS))
        raise EnrichError

    def close(self) -> None:
        """Close its connections."""
        self._client.close()


def _text(content: bytes) -> str:
    try:
        answer: Any = json.loads(content)
        text = answer["choices"][0]["message"]["content"]
    except (ValueError, LookupError, TypeError) as error:
        raise EnrichError("The language model's answer has no text.") from error
    if not isinstance(text, str):
        raise EnrichError("The language model's answer has no text.")
    return text
