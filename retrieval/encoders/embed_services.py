"""The embedding services: requests and responses of each kind."""

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from corecube.data import read_toml
from corecube.errors import ConfigError
from retrieval.encoders.bounded_http import in_order
from retrieval.encoders.pooling import Floats, unit_length
from retrieval.errors import EncoderError


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedKind:
    """The request format of a kind of service."""

    address: str
    dim_field: str  #: The request's field for the number of components.
    role_field: str = ""  #: The request's field and values for the role of a text; empty if the service has none.
    query_role: str = ""
    document_role: str = ""


SERVICES: Final = read_toml("retrieval.encoders", "services.toml")
EMBED_KINDS: Final = {name: EmbedKind(**row) for name, row in SERVICES["embedding"].items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedService:
    """The settings of an embedding service. Raises ConfigError for a missing setting."""

    kind: str  #: A key of `EMBED_KINDS`.
    model: str
    dim: int  #: Components of the stored vectors.
    url: str = ""  #: The address of requests with its path; empty for the provider's.
    #: The model for queries if it differs from the one for documents; both must share a vector space.
    query_model: str = ""
    api_key: str = field(default="", repr=False)
    #: Where vectors are shortened to `dim`: the "service", CoreCube ("here"), or nowhere (""): they have that length.
    shorten: str = ""
    base64: bool = True  #: Request vectors as base64, a third of the size of JSON numbers.
    max_tokens: int = 8000  #: Maximum length of a text, in tokens of the local tokenizer.
    batch_texts: int = 64  #: Maximum number of texts and tokens per request.
    batch_tokens: int = 60_000
    calls: int = 8
    requests_per_minute: int = 0  #: 0 for no limit.
    tokens_per_minute: int = 0
    attempts: int = 6  #: Attempts for documents, and the time limit of one attempt; queries have one attempt.
    timeout_seconds: float = 60.0
    query_timeout_seconds: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in EMBED_KINDS:
            raise ConfigError(f"The kind of the embedding service must be one of {', '.join(EMBED_KINDS)}.")
        if not self.model:
            raise ConfigError("An embedding service needs the name of a model.")
        if self.dim <= 0:
            raise ConfigError("An embedding service needs the number of its vectors' dimensions.")

    @property
    def shape(self) -> EmbedKind:
        """The request format."""
        return EMBED_KINDS[self.kind]

    @property
    def address(self) -> str:
        """The address of requests."""
        return self.url or self.shape.address

    def body(self, texts: Sequence[str], *, is_query: bool) -> dict[str, Any]:
        """Return the request body for the texts' vectors."""
        shape = self.shape
        return {
            "model": (self.query_model or self.model) if is_query else self.model,
            "input": list(texts),
            # Without it the model decides the length of the vectors.
            **({shape.dim_field: self.dim} if self.shorten == "service" else {}),
            **({shape.role_field: shape.query_role if is_query else shape.document_role} if shape.role_field else {}),
            **({"encoding_format": "base64"} if self.base64 else {}),
        }

    def vectors(self, answer: object, *, count: int) -> Floats:
        """Return the unit vectors of the request's texts, shape (count, dim), in its order.

        Raises EncoderError unless the response has exactly one vector for each text, of the right length and of finite
        numbers that are not all 0.
        """
        data = answer.get("data") if isinstance(answer, dict) else None
        rows = in_order(data, lambda it: _numbers(it.get("embedding")), "vector", count=count, invalid=invalid_response)
        max_length = max(map(len, rows))
        if any(len(row) != max_length for row in rows):
            raise invalid_response("its vectors differ in length")
        if max_length != self.dim and not (self.shorten == "here" and max_length > self.dim):
            raise EncoderError(f"The embedding service returns {max_length} dimensions instead of {self.dim}.")
        vectors = np.stack(rows)[:, : self.dim]
        if not np.isfinite(vectors).all() or not vectors.any(axis=1).all():
            raise invalid_response("a vector has no direction")
        return unit_length(vectors)


def invalid_response(detail: str) -> EncoderError:
    """Return the error for an invalid response; it contains nothing of the response."""
    return EncoderError(f"The embedding service returned an invalid response: {detail}.")


def _numbers(value: object) -> Floats:
    """Return a vector that is a list of numbers, or base64 of little-endian float32."""
    try:
        if isinstance(value, str):
            return np.frombuffer(base64.b64decode(value, validate=True), "<f4").astype(np.float32)
        if isinstance(value, list) and value and all(type(number) in {int, float} for number in value):
            return np.array(value, np.float32)
    except (binascii.Error, ValueError, OverflowError):
        # Without its cause: its message may contain parts of the response.
        raise invalid_response("a vector cannot be decoded") from None
    raise invalid_response("a vector is not a list of numbers")
