"""A model's own tokenizer."""

from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer

from retrieval.errors import EncoderError


class ModelTokenizer:
    """Cuts texts into the tokens that one model was trained on."""

    def __init__(self, path: Path, *, max_tokens: int) -> None:
        self._whole = _load(path)
        self._cut = _load(path)
        self._cut.enable_truncation(max_tokens)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return each text's token ids with the special tokens, at most max_tokens of them."""
        return [encoding.ids for encoding in self._cut.encode_batch_fast(list(texts))]

    def count(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text, without special tokens, nothing cut."""
        return [len(encoding) for encoding in self._whole.encode_batch_fast(list(texts), add_special_tokens=False)]

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the character span of every token, without special tokens, nothing cut."""
        return list(self._whole.encode(text, add_special_tokens=False).offsets)


def _load(path: Path) -> Tokenizer:
    """Return the tokenizer without the padding and cutting that its file may ask for."""
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception for a damaged file
        raise EncoderError(f"The tokenizer {path} cannot be read: {error}") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    # A document that writes "[SEP]" must not be read as the end of its text.
    tokenizer.encode_special_tokens = True
    return tokenizer
