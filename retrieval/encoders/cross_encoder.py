"""A local model that scores how well a query and a text match."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding

from corecube.process import cores
from retrieval.encoders.manifest import MODEL_FILE, TOKENIZER_FILE, CrossEncoderManifest, read_manifest
from retrieval.encoders.pooling import length_sorted_batches, pad
from retrieval.encoders.reranker import TimeBox, checked_scores
from retrieval.encoders.session import Session, input_names, open_session, run_in_parallel
from retrieval.encoders.tokenizer import PairTokenizer
from retrieval.engine.types import ScoreType
from retrieval.errors import EncoderError, RerankError

logger = logging.getLogger(__name__)

_TWO_CLASSES = 2  #: Number of outputs of a model with the classes "does not match" and "matches".


class CrossEncoder:
    """A loaded reranking model; thread-safe. `load_cross_encoder` creates it."""

    score_type = ScoreType.LOGIT
    blend_weight: float | None = None
    problem = ""

    def __init__(
        self,
        manifest: CrossEncoderManifest,
        tokenizer: PairTokenizer,
        session: Session,
        *,
        threads: int,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.manifest = manifest
        self.name = manifest.name
        self._tokenizer = tokenizer
        self._session = session
        self._inputs = input_names(session, model=manifest.name)
        self._threads = threads
        self._clock = clock

    def score(self, query: str, texts: Sequence[str], *, timeout_seconds: float) -> list[float]:
        """Return one logit per text, in input order.

        Pairs run longest first in batches of the manifest's size, as many in parallel as there are threads. Raises
        RerankTimeoutError before a batch that would exceed the time limit, RerankError if the model fails.
        """
        box = TimeBox(timeout_seconds, self._clock)
        pairs = box.run(lambda: self._tokenizer.encode(query, texts))
        batches = length_sorted_batches([len(pair) for pair in pairs], self.manifest.batch_tokens)
        logits = np.zeros(len(texts))

        def run(batch: Sequence[int]) -> NDArray[np.float64]:
            return box.run(lambda: self._run([pairs[position] for position in batch]))

        for batch, scores in zip(batches, run_in_parallel(run, batches, threads=self._threads), strict=True):
            logits[batch] = scores
        return checked_scores(logits.tolist(), count=len(texts))

    def _run(self, pairs: Sequence[Encoding]) -> NDArray[np.float64]:
        """Return the logits of pairs that share a run; raise EncoderError for an output of another shape."""
        ids, mask = pad([pair.ids for pair in pairs])
        types, _ = pad([pair.type_ids for pair in pairs])
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
        try:
            output = self._session.run(None, {name: feed[name] for name in self._inputs})[0]
        except Exception as error:  # onnxruntime's errors share no specific base class
            raise RerankError(f"The reranking model {self.name!r} failed.") from error
        # One logit per pair: of the outputs (b,) and (b, 1) the only one, of (b, 2) the second minus the first.
        numbers: NDArray[np.float64] = output.astype(np.float64)
        if numbers.ndim == 1:
            return numbers
        if numbers.ndim == _TWO_CLASSES and numbers.shape[1] in {1, _TWO_CLASSES}:
            only: NDArray[np.float64] = numbers[:, -1] - (numbers[:, 0] if numbers.shape[1] == _TWO_CLASSES else 0.0)
            return only
        raise EncoderError(f"The model {self.name!r} has an output of shape {output.shape}; it is not a cross-encoder.")


def load_cross_encoder(directory: Path, *, threads: int | None = None) -> CrossEncoder:
    """Return the cross-encoder of a model directory; `threads` batches run in parallel (default: one per core).

    Raises ModelMissingError if the directory, its manifest or a file is missing, EncoderError if a file is damaged
    or the model scores no pairs.
    """
    manifest = read_manifest(directory, CrossEncoderManifest)
    tokenizer = PairTokenizer(directory / TOKENIZER_FILE, max_tokens=manifest.max_tokens)
    session = open_session(directory / MODEL_FILE)
    encoder = CrossEncoder(manifest, tokenizer, session, threads=threads or cores())
    try:
        encoder.score("query", ["a text", "another text, which is longer"], timeout_seconds=float("inf"))
    except RerankError as error:
        raise EncoderError(f"The model {encoder.name!r} cannot score a pair.") from error
    logger.info("reranker.loaded name=%s", encoder.name)
    return encoder
