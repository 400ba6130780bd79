"""The models on this machine."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from retrieval.encoders.manifest import Manifest, ModelManifest, read_any_manifest
from retrieval.errors import EncoderError, ModelMissingError


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A model folder."""

    name: str
    #: None for an incomplete or damaged model.
    manifest: ModelManifest | None
    #: "ready", "incomplete" or "damaged".
    state: str
    bytes: int = 0

    @property
    def makes_embeddings(self) -> bool:
        """Whether an embedding index can be built with it."""
        return isinstance(self.manifest, Manifest)


def model_names(models_dir: Path) -> list[str]:
    """Return the names of the model folders; workspaces start with a dot."""
    if not models_dir.is_dir():
        return []
    return sorted(entry.name for entry in models_dir.iterdir() if entry.is_dir() and not entry.name.startswith("."))


def local_models(models_dir: Path) -> Iterator[LocalModel]:
    """Yield the models of a folder by name; only their manifests are read."""
    for name in model_names(models_dir):
        yield _model(models_dir / name)


def files_size(manifest: ModelManifest, directory: Path) -> int:
    """Return the bytes of a model's files."""
    return sum((directory / name).stat().st_size for name in manifest.files)


def _model(directory: Path) -> LocalModel:
    try:
        manifest = read_any_manifest(directory)
    except ModelMissingError:
        return LocalModel(directory.name, None, "incomplete")
    except EncoderError:
        return LocalModel(directory.name, None, "damaged")
    return LocalModel(directory.name, manifest, "ready", files_size(manifest, directory))
