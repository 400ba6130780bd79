"""A local model that generates short texts from a text: questions that the text answers (doc2query).

An encoder and a decoder on onnxruntime, as `optimum-cli export onnx` exports T5 models. The decoder reads all previous
tokens again for every token: questions have a dozen, so that a cache of states would save little. Nogueira and Lin,
"From doc2query to docTTTTTquery", 2019: sampled from the ten likeliest tokens.
"""

import hashlib
import logging
from pathlib import Path
from typing import Final

import numpy as np

from retrieval.encoders.manifest import DECODER_FILE, ENCODER_FILE, TOKENIZER_FILE, Seq2SeqManifest, read_manifest
from retrieval.encoders.pooling import Floats, Ints, pad
from retrieval.encoders.session import Session, input_names, open_session
from retrieval.encoders.tokenizer import ModelTokenizer
from retrieval.errors import EncoderError

logger = logging.getLogger(__name__)

_ENCODER_INPUTS: Final = frozenset({"input_ids", "attention_mask"})
_DECODER_INPUTS: Final = frozenset({"input_ids", "encoder_hidden_states", "encoder_attention_mask"})
_LOGITS: Final = "logits"


class Seq2Seq:
    """A loaded model; thread-safe. `load_seq2seq` creates it."""

    def __init__(
        self, manifest: Seq2SeqManifest, tokenizer: ModelTokenizer, encoder: Session, decoder: Session
    ) -> None:
        self.manifest = manifest
        self.name = manifest.name
        self._tokenizer = tokenizer
        self._encoder = encoder
        self._decoder = decoder
        self._encoder_inputs = input_names(encoder, model=manifest.name, known=_ENCODER_INPUTS)
        self._decoder_inputs = input_names(decoder, model=manifest.name, known=_DECODER_INPUTS)

    def write(self, text: str, *, count: int) -> list[str]:
        """Return `count` texts that the model generates for a text; some may be equal.

        The first uses the likeliest token each time, the others sample, with a seed from the text. A text beyond
        max_tokens is truncated. Raises EncoderError if the model fails.
        """
        try:
            written = self._written(text, count)
        except EncoderError:
            raise
        except Exception as error:  # onnxruntime's errors share no specific base class
            raise EncoderError(f"The model {self.name!r} failed.") from error
        return [self._tokenizer.decode(self._until_end(row)) for row in written.tolist()]

    def _written(self, text: str, count: int) -> Ints:
        """Return the tokens of the texts, shape (count, longest), including the start token."""
        ids, mask = pad(self._tokenizer.encode([self.manifest.prefix + text]))
        feed = {"input_ids": ids, "attention_mask": mask}
        states = self._encoder.run(None, {name: feed[name] for name in self._encoder_inputs})[0]
        states, mask = np.repeat(states, count, axis=0), np.repeat(mask, count, axis=0)
        seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
        random = np.random.default_rng(seed)
        written: Ints = np.full((count, 1), self.manifest.start_token, np.int64)
        ended = np.zeros(count, dtype=bool)
        while written.shape[1] <= self.manifest.max_new_tokens and not ended.all():
            feed = {"input_ids": written, "encoder_hidden_states": states, "encoder_attention_mask": mask}
            # Of the next token of each text, shape (texts, vocabulary).
            logits = self._decoder.run([_LOGITS], {name: feed[name] for name in self._decoder_inputs})[0][:, -1, :]
            drawn = [int(logits[0].argmax()), *(self._sample(row, random) for row in logits[1:])]
            tokens = np.where(ended, self.manifest.end_token, drawn)
            written = np.hstack([written, tokens[:, np.newaxis]])
            ended |= tokens == self.manifest.end_token
        return written

    def _sample(self, logits: Floats, random: np.random.Generator) -> int:
        """Return one of the likeliest tokens, by the model's probabilities (top-k sampling)."""
        likeliest = np.argsort(-logits, kind="stable")[: self.manifest.sampled_from]
        chosen = logits[likeliest].astype(np.float64)
        powers = np.exp(chosen - chosen.max())
        return int(random.choice(likeliest, p=powers / powers.sum()))

    def _until_end(self, tokens: list[int]) -> list[int]:
        generated = tokens[1:]
        end = self.manifest.end_token
        return generated[: generated.index(end)] if end in generated else generated


def load_seq2seq(directory: Path) -> Seq2Seq:
    """Return the model of a directory; raise ModelMissingError for a missing file, EncoderError for a bad one."""
    manifest = read_manifest(directory, Seq2SeqManifest)
    tokenizer = ModelTokenizer(directory / TOKENIZER_FILE, max_tokens=manifest.max_tokens)
    model = Seq2Seq(manifest, tokenizer, open_session(directory / ENCODER_FILE), open_session(directory / DECODER_FILE))
    model.write("A text.", count=2)
    logger.info("seq2seq.loaded name=%s", model.name)
    return model
