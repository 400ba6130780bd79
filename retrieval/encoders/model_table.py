"""Embedding models to choose between, the small default first: what each is, and what it would cost a chunk.

Registry only. What `catalog.KNOWN_MODELS` has is fetched; of the others somebody brings the files, and
`adopted_manifest` says how they are used.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Final

from retrieval.encoders.catalog import KNOWN_MODELS
from retrieval.encoders.manifest import MODEL_FILE, TOKENIZER_FILE, Manifest, file_sha256
from retrieval.errors import EncoderError, ModelMissingError

_BITS_OF_A_BYTE: Final = 8
#: A number of a stored vector: half precision.
_BYTES_OF_A_NUMBER: Final = 2


class Tier(StrEnum):
    """What a model is for."""

    DEFAULT = "default"
    TINY = "tiny"
    SMALL = "small"
    MID = "mid"
    UPGRADE = "upgrade"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableModel:
    """A published embedding model, as its authors describe it."""

    #: The name of its folder under `var/models`.
    name: str
    #: Its repository on the hub.
    repository: str
    tier: Tier
    dim: int
    #: Millions of parameters.
    parameters: float
    max_tokens: int
    licence: str
    #: Mean over the English tasks of MTEB, of full precision, as published; None for a multilingual model, whose own
    #: benchmark is another.
    mteb: float | None
    pooling: str
    query_prefix: str = ""
    document_prefix: str = ""
    #: The shorter lengths that it was trained for (Matryoshka), longest first; empty for a model to be kept whole.
    lengths: tuple[int, ...] = ()
    languages: str = "English"

    @property
    def min_dim(self) -> int:
        """The fewest components that stand for the whole, 0 where none do."""
        return min(self.lengths, default=0)

    @property
    def can_be_fetched(self) -> bool:
        """Whether `manage.py models fetch` knows where its files are."""
        return self.name in KNOWN_MODELS

    @property
    def way(self) -> str:
        """How one comes by it, in a sentence."""
        if self.can_be_fetched:
            return f"manage.py models fetch {self.name}"
        return f"files of {self.repository}, then manage.py models adopt {self.name}"

    def bytes_stored(self) -> int:
        """Return the bytes of a chunk's whole vector."""
        return _BYTES_OF_A_NUMBER * self.dim

    def bytes_walked(self) -> Mapping[str, int]:
        """Return the bytes of a chunk that the HNSW index holds beside its links, by scan; those it can have."""
        walked = {
            "halfvec": self.bytes_stored(),
            "int8": self.dim,
            "binary": self.dim // _BITS_OF_A_BYTE,
        }
        return walked | ({"prefix": _BYTES_OF_A_NUMBER * self.min_dim} if self.lengths else {})


def require_fetchable(name: str, directory: Path) -> None:
    """Raise EncoderError, with what to do instead, for a listed model whose files are not fetched from here."""
    model = MODEL_TABLE.get(name)
    if model is None or model.can_be_fetched:
        return
    raise EncoderError(
        f"{name} is not fetched from here: export {model.repository} to ONNX, put {MODEL_FILE} and {TOKENIZER_FILE}"
        f" into {directory}, and run `manage.py models adopt {name}`."
    )


_BGE_QUERY: Final = "Represent this sentence for searching relevant passages: "

_TABLE: Final = (
    TableModel(
        name="bge-small-en-v1.5",
        repository="BAAI/bge-small-en-v1.5",
        tier=Tier.DEFAULT,
        dim=384,
        parameters=33,
        max_tokens=512,
        licence="MIT",
        mteb=62.17,
        pooling="cls",
        query_prefix=_BGE_QUERY,
    ),
    TableModel(
        name="all-minilm-l6-v2",
        repository="sentence-transformers/all-MiniLM-L6-v2",
        tier=Tier.TINY,
        dim=384,
        parameters=22.7,
        max_tokens=256,
        licence="Apache-2.0",
        mteb=56.0,
        pooling="mean",
    ),
    TableModel(
        name="gte-small",
        repository="thenlper/gte-small",
        tier=Tier.SMALL,
        dim=384,
        parameters=33,
        max_tokens=512,
        licence="MIT",
        mteb=61.36,
        pooling="mean",
    ),
    TableModel(
        name="e5-small-v2",
        repository="intfloat/e5-small-v2",
        tier=Tier.SMALL,
        dim=384,
        parameters=33,
        max_tokens=512,
        licence="MIT",
        mteb=59.93,
        pooling="mean",
        query_prefix="query: ",
        document_prefix="passage: ",
    ),
    TableModel(
        name="nomic-embed-text-v1.5",
        repository="nomic-ai/nomic-embed-text-v1.5",
        tier=Tier.MID,
        dim=768,
        parameters=137,
        max_tokens=8192,
        licence="Apache-2.0",
        mteb=62.28,
        pooling="mean",
        query_prefix="search_query: ",
        document_prefix="search_document: ",
        lengths=(512, 256, 128, 64),
    ),
    TableModel(
        name="bge-base-en-v1.5",
        repository="BAAI/bge-base-en-v1.5",
        tier=Tier.MID,
        dim=768,
        parameters=109,
        max_tokens=512,
        licence="MIT",
        mteb=63.55,
        pooling="cls",
        query_prefix=_BGE_QUERY,
    ),
    TableModel(
        name="mxbai-embed-large-v1",
        repository="mixedbread-ai/mxbai-embed-large-v1",
        tier=Tier.UPGRADE,
        dim=1024,
        parameters=335,
        max_tokens=512,
        licence="Apache-2.0",
        mteb=64.68,
        pooling="cls",
        query_prefix=_BGE_QUERY,
        lengths=(512, 256),
    ),
    TableModel(
        name="arctic-embed-l-v2.0",
        repository="Snowflake/snowflake-arctic-embed-l-v2.0",
        tier=Tier.UPGRADE,
        dim=1024,
        parameters=568,
        max_tokens=8192,
        licence="Apache-2.0",
        mteb=None,
        pooling="cls",
        query_prefix="query: ",
        lengths=(256,),
        languages="many",
    ),
)
#: By name.
MODEL_TABLE: Final[Mapping[str, TableModel]] = MappingProxyType({model.name: model for model in _TABLE})


def adopted_manifest(directory: Path) -> Manifest:
    """Return the manifest of a listed model whose files somebody put into the folder of its name.

    Raises EncoderError for a name that the table does not have, ModelMissingError when a file is missing. Whether the
    files are the model is not known before it is tried.
    """
    model = MODEL_TABLE.get(directory.name)
    if model is None:
        raise EncoderError(
            f"There is no model named {directory.name!r} in the table; there are: {', '.join(MODEL_TABLE)}."
        )
    if missing := [name for name in (MODEL_FILE, TOKENIZER_FILE) if not (directory / name).is_file()]:
        raise ModelMissingError(f"{directory} lacks {' and '.join(missing)} of {model.repository}, exported to ONNX.")
    return Manifest(
        name=model.name,
        max_tokens=model.max_tokens,
        batch_tokens=0,
        quantisation="as it was brought",
        source=model.repository,
        source_sha256=file_sha256(directory / MODEL_FILE),
        licence=model.licence,
        files={name: file_sha256(directory / name) for name in (MODEL_FILE, TOKENIZER_FILE)},
        dim=model.dim,
        pooling=model.pooling,
        query_prefix=model.query_prefix,
        document_prefix=model.document_prefix,
        normalise=True,
        min_dim=model.min_dim,
    )
