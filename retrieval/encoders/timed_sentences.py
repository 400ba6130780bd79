"""Sentences' vectors for answers: each call of the model ends in time."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from retrieval.encoders.kept_vectors import SentenceEncoder
from retrieval.encoders.model_calls import ModelCalls, model_key
from retrieval.engine.types import Vector

#: Twelve sentences take a tenth of a second; a busy machine takes longer.
_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class TimedSentences(SentenceEncoder):
    """Encodes sentences of passages, and gives up a model that takes too long."""

    calls: ModelCalls = field(default_factory=ModelCalls)

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors, shape (len(texts), dim), in input order; raise EncoderError."""
        work = partial(SentenceEncoder.encode_documents, self, texts)
        return self.calls.within(_SECONDS, work, model=model_key(self.encoder))

    def encode_query(self, text: str) -> Vector:
        """Return the unit vector of a question; raise EncoderError."""
        return self.calls.within(_SECONDS, partial(self.encoder.encode_query, text), model=model_key(self.encoder))
