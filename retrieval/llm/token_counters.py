"""Counting in a language model's own tokens, where its tokenizer lies beside the other models."""

import logging
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Final

from django.conf import settings

from retrieval.encoders.tokens import token_count_of
from retrieval.engine.token_counter import CountTokens, TokenCounter
from retrieval.errors import EncoderError
from retrieval.models import LanguageModel

logger = logging.getLogger(__name__)

TOKENIZER_FILE: Final = "tokenizer.json"
#: A folder's name, without a way out of the folder of all models.
_NAME: Final = re.compile(r"\w[\w.-]*")
_KEPT: Final = 8


def counter_of(model: LanguageModel) -> TokenCounter | None:
    """Return what counts a language model's tokens; None where its tokenizer is not named or cannot be read."""
    if not model.tokenizer:
        return None
    try:
        return TokenCounter(model.slug, _count(model.tokenizer))
    except (EncoderError, OSError):
        logger.warning("language_model.no_tokenizer model=%s tokenizer=%s", model.slug, model.tokenizer)
        return None


def tokenizer_problem(name: str) -> str:
    """Return what is wrong with the tokenizer of that name; empty for nothing."""
    if not _NAME.fullmatch(name):
        return "This is no name of a folder."
    try:
        _count(name)
    except FileNotFoundError:
        return f"There is no {TOKENIZER_FILE} in the folder {name} of the models on this machine."
    except (EncoderError, OSError):
        return f"The {TOKENIZER_FILE} of {name} cannot be read."
    return ""


def tokenizers() -> Iterable[str]:
    """Yield the folders of models on this machine that hold a tokenizer, by name."""
    for path in sorted(settings.CORECUBE_MODELS_DIR.glob(f"*/{TOKENIZER_FILE}")):
        yield path.parent.name


def _count(name: str) -> CountTokens:
    path = settings.CORECUBE_MODELS_DIR / name / TOKENIZER_FILE
    return _loaded(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=_KEPT)
def _loaded(path: Path, changed: int) -> CountTokens:  # noqa: ARG001 -- a file that was replaced is read again
    return token_count_of(path)
