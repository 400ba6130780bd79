"""The service of a language model: its address, its request format, and the optional fields that it accepts."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final
from urllib.parse import urlsplit

from retrieval.llm.types import NO_OPTIONS, Message, Options

#: Names of the field `seed`, in the order of use; Mistral has another one.
_SEED_FIELDS: Final = ("seed", "random_seed", "")
_STOP: Final = re.compile(r"\bstop\b")


class Api(StrEnum):
    """The API of a service."""

    OPENAI = "openai"
    AZURE = "azure"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelService:
    """A model of a service, with its time limits."""

    name: str
    api: Api = Api.OPENAI
    base_url: str  #: Up to and including /v1; for Azure the resource's address.
    api_version: str = ""
    model: str  #: The service's name of the model; for Azure the deployment.
    api_key: str = field(default="", repr=False)
    timeout_seconds: float = 60.0  #: Total timeout of an answer, including retries.
    silence_seconds: float = 30.0  #: Token timeout: before the first token, and between two.
    max_retries: int = 2
    max_answer_tokens: int = 1024
    temperature: float = 0.1

    @property
    def list_headers(self) -> dict[str, str]:
        """The headers of the request for the list of models: Anthropic's has its own."""
        if not self.api_key or urlsplit(self.base_url).hostname != "api.anthropic.com":
            return {}
        return {"x-api-key": self.api_key, "anthropic-version": "2023-06-01"}


@dataclass(frozen=True, slots=True)
class Dialect:
    """The optional request fields that a service accepts, learnt from its errors."""

    asks_usage: bool = True
    tokens_field: str = "max_tokens"
    sets_temperature: bool = True
    takes_stop: bool = True
    seed_field: str = _SEED_FIELDS[0]  #: Empty if the service has none.
    refused_formats: frozenset[str] = frozenset()  #: Types of `response_format` that the service refuses.

    def request(
        self, service: ModelService, messages: Sequence[Message], options: Options = NO_OPTIONS
    ) -> dict[str, Any]:
        """Return the body of a streamed chat completion, without the fields that the service does not support."""
        body: dict[str, Any] = {
            "model": service.model,
            "messages": [dict(message) for message in messages],
            "stream": True,
            self.tokens_field: options.max_tokens or service.max_answer_tokens,
        }
        if self.sets_temperature:
            body["temperature"] = service.temperature if options.temperature is None else options.temperature
        if self.asks_usage:
            body["stream_options"] = {"include_usage": True}
        if options.stop and self.takes_stop:
            body["stop"] = list(options.stop)
        if options.seed is not None and self.seed_field == _SEED_FIELDS[0]:
            body["seed"] = options.seed
        elif options.seed is not None and self.seed_field:
            # The SDK has no argument of this name.
            body["extra_body"] = {self.seed_field: options.seed}
        if options.response_format is not None and self.takes_format(options.response_format):
            body["response_format"] = dict(options.response_format)
        return body

    def takes_format(self, response_format: Mapping[str, Any]) -> bool:
        """Return whether the service may support a format."""
        return response_format.get("type") not in self.refused_formats

    def ignored(self, options: Options) -> Iterator[str]:
        """Yield the names of the options that the service does not support."""
        if options.temperature is not None and not self.sets_temperature:
            yield "temperature"
        if options.stop and not self.takes_stop:
            yield "stop"
        if options.seed is not None and not self.seed_field:
            yield "seed"

    def without(self, complaint: str, options: Options = NO_OPTIONS) -> "Dialect | None":
        """Return a simpler dialect after a service's complaint; None if nothing is left to remove.

        The field that the complaint names is removed; if it names none, an optional format, then the usage.
        """
        return next(self._simpler(complaint.lower(), options), None)

    def _simpler(self, named: str, options: Options) -> Iterator["Dialect"]:
        form = options.response_format
        has_format = form is not None and self.takes_format(form)
        if has_format and ("response_format" in named or "schema" in named):
            yield self._without_format(form)
        if self.asks_usage and "stream_options" in named:
            yield replace(self, asks_usage=False)
        if self.sets_temperature and "temperature" in named:
            yield replace(self, sets_temperature=False)
        if self.tokens_field == "max_tokens" and "max_tokens" in named:
            yield replace(self, tokens_field="max_completion_tokens")
        if options.seed is not None and self.seed_field and self.seed_field in named:
            yield replace(self, seed_field=_SEED_FIELDS[_SEED_FIELDS.index(self.seed_field) + 1])
        if options.stop and self.takes_stop and _STOP.search(named):
            yield replace(self, takes_stop=False)
        if has_format and options.is_format_optional:
            yield self._without_format(form)
        if self.asks_usage:
            yield replace(self, asks_usage=False)

    def _without_format(self, response_format: Mapping[str, Any] | None) -> "Dialect":
        refused = str((response_format or {}).get("type"))
        return replace(self, refused_formats=self.refused_formats | {refused})
