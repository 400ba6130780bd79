"""Vectors that a model has made of documents before, under the same code: made once, they are read in later runs."""

import functools
import hashlib
import shutil
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from retrieval.encoders.onnx_encoder import OnnxEncoder
from tests.profiles import PROFILE

_FOLDERS: Final = "vectors-of-tests-"


class StoredVectors(OnnxEncoder):
    """An encoder that encodes no documents twice; in the nightly profile it encodes them anew."""

    @classmethod
    def of(cls, encoder: OnnxEncoder) -> "StoredVectors":
        """Return the same encoder with stored vectors."""
        stored = cls.__new__(cls)
        vars(stored).update(vars(encoder))
        return stored

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the unit vectors of texts, shape (len(texts), dim)."""
        digest = hashlib.sha256("\0".join([self.weights, *texts]).encode()).hexdigest()
        file = _folder() / f"{digest}.npy"
        if PROFILE == "nightly" or not file.exists():
            vectors = super().encode_documents(texts)
            unfinished = file.with_suffix(".unfinished")
            with unfinished.open("wb") as out:
                np.save(out, vectors)
            unfinished.rename(file)
            return vectors
        vectors: NDArray[np.float32] = np.load(file)
        return vectors


@functools.cache
def _folder() -> Path:
    """Return the folder of the vectors that this code makes; those of other code are removed."""
    digest = hashlib.sha256(" ".join(map(version, ("numpy", "onnxruntime", "tokenizers"))).encode())
    for module in sorted((settings.BASE_DIR / "retrieval" / "encoders").glob("*.py")):
        digest.update(module.read_bytes())
    folder: Path = settings.CORECUBE_VAR_DIR / f"{_FOLDERS}{digest.hexdigest()[:12]}"
    if not folder.exists():
        for old in folder.parent.glob(f"{_FOLDERS}*"):
            shutil.rmtree(old)
        folder.mkdir(exist_ok=True)
    return folder
