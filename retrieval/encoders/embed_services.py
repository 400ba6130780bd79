"""The embedding services: how each wants to be asked, and where its answer has the vectors."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from corecube.errors import ConfigError
from retrieval.encoders.pooling import Floats, unit_length
from retrieval.errors import EncoderError


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedKind:
    """The shape of one kind of service's requests."""

    #: Where the provider's own service listens.
    address: str
    #: The request's field for the number of components.
    dim_field: str
    #: The request's field and words for what a text is; empty for one that does not ask.
    role_field: str = ""
    query_role: str = ""
    document_role: str = ""

    def request(self, texts: Sequence[str], *, model: str, is_query: bool, dim: int, base64: bool) -> dict[str, Any]:
        """Return the body that asks for the texts' vectors; `dim` 0 leaves their length to the model."""
        role = self.query_role if is_query else self.document_role
        return {
            "model": model,
            "input": list(texts),
            **({self.dim_field: dim} if dim else {}),
            **({self.role_field: role} if self.role_field else {}),
            **({"encoding_format": "base64"} if base64 else {}),
        }


EMBED_KINDS: Final[Mapping[str, EmbedKind]] = MappingProxyType(
    {
        "openai": EmbedKind(address="https://api.openai.com/v1/embeddings", dim_field="dimensions"),
        "voyage": EmbedKind(
            address="https://api.voyageai.com/v1/embeddings",
            dim_field="output_dimension",
            role_field="input_type",
            query_role="query",
            document_role="document",
        ),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedService:
    """Which service is asked, and how. Raises ConfigError when something that it needs is missing."""

    #: A key of `EMBED_KINDS`.
    kind: str
    model: str
    #: Components of the vectors that are kept.
    dim: int
    #: The address that requests go to, its path included; empty for the provider's own.
    url: str = ""
    #: The model for queries where it differs from the one for documents; both must share a space.
    query_model: str = ""
    api_key: str = field(default="", repr=False)
    #: Who shortens vectors to `dim`: the "service", CoreCube ("here"), or nobody (""): then they must have that length.
    shorten: str = ""
    #: Ask for vectors as base64, a third of the size of numbers.
    base64: bool = True
    #: Longest text, in tokens of the local tokenizer.
    max_tokens: int = 8000
    #: Most texts and tokens in one request.
    batch_texts: int = 64
    batch_tokens: int = 60_000
    #: Requests at once.
    calls: int = 8
    #: 0 limits nothing.
    requests_per_minute: int = 0
    tokens_per_minute: int = 0
    #: Times that documents are tried, and the seconds that one try may take; queries have one try.
    attempts: int = 6
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
        """How the service is asked."""
        return EMBED_KINDS[self.kind]

    @property
    def address(self) -> str:
        """Where requests go."""
        return self.url or self.shape.address

    def body(self, texts: Sequence[str], *, is_query: bool) -> dict[str, Any]:
        """Return the request for the texts' vectors."""
        return self.shape.request(
            texts,
            model=(self.query_model or self.model) if is_query else self.model,
            is_query=is_query,
            dim=self.dim if self.shorten == "service" else 0,
            base64=self.base64,
        )

    def vectors(self, answer: object, *, count: int) -> Floats:
        """Return the unit vectors of the request's texts, shape (count, dim), in its order.

        Raises EncoderError unless the answer has exactly one vector for each text, of the right length and of finite
        numbers that are not all 0.
        """
        rows = _rows(answer, count=count)
        max_length = max(map(len, rows))
        if any(len(row) != max_length for row in rows):
            raise garbage("its vectors differ in length")
        if max_length != self.dim and not (self.shorten == "here" and max_length > self.dim):
            raise EncoderError(f"The embedding service gives vectors of {max_length} numbers, not of {self.dim}.")
        kept = np.stack(rows)[:, : self.dim]
        if not np.isfinite(kept).all() or not kept.any(axis=1).all():
            raise garbage("a vector is no direction")
        return unit_length(kept)


def garbage(detail: str) -> EncoderError:
    """Return the error for an answer that makes no sense; it repeats nothing of the answer."""
    return EncoderError(f"The embedding service answered garbage: {detail}.")


def _rows(answer: object, *, count: int) -> list[Floats]:
    """Return the answer's vectors in the order of the request."""
    data = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(data, list):
        raise garbage("it holds no list of vectors")
    found: dict[int, Floats] = {}
    for row in data:
        index = row.get("index") if isinstance(row, dict) else None
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < count or index in found:
            raise garbage(f"a vector belongs to none of the {count} texts")
        found[index] = _numbers(row.get("embedding"))
    if len(found) != count or not found:
        raise garbage(f"{len(found)} vectors for {count} texts")
    return [found[index] for index in range(count)]


def _numbers(value: object) -> Floats:
    """Return a vector that is a list of numbers, or base64 of little-endian float32."""
    try:
        if isinstance(value, str):
            return np.frombuffer(base64.b64decode(value, validate=True), "<f4").astype(np.float32)
        if isinstance(value, list) and value and all(type(number) in {int, float} for number in value):
            return np.array(value, np.float32)
    except (binascii.Error, ValueError, OverflowError):
        # Without its cause, whose message may repeat what was received.
        raise garbage("a vector cannot be read") from None
    raise garbage("a vector is no list of numbers")
