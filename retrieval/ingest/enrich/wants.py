"""What is written for a connection's chunks: what the connection requests, within what a model can and may write.

A compartment's rule binds its passages to one language model, or to none. The enriching model counts as the same one
only with the same address and name; otherwise the compartment's chunks are not sent to it. A model on this machine
sends nothing.
"""

from collections.abc import Mapping
from typing import Final

from django.conf import settings

from corecube.models import Connection
from retrieval.models import LanguageModel, Memory, RoutingRule

Wants = frozenset[str]  #: Kinds of enrichment: "context", "questions", "triples".
EVERYTHING: Final = Wants({"context", "questions", "triples"})
_QUESTIONS: Final = Wants({"questions"})
_BY_SETTING: Final[Mapping[str, Wants]] = {
    **{kind: Wants({kind}) for kind in EVERYTHING},
    "both": Wants({"context", "questions"}),
    "all": EVERYTHING,
}


def requested(connection: Connection) -> Wants:
    """Return the enrichment that a connection requests."""
    return _BY_SETTING.get(connection.enrichment, Wants())


def writable() -> Wants:
    """Return what the installation's models can write: a language model all, a local model questions."""
    return EVERYTHING if settings.CORECUBE_ENRICH_URL else _writable_here()


def _writable_here() -> Wants:
    return _QUESTIONS if settings.CORECUBE_ENRICH_QUESTIONS_MODEL else Wants()


def writable_for(connection: Connection) -> Wants:
    """Return what the installation's models may write for a connection's chunks under the current rules."""
    return writable() if not settings.CORECUBE_ENRICH_URL or may_be_sent(connection) else _writable_here()


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
    return "questions" if has_local or connection.compartment_id is None or may_be_sent(connection) else ""
