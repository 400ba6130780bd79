"""A model's own tokenizer."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tokenizers import Tokenizer

from retrieval.encoders.tokenizer import load_tokenizer
from retrieval.engine.token_counter import CountTokens


@dataclass(frozen=True, slots=True)
class MarkedTokens:
    """A text's token ids, and which of them are special tokens (1) and not the text's own (0)."""

    ids: list[int]
    special: list[int]


@dataclass(frozen=True, slots=True)
class PairTokens:
    """The token ids of a query and a text together, and which of the two each stands for: 0 or 1."""

    ids: list[int]
    types: list[int]


def token_count_of(path: Path) -> CountTokens:
    """Return what counts tokens by a tokenizer's file, without special tokens, nothing cut; raise EncoderError."""
    return partial(_counts, load_tokenizer(path))


class ModelTokenizer:
    """Cuts texts into the tokens that one model was trained on."""

    def __init__(self, path: Path, *, max_tokens: int) -> None:
        self.path = path
        self._whole = load_tokenizer(path)
        self._cut = load_tokenizer(path)
        self._cut.enable_truncation(max_tokens)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return each text's token ids with the special tokens, at most max_tokens of them."""
        return [encoding.ids for encoding in self._cut.encode_batch_fast(list(texts))]

    def encode_marked(self, texts: Sequence[str]) -> list[MarkedTokens]:
        """Return each text's token ids as `encode` does, with its special tokens marked."""
        encodings = self._cut.encode_batch_fast(list(texts))
        return [MarkedTokens(encoding.ids, encoding.special_tokens_mask) for encoding in encodings]

    def pieces(self, texts: Sequence[str]) -> list[list[int]]:
        """Return each text's own token ids, without special tokens, nothing cut."""
        return [encoding.ids for encoding in self._whole.encode_batch_fast(list(texts), add_special_tokens=False)]

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text that tokens stand for, without special tokens."""
        return self._whole.decode(list(tokens), skip_special_tokens=True)

    def frame(self) -> tuple[list[int], list[int]]:
        """Return the ids of the special tokens before and after a text."""
        marked = self._cut.encode("a")
        own = [place for place, special in enumerate(marked.special_tokens_mask) if not special]
        return marked.ids[: own[0]], marked.ids[own[-1] + 1 :]

    @property
    def vocabulary(self) -> int:
        """How many tokens it knows."""
        return int(self._whole.get_vocab_size())

    def count(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text, without special tokens, nothing cut."""
        return _counts(self._whole, texts)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the character span of every token, without special tokens, nothing cut."""
        return list(self._whole.encode(text, add_special_tokens=False).offsets)


class PairTokenizer:
    """Cuts pairs of a query and a text into the tokens of one input."""

    def __init__(self, path: Path, *, max_tokens: int) -> None:
        self._whole = load_tokenizer(path)
        self._cut = load_tokenizer(path)
        self._cut.enable_truncation(max_tokens, strategy="only_second")
        self._query_tokens = (max_tokens - self._cut.num_special_tokens_to_add(is_pair=True)) // 2

    def encode(self, query: str, texts: Sequence[str]) -> list[PairTokens]:
        """Return the tokens of the query with each text, at most max_tokens a pair.

        A pair that is too long loses the end of its text; a query that would fill more than half of it is cut first.
        """
        query = self._beginning(query)
        encodings = self._cut.encode_batch_fast([(query, text) for text in texts])
        return [PairTokens(encoding.ids, encoding.type_ids) for encoding in encodings]

    def _beginning(self, query: str) -> str:
        """Return as much of the query as may stand before a text."""
        spans = self._whole.encode(query, add_special_tokens=False).offsets
        return query if len(spans) <= self._query_tokens else query[: spans[self._query_tokens - 1][1]]


def _counts(whole: Tokenizer, texts: Sequence[str]) -> list[int]:
    return [len(encoding) for encoding in whole.encode_batch_fast(list(texts), add_special_tokens=False)]
