"""POST /v1/embeddings: vectors of the installation's embedding model."""

import base64
from collections.abc import Sequence
from typing import Any, Final, Literal

import numpy as np
from django.http import HttpRequest
from ninja import Router
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from corecube.api import principal_of
from corecube.database import release_connection
from retrieval.api.openai.chat_request import UnsupportedParameterError
from retrieval.api.schemas import REFUSALS, RequestBody
from retrieval.index import active
from retrieval.search import runtime

_MAX_TEXTS: Final = 256
_MAX_CHARACTERS: Final = 200_000  #: Of all texts of a request.
#: Seconds that a request waits for its turn among searches.
WAIT_SECONDS: Final = 10.0
_QUERY: Final = frozenset({"query", "search_query"})
router = Router(tags=["openai"])


class EmbeddingsIn(RequestBody):
    """Texts to embed."""

    model_config = ConfigDict(hide_input_in_errors=True)

    model: str = Field(description="The name of the installation's embedding model; others are refused.")
    input: str | list[str] = Field(description=f"1 to {_MAX_TEXTS} texts; tokens instead of text are refused.")
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = Field(default=None, description="The model's own number, or left out.")
    input_type: str | None = Field(
        default=None, description="query or search_query: with the model's prefix for queries; else as documents."
    )


class EmbeddingOut(BaseModel):
    """A unit vector."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str = Field(description="Numbers, or little-endian 32-bit floats in base64.")


class EmbeddingUsageOut(BaseModel):
    """Token counts."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingsOut(BaseModel):
    """The vectors of all texts, in their order."""

    object: Literal["list"]
    model: str
    data: list[EmbeddingOut]
    usage: EmbeddingUsageOut


@router.post("/embeddings", response={200: EmbeddingsOut, **REFUSALS}, summary="Embed texts")
def create_embeddings(request: HttpRequest, body: EmbeddingsIn) -> dict[str, Any]:
    """Return the unit vector of each text by the model that searches use: a query's and a passage's are comparable.

    A text longer than the model reads at once is read in windows, whose vectors are pooled.
    """
    principal_of(request)
    encoder = active.encoder()
    if body.model != encoder.name:
        raise UnsupportedParameterError("model", f"The embedding model of this installation is {encoder.name}.")
    if body.dimensions not in {None, encoder.dim}:
        raise UnsupportedParameterError("dimensions", f"{encoder.name} has {encoder.dim} dimensions.")
    texts = checked_texts("input", [body.input] if isinstance(body.input, str) else body.input)
    release_connection()
    with runtime.admission().query(budget_seconds=WAIT_SECONDS):
        vectors = (
            np.stack([encoder.encode_query(text) for text in texts])
            if body.input_type in _QUERY
            else encoder.encode_documents(texts)
        )
    tokens = sum(encoder.count_tokens(texts))
    data = [
        {"object": "embedding", "index": index, "embedding": _written(vector, body.encoding_format)}
        for index, vector in enumerate(vectors)
    ]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "model": encoder.name, "data": data, "usage": usage}


def checked_texts(param: str, texts: Sequence[str]) -> list[str]:
    """Return the texts of a request; raise UnsupportedParameterError for none, an empty one, or too many."""
    if not 1 <= len(texts) <= _MAX_TEXTS:
        raise UnsupportedParameterError(param, f"{param} takes 1 to {_MAX_TEXTS} texts.")
    if not all(text.strip() for text in texts):
        raise UnsupportedParameterError(param, f"A text of {param} is empty.")
    if sum(map(len, texts)) > _MAX_CHARACTERS:
        raise UnsupportedParameterError(param, f"{param} takes at most {_MAX_CHARACTERS:,} characters in all.")
    return list(texts)


def _written(vector: NDArray[np.float32], encoding: str) -> list[float] | str:
    return vector.tolist() if encoding == "float" else base64.b64encode(vector.astype("<f4").tobytes()).decode()
