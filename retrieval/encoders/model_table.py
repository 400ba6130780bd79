"""The list of recommended embedding models, the small default first, with their storage size per chunk.

Models of `catalog.KNOWN_MODELS` can be fetched. For the others users provide the files, and `adopted_manifest` returns
their manifest.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from corecube.data import read_toml
from retrieval.encoders.catalog import KNOWN_MODELS
from retrieval.encoders.manifest import MODEL_FILE, TOKENIZER_FILE, Manifest, file_sha256
from retrieval.errors import EncoderError, ModelMissingError

_BITS_PER_BYTE: Final = 8
_BYTES_PER_COMPONENT: Final = 2  #: Half precision.


class Tier(StrEnum):
    """Size class of a model."""

    DEFAULT = "default"
    TINY = "tiny"
    SMALL = "small"
    MID = "mid"
    UPGRADE = "upgrade"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableModel:
    """A published embedding model with its authors' figures."""

    name: str  #: Name of the folder under `var/models`.
    repository: str
    tier: Tier
    dim: int
    parameters: float  #: Millions of parameters.
    max_tokens: int
    licence: str
    pooling: str
    #: Published mean over the English tasks of MTEB in full precision; None for a multilingual model, which has another
    #: benchmark.
    mteb: float | None = None
    query_prefix: str = ""
    document_prefix: str = ""
    #: The shorter lengths that it is trained for (Matryoshka), longest first; empty without truncation.
    lengths: tuple[int, ...] = ()
    languages: str = "English"

    @property
    def min_dim(self) -> int:
        """Minimum number of components after truncation, 0 without truncation."""
        return min(self.lengths, default=0)

    @property
    def can_be_fetched(self) -> bool:
        """Whether `manage.py models fetch` can fetch it."""
        return self.name in KNOWN_MODELS

    @property
    def installation(self) -> str:
        """The command that installs the model."""
        if self.can_be_fetched:
            return f"manage.py models fetch {self.name}"
        return f"files of {self.repository}, then manage.py models adopt {self.name}"

    def bytes_stored(self) -> int:
        """Return the bytes of a chunk's full vector."""
        return _BYTES_PER_COMPONENT * self.dim

    def bytes_indexed(self) -> Mapping[str, int]:
        """Return the bytes per chunk in the HNSW index without links, by the available kinds of scan."""
        indexed = {"halfvec": self.bytes_stored(), "int8": self.dim, "binary": self.dim // _BITS_PER_BYTE}
        return indexed | ({"prefix": _BYTES_PER_COMPONENT * self.min_dim} if self.lengths else {})


def require_fetchable(name: str, directory: Path) -> None:
    """Raise EncoderError, with instructions, for a listed model that cannot be fetched."""
    model = MODEL_TABLE.get(name)
    if model is None or model.can_be_fetched:
        return
    raise EncoderError(
        f"{name} cannot be fetched: export {model.repository} to ONNX, put {MODEL_FILE} and {TOKENIZER_FILE}"
        f" into {directory}, and run `manage.py models adopt {name}`."
    )


_ROWS: Final = read_toml("retrieval.encoders", "model_table.toml")["model"]
MODEL_TABLE: Final[Mapping[str, TableModel]] = {
    row["name"]: TableModel(**{**row, "tier": Tier(row["tier"]), "lengths": tuple(row.get("lengths", ()))})
    for row in _ROWS
}


def adopted_manifest(directory: Path) -> Manifest:
    """Return the manifest of a listed model whose files were copied into the folder of its name.

    Raises EncoderError for an unlisted name, ModelMissingError for a missing file. The files are not verified.
    """
    model = MODEL_TABLE.get(directory.name)
    if model is None:
        raise EncoderError(f"Unknown model {directory.name!r}. Listed models: {', '.join(MODEL_TABLE)}.")
    if missing := [name for name in (MODEL_FILE, TOKENIZER_FILE) if not (directory / name).is_file()]:
        raise ModelMissingError(f"{directory} lacks {' and '.join(missing)} of {model.repository}, exported to ONNX.")
    return Manifest(
        name=model.name,
        max_tokens=model.max_tokens,
        batch_tokens=0,
        quantisation="as supplied",
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


def knows_language(model: str, language: str) -> bool:
    """Return whether an embedding model may know a language, "german": a listed one for English knows no other."""
    listed = MODEL_TABLE.get(model.removesuffix("-fp32"))
    return listed is None or listed.languages.lower() != "english" or language == "english"
