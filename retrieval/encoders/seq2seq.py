"""A local model that reads a text and writes a few short ones: questions that the text answers (doc2query).

An encoder and a decoder on onnxruntime, as `optimum-cli export onnx` writes them for T5 and its kin. The decoder reads
what it has written so far anew for every token: questions end after a dozen, so that keeping its states would save
little. Nogueira and Lin, "From doc2query to docTTTTTquery", 2019: sampled from the ten likeliest tokens.
"""

import hashlib
import logging
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from retrieval.encoders.manifest import (
    DECODER_FILE,
    ENCODER_FILE,
    TOKENIZER_FILE,
    Seq2SeqManifest,
    read_seq2seq_manifest,
)
from retrieval.encoders.pooling import Floats, Ints, pad
from retrieval.encoders.session import Session, open_session
from retrieval.encoders.tokens import ModelTokenizer
from retrieval.errors import EncoderError

logger = logging.getLogger(__name__)

_ENCODER_INPUTS: Final = frozenset({"input_ids", "attention_mask"})
_DECODER_INPUTS: Final = frozenset({"input_ids", "encoder_hidden_states", "encoder_attention_mask"})
_LOGITS: Final = "logits"


class Seq2Seq:
    """One model, loaded. Safe to call from several threads; `load_seq2seq` makes it."""

    def __init__(
        self, manifest: Seq2SeqManifest, tokenizer: ModelTokenizer, encoder: Session, decoder: Session
    ) -> None:
        self.manifest = manifest
        self._tokenizer = tokenizer
        self._encoder = encoder
        self._decoder = decoder
        self._encoder_inputs = _inputs(encoder, _ENCODER_INPUTS, model=manifest.name)
        self._decoder_inputs = _inputs(decoder, _DECODER_INPUTS, model=manifest.name)

    @property
    def name(self) -> str:
        """The model's name, as `manage.py models list` shows it."""
        return self.manifest.name

    def write(self, text: str, *, count: int) -> list[str]:
        """Return `count` texts that the model writes for a text, some of them perhaps alike.

        The first takes the likeliest token each time, the others one of the likeliest by chance, always the same
        ones for the same text. A text beyond max_tokens is cut at the end. Raises EncoderError if the model fails.
        """
        try:
            written = self._written(text, count)
        except EncoderError:
            raise
        except Exception as error:  # onnxruntime's errors share no base class of their own
            raise EncoderError(f"The model {self.name!r} failed.") from error
        return [self._tokenizer.decode(self._until_end(row)) for row in written.tolist()]

    def _written(self, text: str, count: int) -> Ints:
        """Return the tokens of the texts, shape (count, longest), the first of each the one that starts it."""
        states, mask = self._states(self.manifest.prefix + text)
        states, mask = np.repeat(states, count, axis=0), np.repeat(mask, count, axis=0)
        random = np.random.default_rng(_seed(text))
        written: Ints = np.full((count, 1), self.manifest.start_token, np.int64)
        ended = np.zeros(count, dtype=bool)
        while written.shape[1] <= self.manifest.max_new_tokens and not ended.all():
            logits = self._next_logits(written, states, mask)
            drawn = [int(logits[0].argmax()), *(self._drawn(row, random) for row in logits[1:])]
            tokens = np.where(ended, self.manifest.end_token, drawn)
            written = np.hstack([written, tokens[:, np.newaxis]])
            ended |= tokens == self.manifest.end_token
        return written

    def _states(self, text: str) -> tuple[Floats, Ints]:
        ids, mask = pad(self._tokenizer.encode([text]))
        feed = {"input_ids": ids, "attention_mask": mask}
        return self._encoder.run(None, {name: feed[name] for name in self._encoder_inputs})[0], mask

    def _next_logits(self, written: Ints, states: Floats, mask: Ints) -> Floats:
        """Return the logits of the token that follows each of the texts, shape (texts, tokens of the vocabulary)."""
        feed = {"input_ids": written, "encoder_hidden_states": states, "encoder_attention_mask": mask}
        logits: Floats = self._decoder.run([_LOGITS], {name: feed[name] for name in self._decoder_inputs})[0]
        return logits[:, -1, :]

    def _drawn(self, logits: Floats, random: np.random.Generator) -> int:
        """Return one of the likeliest tokens, each as likely as the model says."""
        likeliest = np.argsort(-logits, kind="stable")[: self.manifest.sampled_from]
        return int(random.choice(likeliest, p=_softmax(logits[likeliest].astype(np.float64))))

    def _until_end(self, tokens: list[int]) -> list[int]:
        own = tokens[1:]
        return own[: own.index(self.manifest.end_token)] if self.manifest.end_token in own else own


def load_seq2seq(directory: Path) -> Seq2Seq:
    """Return the model of a directory.

    Raises ModelMissingError if the directory, its manifest or a file is missing, EncoderError if a file is damaged or
    the model writes nothing.
    """
    manifest = read_seq2seq_manifest(directory)
    tokenizer = ModelTokenizer(directory / TOKENIZER_FILE, max_tokens=manifest.max_tokens)
    model = Seq2Seq(manifest, tokenizer, open_session(directory / ENCODER_FILE), open_session(directory / DECODER_FILE))
    model.write("A text.", count=2)
    logger.info("seq2seq.loaded name=%s", model.name)
    return model


def _inputs(session: Session, known: frozenset[str], *, model: str) -> frozenset[str]:
    """Return the names of a session's inputs; raise EncoderError for one that it cannot be given."""
    names = frozenset(node.name for node in session.get_inputs())
    if unknown := names - known:
        raise EncoderError(f"The model {model!r} asks for inputs that CoreCube lacks: {sorted(unknown)}.")
    return names


def _softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    powers = np.exp(logits - logits.max())
    shares: NDArray[np.float64] = powers / powers.sum()
    return shares


def _seed(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
