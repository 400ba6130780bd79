"""Which provider writes the answers."""

from django.conf import settings

from retrieval import runtime
from retrieval.encoders.remote_encoder import RemoteEncoder
from retrieval.generate.extractive import ExtractiveProvider
from retrieval.generate.types import Provider
from retrieval.generate.words import stemmer


def answer_provider() -> Provider:
    """Return the provider of this installation; raise ModelMissingError."""
    encoder = runtime.encoder()
    # Asking a service for every sentence would keep the reader waiting; without vectors the question's terms decide.
    similar = None if isinstance(encoder, RemoteEncoder) else encoder
    return ExtractiveProvider(stem=stemmer(settings.CORECUBE_TEXT_SEARCH_CONFIG), encoder=similar)
