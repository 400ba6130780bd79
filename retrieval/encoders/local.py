"""The models that lie on this machine."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from retrieval.encoders.manifest import Manifest, ModelManifest, read_any_manifest
from retrieval.errors import EncoderError, ModelMissingError


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A folder of a model."""

    name: str
    #: None for one that is incomplete or damaged.
    manifest: ModelManifest | None
    #: "ready", "incomplete" or "damaged".
    state: str
    bytes: int = 0

    @property
    def makes_embeddings(self) -> bool:
        """Whether an embedding index can be built with it."""
        return isinstance(self.manifest, Manifest)


def present(models_dir: Path) -> list[str]:
    """Return the names of the folders of models, known or the user's own; workspaces start with a dot."""
    if not models_dir.is_dir():
        return []
    return sorted(entry.name for entry in models_dir.iterdir() if entry.is_dir() and not entry.name.startswith("."))


def local_models(models_dir: Path) -> Iterator[LocalModel]:
    """Yield every model of the folder, by name. Reads their manifests and loads none."""
    for name in present(models_dir):
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
