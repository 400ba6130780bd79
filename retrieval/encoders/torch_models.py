"""Models of the library sentence-transformers, as its folders hold them: the extra `torch`."""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Final

import numpy as np

from corecube.errors import ConfigError
from retrieval.encoders.manifest import MANIFEST_FILE, TOKENIZER_FILE, file_sha256
from retrieval.encoders.pooling import Floats, overlapping, window_pooling
from retrieval.encoders.protocol import Batching
from retrieval.encoders.reranker import TimeBox, checked_scores
from retrieval.encoders.tokenizer import ModelTokenizer
from retrieval.engine.types import ScoreType
from retrieval.errors import EncoderError, ModelMissingError, RerankError

SENTENCE_TRANSFORMERS: Final = "sentence-transformers"
_CONFIG_FILE: Final = "config.json"
_MODULES_FILE: Final = "modules.json"
_MAX_TOKENS: Final = 8192  #: The length of a run for models without a limit.
_SPECIAL_TOKENS: Final = 2
_PAIRS: Final = 8  #: Pairs in a run, between two looks at the time.
_TWO_CLASSES: Final = 2


class TorchEncoder:
    """A loaded bi-encoder; thread-safe. `load_torch_encoder` creates it.

    Queries and documents have the prompts of the model's own configuration.
    """

    def __init__(self, directory: Path, model: Any) -> None:  # noqa: ANN401 -- the library is optional
        self.name = directory.name
        self.batching = Batching(calls=1) if model.device.type == "cpu" else Batching(texts=256, calls=1)
        self.weights = f"{SENTENCE_TRANSFORMERS} {folder_sha256(directory)}"
        self.max_tokens = min(int(model.max_seq_length or _MAX_TOKENS), _MAX_TOKENS)
        self.tokenizer_file = str(directory / TOKENIZER_FILE)
        self._tokenizer = ModelTokenizer(directory / TOKENIZER_FILE, max_tokens=self.max_tokens)
        prompts = self._tokenizer.count([prompt for prompt in model.prompts.values() if prompt])
        self._room = self.max_tokens - _SPECIAL_TOKENS - max(prompts, default=0)
        self._model = model
        # The library's tokenizers change their own settings in every call.
        self._one_call = Lock()
        self.dim = self.encode_query("").size

    def encode_query(self, text: str) -> Floats:
        """Return the unit vector of a query, truncated to max_tokens, shape (dim,); raise EncoderError."""
        vector: Floats = self._encoded(self._model.encode_query, [text])[0]
        return vector

    def encode_documents(self, texts: Sequence[str]) -> Floats:
        """Return the unit vectors of texts, shape (len(texts), dim); raise EncoderError.

        The vector of a text longer than max_tokens is pooled from overlapping windows.
        """
        windows = self._windows(texts)
        if not windows:
            return np.zeros((0, self.dim), np.float32)
        vectors = self._encoded(self._model.encode_document, [text for each in windows for text, _ in each])
        return window_pooling(vectors, [[tokens for _, tokens in each] for each in windows])

    def count_windows(self, texts: Sequence[str]) -> list[int]:
        """Return the number of windows of each text."""
        return [len(windows) for windows in self._windows(texts)]

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text, without special tokens and truncation."""
        return self._tokenizer.count(texts)

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        """Return the (start, end) character span of every token, without special tokens and truncation."""
        return self._tokenizer.spans(text)

    def _windows(self, texts: Sequence[str]) -> list[list[tuple[str, int]]]:
        """Return the windows of each text, with their numbers of tokens."""
        return [self._divided(text, spans) for text, spans in zip(texts, self._tokenizer.spans_of(texts), strict=True)]

    def _divided(self, text: str, spans: list[tuple[int, int]]) -> list[tuple[str, int]]:
        if len(spans) <= self._room:
            return [(text, len(spans))]
        parts = overlapping(spans, self._room, self._tokenizer.overlap)
        return [(text[part[0][0] : part[-1][1]], len(part)) for part in parts]

    def _encoded(self, encode: Callable[..., Any], texts: Sequence[str]) -> Floats:
        try:
            with self._one_call:
                vectors = encode(
                    texts, batch_size=self.batching.texts, normalize_embeddings=True, show_progress_bar=False
                )
        except Exception as error:  # torch's errors share no specific base class
            raise EncoderError(f"The model {self.name!r} failed: {error}") from error
        return np.asarray(vectors, np.float32)


class TorchReranker:
    """A loaded cross-encoder; thread-safe. `load_torch_reranker` creates it."""

    score_type = ScoreType.LOGIT
    blend_weight: float | None = None
    problem = ""

    def __init__(self, name: str, model: Any) -> None:  # noqa: ANN401 -- the library is optional
        self.name = name
        self._model = model
        self._one_call = Lock()

    def score(self, query: str, texts: Sequence[str], *, timeout_seconds: float) -> list[float]:
        """Return one logit per text, in input order; of two classes, the second minus the first.

        Raises RerankTimeoutError before a run that would exceed the time limit, RerankError if the model fails.
        """
        box = TimeBox(timeout_seconds)
        longest_first = sorted(range(len(texts)), key=lambda place: -len(texts[place]))
        logits = np.zeros(len(texts))
        for start in range(0, len(texts), _PAIRS):
            places = longest_first[start : start + _PAIRS]
            pairs = [(query, texts[place]) for place in places]
            logits[places] = box.run(lambda pairs=pairs: self._run(pairs))  # type: ignore[misc]  # a default binds the loop's variable
        return checked_scores(logits.tolist(), count=len(texts))

    def _run(self, pairs: list[tuple[str, str]]) -> Any:  # noqa: ANN401 -- numpy's arrays of any float
        import torch  # noqa: PLC0415 -- the extra

        try:
            with self._one_call:
                found = self._model.predict(pairs, activation_fn=torch.nn.Identity(), show_progress_bar=False)
        except Exception as error:  # torch's errors share no specific base class
            raise RerankError(f"The reranking model {self.name!r} failed.") from error
        return (
            found[:, 1] - found[:, 0]
            if found.ndim == _TWO_CLASSES and found.shape[1] == _TWO_CLASSES
            else found.ravel()
        )


def is_torch_folder(directory: Path) -> bool:
    """Return whether a folder holds a model of the library, and not one of ours."""
    files = (_MODULES_FILE, _CONFIG_FILE)
    return any((directory / name).is_file() for name in files) and not (directory / MANIFEST_FILE).is_file()


def load_torch_encoder(directory: Path, *, dim: int = 0) -> TorchEncoder:
    """Return the bi-encoder of a folder of the library; raise ModelMissingError, EncoderError.

    Raises ConfigError for `dim` other than 0 and the model's: the model's own configuration says how it is truncated.
    """
    encoder = TorchEncoder(directory, _loaded("SentenceTransformer", directory))
    if dim not in {0, encoder.dim}:
        raise ConfigError(f"{encoder.name} has {encoder.dim} dimensions: set truncate_dim in its own configuration.")
    return encoder


def load_torch_reranker(directory: Path) -> TorchReranker:
    """Return the cross-encoder of a folder of the library; raise ModelMissingError, EncoderError."""
    reranker = TorchReranker(directory.name, _loaded("CrossEncoder", directory))
    try:
        reranker.score("query", ["a text", "another text, which is longer"], timeout_seconds=float("inf"))
    except RerankError as error:
        raise EncoderError(f"The model {directory.name!r} cannot score a pair.") from error
    return reranker


def folder_sha256(directory: Path) -> str:
    """Return one sha256 of all files of a folder and their names."""
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    lines = "".join(f"{path.relative_to(directory)} {file_sha256(path)}\n" for path in files)
    return hashlib.sha256(lines.encode()).hexdigest()


def _loaded(kind: str, directory: Path) -> Any:  # noqa: ANN401 -- the library is optional
    if not any((directory / name).is_file() for name in (_MODULES_FILE, _CONFIG_FILE)):
        raise ModelMissingError(f"There is no model of sentence-transformers in {directory}.")
    try:
        import sentence_transformers  # noqa: PLC0415 -- the extra
    except ImportError as error:
        raise EncoderError("sentence-transformers is not installed: it is CoreCube's extra 'torch'.") from error
    try:
        return getattr(sentence_transformers, kind)(str(directory), local_files_only=True)
    except Exception as error:  # the library's errors share no specific base class
        raise EncoderError(f"The model in {directory} cannot be loaded: {error}") from error
