"""The installation's reranker, as its settings name it."""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Final

from django.conf import settings

from corecube.errors import DatabaseUnavailableError
from corecube.scope import AccessScope
from retrieval.encoders import Encoder, OnnxEncoder
from retrieval.encoders.compressed_vectors import CompressedVectors, max_sims
from retrieval.encoders.cross_encoder import load_cross_encoder
from retrieval.encoders.embedders import key_of, token_encoder
from retrieval.encoders.late_interaction import LATE_WEIGHT, LateEncoder, LateInteraction
from retrieval.encoders.pooling import Floats
from retrieval.encoders.remote_reranker import RemoteReranker, RerankService
from retrieval.encoders.reranker import Reranker, TimeBox, UnavailableReranker
from retrieval.encoders.torch_models import SENTENCE_TRANSFORMERS, load_torch_reranker
from retrieval.engine.types import Ranking, ScoreType
from retrieval.errors import EncoderError, ModelMissingError, RerankError, RerankTimeoutError, SearchTimeoutError
from retrieval.index.encodings import Encodings, compressed_vectors
from retrieval.models import TokenEmbedding
from retrieval.text.document import in_context

_MAX_ENCODED: Final = 4  #: Texts without stored vectors that a search encodes; each takes up to 0.1 s.
_LATE_INTERACTION: Final = "late-interaction"
_STORED_INTERACTION: Final = "stored-late-interaction"
_SERVICE: Final = "http"
_NOT_FOLDERS: Final = frozenset({"", _SERVICE, _LATE_INTERACTION, _STORED_INTERACTION, SENTENCE_TRANSFORMERS})

_loaded = cache(load_cross_encoder)
_loaded_torch = cache(load_torch_reranker)
_remote = cache(RemoteReranker)


class StoredInteraction:
    """Adds to a ranking how well each token of the query is met by some token of the text, as it was stored.

    A few texts without stored vectors are encoded during the search, within its time limit. With more of them, as while
    the vectors of a connection are built, the search falls back.
    """

    score_type = ScoreType.MAXSIM
    blend_weight: float | None = LATE_WEIGHT
    problem = ""

    def __init__(self, encoder: LateEncoder) -> None:
        self._encoder = encoder
        self.name = f"stored late interaction of {encoder.name}"
        self._key = key_of(encoder)

    def count_chunks(self) -> int:
        """Return the number of chunks whose vectors by this model are stored."""
        return TokenEmbedding.objects.filter(model_key=self._key).count()

    def read(self, query: str) -> Floats:
        """Return the unit vectors of the query's tokens; raise EncoderError."""
        return self._encoder.query_vectors(query)

    def score_hits(
        self,
        query: str,
        hits: Ranking,
        *,
        scope: AccessScope,
        timeout_seconds: float,
        read: Callable[[], Floats] | None = None,
    ) -> list[float]:
        """Return about the mean best cosine of the query's tokens per hit; raise RerankTimeoutError, RerankError."""
        until = perf_counter() + timeout_seconds
        try:
            query_vectors = read() if read else self.read(query)
            stored = compressed_vectors(
                Encodings.TOKENS,
                hits,
                model_key=self._key,
                dim=self._encoder.dim,
                scope=scope,
                timeout_seconds=max(0.001, until - perf_counter()),
            )
            missing = tuple(hit for hit in hits if hit.chunk_id not in stored)
            if len(missing) > _MAX_ENCODED:
                raise RerankError(f"{len(missing)} of {len(hits)} hits have no token vectors yet.")
            texts = [in_context(it.chunk.title, it.chunk.heading_path, it.chunk.text) for it in missing]
            made = self._encoded(texts, TimeBox(until - perf_counter()))
            stored |= {hit.chunk_id: vectors for hit, vectors in zip(missing, made, strict=True)}
        except SearchTimeoutError as error:
            raise RerankTimeoutError from error
        except (EncoderError, DatabaseUnavailableError, ValueError) as error:
            raise RerankError(f"The token vectors of {self._encoder.name!r} are not available.") from error
        return max_sims(query_vectors, [stored[hit.chunk_id] for hit in hits])

    def score(self, query: str, texts: Sequence[str], *, timeout_seconds: float) -> list[float]:
        """Return the same for texts that are not stored."""
        box = TimeBox(timeout_seconds)
        try:
            query_vectors = self.read(query)
            return max_sims(query_vectors, self._encoded(texts, box))
        except EncoderError as error:
            raise RerankError(f"The model {self._encoder.name!r} failed.") from error

    def _encoded(self, texts: Sequence[str], box: TimeBox) -> list[CompressedVectors]:
        step = self._encoder.threads
        made: list[CompressedVectors] = []
        for start in range(0, len(texts), step):
            some = texts[start : start + step]
            vectors = box.run(lambda some=some: self._encoder.document_vectors(some))  # type: ignore[misc]  # a default binds the loop's variable
            made += map(CompressedVectors.of_tokens, vectors)
        return made


def configured_reranker(encoder: Callable[[], Encoder]) -> Reranker | None:
    """Return the reranker, loaded on first use; None where none is configured.

    An unavailable one is returned too: it reports the reason to each search. `encoder` gives the installation's
    embedding model. Raises ConfigError for a service that lacks what its kind needs, and what `encoder` raises.
    """
    match settings.CORECUBE_RERANKER:
        case "":
            return None
        case _ if service := configured_service():
            return _remote(service)
        case name if name == _LATE_INTERACTION:
            return _late_interaction(encoder())
        case name if name == _STORED_INTERACTION:
            return _stored_interaction()
        case name if name == SENTENCE_TRANSFORMERS:
            return _local(settings.CORECUBE_RERANKER_MODEL, _loaded_torch)
        case name:
            return _local(name, _loaded)


def configured_service() -> RerankService | None:
    """Return the configured reranking service, None without one; raise ConfigError."""
    if settings.CORECUBE_RERANKER != _SERVICE:
        return None
    return RerankService(
        kind=settings.CORECUBE_RERANKER_KIND,
        url=settings.CORECUBE_RERANKER_URL,
        model=settings.CORECUBE_RERANKER_MODEL,
        api_key=settings.CORECUBE_RERANKER_API_KEY,
    )


def model_directory() -> Path | None:
    """Return where the configured model of this machine has to be, None where another kind is configured."""
    name = settings.CORECUBE_RERANKER
    return None if name in _NOT_FOLDERS else settings.CORECUBE_MODELS_DIR / name


def _local(name: str, load: Callable[[Path], Reranker]) -> Reranker:
    try:
        return load(settings.CORECUBE_MODELS_DIR / name)
    except ModelMissingError:
        return UnavailableReranker(name, f"The reranking model {name!r} is not on this machine.")
    except EncoderError:
        return UnavailableReranker(name, f"The reranking model {name!r} cannot be loaded.")


def _late_interaction(encoder: Encoder) -> Reranker:
    if isinstance(encoder, OnnxEncoder):
        return LateInteraction(encoder)
    problem = f"The embedding model {encoder.name!r} returns no token vectors."
    return UnavailableReranker(_LATE_INTERACTION, problem, ScoreType.MAXSIM)


def _stored_interaction() -> Reranker | None:
    try:
        encoder = token_encoder()
    except EncoderError:
        problem = f"The model {settings.CORECUBE_TOKEN_MODEL!r} of the token vectors cannot be loaded."
        return UnavailableReranker(_STORED_INTERACTION, problem, ScoreType.MAXSIM)
    return StoredInteraction(encoder) if encoder else None
