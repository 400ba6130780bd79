"""What is written for a connection's chunks: what the connection requests, within what a model can and may write.

A compartment's rule binds its passages to one language model, or to none. The enriching model counts as the same one
only with the same address and name; otherwise the compartment's chunks are not sent to it. A model on this machine
sends nothing.
"""

from dataclasses import dataclass
from typing import Final

from django.conf import settings

from corecube.models import Connection
from retrieval.models import LanguageModel, Memory, RoutingRule

_CONTEXT: Final = frozenset({"context", "both", "all"})
_QUESTIONS: Final = frozenset({"questions", "both", "all"})
_TRIPLES: Final = frozenset({"triples", "all"})
_DEFAULT: Final = "questions"


@dataclass(frozen=True, slots=True)
class Wants:
    """Kinds of enrichment."""

    context: bool = True
    questions: bool = True
    triples: bool = True

    def __bool__(self) -> bool:
        return self.context or self.questions or self.triples

    def __and__(self, other: "Wants") -> "Wants":
        return Wants(self.context and other.context, self.questions and other.questions, self.triples and other.triples)


def requested(connection: Connection) -> Wants:
    """Return the enrichment that a connection requests."""
    kind = connection.enrichment
    return Wants(kind in _CONTEXT, kind in _QUESTIONS, kind in _TRIPLES)


def writable() -> Wants:
    """Return what the installation's models can write: a language model all, a local model questions."""
    has_chat = bool(settings.CORECUBE_ENRICH_URL)
    return Wants(has_chat, has_chat or bool(settings.CORECUBE_ENRICH_QUESTIONS_MODEL), has_chat)


def writable_for(connection: Connection) -> Wants:
    """Return what the installation's models may write for a connection's chunks under the current rules."""
    if not settings.CORECUBE_ENRICH_URL or may_be_sent(connection):
        return writable()
    return Wants(context=False, questions=bool(settings.CORECUBE_ENRICH_QUESTIONS_MODEL), triples=False)


def may_be_sent(connection: Connection) -> bool:
    """Return whether chunks may be sent to the language model; for memories the rules of all compartments count."""
    rules = RoutingRule.objects.filter(compartment__isnull=False).select_related("language_model")
    if not Memory.objects.filter(connection_id=connection.pk).exists():
        rules = rules.filter(compartment_id=connection.compartment_id)
    return all(_is_enricher(rule.language_model) for rule in rules)


def _is_enricher(model: LanguageModel | None) -> bool:
    if model is None or not model.is_enabled or model.api != LanguageModel.Api.OPENAI:
        return False
    address = f"{model.base_url.rstrip('/')}/chat/completions"
    return (address, model.model) == (settings.CORECUBE_ENRICH_URL.rstrip("/"), settings.CORECUBE_ENRICH_MODEL)


def default_enrichment(connection: Connection) -> str:
    """Return the enrichment of a new connection: questions if a model may write them, otherwise none."""
    has_local = bool(settings.CORECUBE_ENRICH_QUESTIONS_MODEL)
    if not settings.CORECUBE_ENRICH_BY_DEFAULT or not (settings.CORECUBE_ENRICH_URL or has_local):
        return ""
    return _DEFAULT if has_local or connection.compartment_id is None or may_be_sent(connection) else ""
