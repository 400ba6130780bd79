"""Stand-ins that keep the real ones' promises, for tests."""

import asyncio
import functools
import hashlib
import re
from collections.abc import AsyncGenerator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from retrieval.encoders.protocol import Batching
from retrieval.encoders.tokenizer import WordCounter
from retrieval.llm.prompt import REFUSAL
from retrieval.llm.types import Cut, Piece, Task, TokenUsage, Window

_TOKENS: Final = WordCounter()


class HashEncoder:
    """An encoder without a model: a text's vector is the normalised sum of its words' random directions.

    Texts that share words are similar, the same text is identical, and nothing has to be loaded. A token is a
    run of letters and digits or a single other sign.
    """

    name = "hash"
    weights = "none"
    max_tokens = 512
    tokenizer_file = ""
    batching = Batching()

    def __init__(self, dim: int = 64) -> None:
        self.dim = dim

    def encode_query(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector of a query, shape (dim,)."""
        vector: NDArray[np.float32] = self.encode_documents([text])[0]
        return vector

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors, shape (len(texts), dim), in input order."""
        return np.stack([self._vector(text) for text in texts]) if texts else np.zeros((0, self.dim), np.float32)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text."""
        return [len(self.token_spans(text)) for text in texts]

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        """Return the character span of every token."""
        return list(_TOKENS.token_spans(text))

    def _vector(self, text: str) -> NDArray[np.float32]:
        words = re.findall(r"\w+", text.lower()) or [""]
        total = np.sum([_direction(word, self.dim) for word in words], axis=0)
        unit: NDArray[np.float32] = (total / np.linalg.norm(total)).astype(np.float32)
        return unit


@functools.cache
def _direction(word: str, dim: int) -> NDArray[np.float64]:
    """Return the word's own random direction, the same in every process."""
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8])
    return np.random.default_rng(seed).standard_normal(dim)


class ScriptedProvider:
    """A provider that does what it is told: say a text, be silent for seconds, tell usage or cut, raise an error."""

    def __init__(
        self, *steps: str | float | TokenUsage | Cut | Exception, name: str = "scripted", window: Window | None = None
    ) -> None:
        self.steps = steps
        self.name = name
        self.window = window
        self.is_extractive = False
        self.tasks: list[Task] = []  #: The tasks that it was given.
        self.begun = 0  #: How many streams were begun, and how many of those are over, however they ended.
        self.ended = 0

    async def stream(self, task: Task) -> AsyncGenerator[Piece, None]:
        """Go through the steps."""
        self.tasks.append(task)
        self.begun += 1
        try:
            for step in self.steps:
                match step:
                    case Exception():
                        raise step
                    case float():
                        await asyncio.sleep(step)
                    case TokenUsage():
                        yield Piece(usage=step)
                    case Cut():
                        yield Piece(cut=step)
                    case _:
                        yield Piece(step)
        finally:
            self.ended += 1

    def refuses(self, text: str) -> bool:
        """Return whether an answer is a refusal."""
        return text.startswith(REFUSAL)
