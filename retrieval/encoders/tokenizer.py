"""Tokenizers by their files, without a model beside them."""

import re
from functools import lru_cache
from pathlib import Path
from typing import Final

from tokenizers import Tokenizer

from retrieval.errors import EncoderError
from retrieval.text.document import TokenCounter

_WORD_OR_SIGN: Final = re.compile(r"\w+|[^\w\s]")


class WordCounter:
    """Counts each run of letters and digits, and each other sign, as one token."""

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        """Return the character span of every token."""
        return [match.span() for match in _WORD_OR_SIGN.finditer(text)]


class FileCounter:
    """Counts tokens as a tokenizer's file says."""

    def __init__(self, path: Path) -> None:
        self._tokenizer = load_tokenizer(path)

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        """Return the (start, end) character span of every token, without special tokens, nothing cut."""
        return list(self._tokenizer.encode(text, add_special_tokens=False).offsets)


@lru_cache(maxsize=2)
def counter_of(path: str) -> TokenCounter:
    """Return what counts tokens by the tokenizer file at `path`, words and signs for ""; raise EncoderError."""
    return FileCounter(Path(path)) if path else WordCounter()


def load_tokenizer(path: Path) -> Tokenizer:
    """Return the tokenizer without the padding and cutting that its file may ask for; raise EncoderError."""
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception for a damaged file
        raise EncoderError(f"The tokenizer {path} cannot be read: {error}") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    # A document that writes "[SEP]" must not be read as the end of its text.
    tokenizer.encode_special_tokens = True
    return tokenizer
