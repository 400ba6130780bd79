"""What an API request sets for the language model that answers it, within an admin's limits."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from retrieval.llm.types import Notice, Options

LIMITED: Final = "parameter_limited"
IGNORED: Final = "parameter_ignored"
#: Codes of notices about the request only: they do not count as degraded.
ABOUT_REQUEST: Final = frozenset({LIMITED, IGNORED})
_MAX_SYSTEM_CHARACTERS: Final = 8000


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """An admin's limits for the requests of applications."""

    max_tokens: int = 1024
    min_temperature: float = 0.0
    max_temperature: float = 1.0
    allows_system_prompt: bool = True


def limited(options: Options, limits: Limits, *, model: str) -> tuple[Options, tuple[Notice, ...]]:
    """Return the options within the limits of a model, and a notice for each one that was changed or ignored."""
    notices: list[Notice] = []
    temperature, max_tokens, system = options.temperature, options.max_tokens, options.system
    if temperature is not None:
        temperature = min(max(temperature, limits.min_temperature), limits.max_temperature)
        if temperature != options.temperature:
            notices.append(_limited("temperature", options.temperature, temperature, model))
    if max_tokens is not None and max_tokens > limits.max_tokens:
        notices.append(_limited("max_tokens", max_tokens, limits.max_tokens, model))
        max_tokens = limits.max_tokens
    if system and not limits.allows_system_prompt:
        notices.append(ignored(["the system prompt"], f"{model} does not allow it."))
        system = ""
    elif len(system) > _MAX_SYSTEM_CHARACTERS:
        notices.append(Notice(LIMITED, f"The system prompt was cut to {_MAX_SYSTEM_CHARACTERS} characters."))
        system = system[:_MAX_SYSTEM_CHARACTERS]
    return replace(options, temperature=temperature, max_tokens=max_tokens, system=system), tuple(notices)


def ignored(names: Sequence[str], why: str) -> Notice:
    """Return the notice that parameters were ignored, with the reason as a sentence."""
    return Notice(IGNORED, f"Ignored: {', '.join(names)}. {why}")


def names_of(options: Options) -> tuple[str, ...]:
    """Return the names of the options that are set."""
    return tuple(_names(options))


def _names(options: Options) -> Iterator[str]:
    if options.system:
        yield "the system prompt"
    for name in ("temperature", "max_tokens", "seed"):
        if getattr(options, name) is not None:
            yield name
    for name in ("stop", "response_format"):
        if getattr(options, name):
            yield name


def _limited(name: str, requested: object, used: object, model: str) -> Notice:
    return Notice(LIMITED, f"{name} is {used} instead of {requested}: {model} has this limit.")
