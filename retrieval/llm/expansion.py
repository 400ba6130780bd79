"""Query expansion by a language model: paraphrases of a question, and a hypothetical passage that answers it.

Gao et al., "Precise Zero-Shot Dense Retrieval without Relevance Labels" (HyDE), 2022; Wang et al., "Query2doc", 2023.
It takes seconds, so interactive searches do not use it.
"""

import json
from collections.abc import Iterator
from typing import Any, Final

from asgiref.sync import async_to_sync

from corecube.access import Principal
from corecube.data import read_toml
from corecube.database import release_connection
from corecube.scope import AccessScope
from retrieval.errors import AnswerGarbageError, NoLanguageModelError
from retrieval.llm.model_provider import ModelProvider, generate_text
from retrieval.llm.neutral import plain
from retrieval.llm.routes import models_over

_SECONDS: Final = 45.0
_MAX_QUESTIONS: Final = 3
_MAX_QUESTION_LENGTH: Final = 300
_MAX_PASSAGE_LENGTH: Final = 500
_MAX_ANSWER_LENGTH: Final = 6000
_SYSTEM: Final = read_toml("retrieval.llm", "prompt.toml")["expansion"].format(count=_MAX_QUESTIONS)


def expander(principal: Principal, scope: AccessScope) -> ModelProvider:
    """Return the language model for a search in this scope.

    It must be allowed to read everything in scope: a question often contains what its author has read there. Raises
    NoLanguageModelError with the reason if there is none.
    """
    if not scope.connection_ids:
        raise NoLanguageModelError("You have no access to any connection, so no language model is used.")
    models = models_over(principal, scope.connection_ids)
    if models.providers:
        return models.providers[0]
    if models.notices:
        raise NoLanguageModelError(
            "No language model may read everything in this search: compartments are bound to different models or to "
            "none, or the model is switched off. Search fewer connections, or turn query expansion off."
        )
    raise NoLanguageModelError


def variants_of(question: str, provider: ModelProvider) -> tuple[str, ...]:
    """Return a language model's variants of a question; raise AnswerError or TimeoutError."""
    release_connection()
    content = json.dumps({"question": plain(question)}, ensure_ascii=False)
    messages = ({"role": "system", "content": _SYSTEM}, {"role": "user", "content": content})
    answer = async_to_sync(generate_text)(provider, messages, seconds=_SECONDS, max_length=_MAX_ANSWER_LENGTH)
    return variants_in(answer, question)


def variants_in(answer: str, question: str) -> tuple[str, ...]:
    """Return an answer's texts, cut, without duplicates and the question itself; raise AnswerGarbageError for none."""
    found = dict.fromkeys(_texts(_parsed(answer)))
    variants = tuple(it for it in found if it.casefold() != question.strip().casefold())
    if not variants:
        raise AnswerGarbageError("The language model returned no variant of the question.")
    return variants


def _parsed(answer: str) -> dict[str, Any]:
    start, end = answer.find("{"), answer.rfind("}")
    found = answer[start : end + 1] if 0 <= start < end else ""
    try:
        content = json.loads(found) if found else {}
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _texts(content: dict[str, Any]) -> Iterator[str]:
    questions = content.get("questions")
    values = [(it, _MAX_QUESTION_LENGTH) for it in (questions if isinstance(questions, list) else [])[:_MAX_QUESTIONS]]
    for value, max_length in (*values, (content.get("passage"), _MAX_PASSAGE_LENGTH)):
        text = " ".join(plain(value).split())[:max_length].strip() if isinstance(value, str) else ""
        if text:
            yield text
