"""Which provider writes the answers."""

from django.conf import settings

from retrieval import runtime
from retrieval.generate.extractive import ExtractiveProvider
from retrieval.generate.types import Provider
from retrieval.generate.words import stemmer


def answer_provider() -> Provider:
    """Return the provider of this installation; raise ModelMissingError."""
    return ExtractiveProvider(stem=stemmer(settings.CORECUBE_TEXT_SEARCH_CONFIG), encoder=runtime.encoder())
