"""Which embedding models an installation has, by its settings and its folders of models."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, Final

from corecube.errors import ConfigError
from retrieval.encoders.embed_services import EmbedService
from retrieval.encoders.manifest import TOKENIZER_FILE, read_manifest
from retrieval.encoders.onnx_encoder import load_encoder
from retrieval.encoders.protocol import Encoder
from retrieval.encoders.remote_encoder import RemoteEncoder
from retrieval.encoders.tokens import ModelTokenizer

_LOCAL: Final = "local:"
_FOLDER: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,199}", re.ASCII | re.IGNORECASE)
#: Two threads that want a model at the start load it once.
_loading: Final = Lock()


@dataclass(frozen=True, slots=True)
class Choice:
    """An embedding model that can be had: a folder, or a model at a service."""

    #: A folder of a model: the model itself, or the tokenizer that counts for a service.
    directory: Path
    #: Components that a local model's vectors are cut to; 0 keeps them whole.
    dim: int = 0
    #: None for a local model.
    service: EmbedService | None = None

    @property
    def source(self) -> str:
        """Where the model is, as an embedding index keeps it."""
        return self.service.kind if self.service else f"{_LOCAL}{self.directory.name}"

    def load(self) -> Encoder:
        """Return the encoder, the same one each time.

        Raises ModelMissingError if a file is missing, EncoderError if one is damaged, ConfigError.
        """
        with _loading:
            return _loaded(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What an installation's settings offer."""

    models_dir: Path
    model: str
    dim: int = 0
    #: Fields of an `EmbedService`; None where there is none.
    service: Mapping[str, Any] | None = field(default=None, repr=False)
    next_service: Mapping[str, Any] | None = field(default=None, repr=False)
    calls: int = 8

    def configured(self) -> Choice:
        """Return the model that a first index is made with."""
        return self._at_service(self.service) if self.service else self.local(self.model, self.dim)

    def next(self) -> Choice:
        """Return the service that the installation is changing to; raise ConfigError where none is configured."""
        if not self.next_service:
            raise ConfigError("CORECUBE_NEXT_EMBEDDER names no service.")
        return self._at_service(self.next_service)

    def local(self, folder: str, dim: int = 0) -> Choice:
        """Return a local model; raise ConfigError for a name that is no folder's."""
        if not _FOLDER.fullmatch(folder):
            raise ConfigError(f"{folder!r} is no name of a model's folder.")
        return Choice(self.models_dir / folder, dim)

    def of_index(self, *, source: str, model: str, dim: int) -> Choice:
        """Return the model that made an index's vectors.

        Raises ConfigError when it is at a service that the settings do not describe, ModelMissingError.
        """
        if source and not source.startswith(_LOCAL):
            return self._service_of_index(source, model, dim)
        choice = self.local(source.removeprefix(_LOCAL) or model)
        whole = read_manifest(choice.directory).dim
        return choice if dim == whole else self.local(choice.directory.name, dim)

    def _service_of_index(self, kind: str, model: str, dim: int) -> Choice:
        for fields in (self.service, self.next_service):
            if fields and (fields["kind"], fields["model"], fields["dim"]) == (kind, model, dim):
                return self._at_service(fields)
        raise ConfigError(
            f"The embedding index was built with {model} ({dim} numbers) of a service of the kind {kind}; neither"
            " CORECUBE_EMBEDDER nor CORECUBE_NEXT_EMBEDDER describes it."
        )

    def _at_service(self, fields: Mapping[str, Any]) -> Choice:
        return Choice(self.models_dir / self.model, service=EmbedService(**fields, calls=self.calls))


@cache
def _loaded(choice: Choice) -> Encoder:
    if choice.service is None:
        return load_encoder(choice.directory, dim=choice.dim)
    read_manifest(choice.directory)
    tokenizer = ModelTokenizer(choice.directory / TOKENIZER_FILE, max_tokens=choice.service.max_tokens)
    return RemoteEncoder(choice.service, tokenizer)
