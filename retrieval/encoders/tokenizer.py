"""Tokenizers from their files, and the tokenizer of a model."""

import re
from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Final

from tokenizers import Encoding, Tokenizer

from retrieval.engine.types import CountTokens
from retrieval.errors import EncoderError
from retrieval.text.document import TokenCounter

_OVERLAP_SHARE: Final = 8  #: Windows share one token of this many: 64 of 512.
_WORD_OR_PUNCTUATION: Final = re.compile(r"\w+|[^\w\s]")


class WordCounter:
    """Counts each word and each punctuation character as one token."""

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        """Return the character span of every token."""
        return [match.span() for match in _WORD_OR_PUNCTUATION.finditer(text)]


class FileCounter:
    """Counts tokens by a tokenizer's file."""

    def __init__(self, path: Path) -> None:
        self._tokenizer = load_tokenizer(path)

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        """Return the (start, end) character span of every token, without special tokens, untruncated."""
        return list(self._tokenizer.encode(text, add_special_tokens=False).offsets)


@lru_cache(maxsize=2)
def counter_of(path: str) -> TokenCounter:
    """Return the token counter of a tokenizer's file, a counter of words for an empty path; raise EncoderError."""
    return FileCounter(Path(path)) if path else WordCounter()


def load_tokenizer(path: Path) -> Tokenizer:
    """Return the tokenizer without padding and truncation, whatever its file sets; raise EncoderError."""
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception for a damaged file
        raise EncoderError(f"The tokenizer {path} cannot be read: {error}") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    # "[SEP]" in a document must not end its text.
    tokenizer.encode_special_tokens = True
    return tokenizer


def token_count_of(path: Path) -> CountTokens:
    """Return a function that counts tokens by a tokenizer's file, without special tokens; raise EncoderError."""
    return partial(_counts, load_tokenizer(path))


class ModelTokenizer:
    """The tokenizer of one model."""

    def __init__(self, path: Path, *, max_tokens: int) -> None:
        self.path = path
        self._full = load_tokenizer(path)
        self._truncated = load_tokenizer(path)
        self.overlap = max_tokens // _OVERLAP_SHARE  #: Tokens that consecutive windows of a text share.
        self._truncated.enable_truncation(max_tokens, stride=self.overlap)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return each text's token ids with the special tokens, at most max_tokens of them."""
        return [encoding.ids for encoding in self._truncated.encode_batch_fast(list(texts))]

    def windows(self, texts: Sequence[str]) -> list[list[list[int]]]:
        """Return the token ids of each text's windows: one for a text within max_tokens, as `encode` returns it.

        A longer text has overlapping windows of at most max_tokens, each with the special tokens.
        """
        return [[window.ids for window in windows] for windows in self.marked_windows(texts)]

    def marked_windows(self, texts: Sequence[str]) -> list[list[Encoding]]:
        """Return the windows of each text as `windows` does, with special tokens marked."""
        return [[first, *first.overflowing] for first in self._truncated.encode_batch_fast(list(texts))]

    def pieces(self, texts: Sequence[str]) -> list[list[int]]:
        """Return each text's token ids, without special tokens and truncation."""
        return [encoding.ids for encoding in self._full.encode_batch_fast(list(texts), add_special_tokens=False)]

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens, without special tokens."""
        return self._full.decode(list(tokens), skip_special_tokens=True)

    def frame(self) -> tuple[list[int], list[int]]:
        """Return the ids of the special tokens before and after a text."""
        marked = self._truncated.encode("a")
        text = [place for place, special in enumerate(marked.special_tokens_mask) if not special]
        return marked.ids[: text[0]], marked.ids[text[-1] + 1 :]

    @property
    def vocabulary(self) -> int:
        """The size of the vocabulary."""
        return int(self._full.get_vocab_size())

    def count(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text, without special tokens and truncation."""
        return _counts(self._full, texts)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the character span of every token, without special tokens and truncation."""
        return self.spans_of([text])[0]

    def spans_of(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        """Return the character span of every token of each text, without special tokens and truncation."""
        return [list(it.offsets) for it in self._full.encode_batch(list(texts), add_special_tokens=False)]


class PairTokenizer:
    """Tokenizes pairs of a query and a text as one input."""

    def __init__(self, path: Path, *, max_tokens: int) -> None:
        self._full = load_tokenizer(path)
        self._truncated = load_tokenizer(path)
        self._truncated.enable_truncation(max_tokens, strategy="only_second")
        self._query_tokens = (max_tokens - self._truncated.num_special_tokens_to_add(is_pair=True)) // 2

    def encode(self, query: str, texts: Sequence[str]) -> list[Encoding]:
        """Return the tokens of the query with each text, at most max_tokens per pair.

        First the query is truncated to half of the limit, then the text to the rest.
        """
        spans = self._full.encode(query, add_special_tokens=False).offsets
        if len(spans) > self._query_tokens:
            query = query[: spans[self._query_tokens - 1][1]]
        return self._truncated.encode_batch_fast([(query, text) for text in texts])


def _counts(tokenizer: Tokenizer, texts: Sequence[str]) -> list[int]:
    return [len(encoding) for encoding in tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]
