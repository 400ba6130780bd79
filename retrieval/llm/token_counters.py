"""Token counts by a language model's tokenizer, if it is in a model folder of this machine."""

import logging
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Final

from django.conf import settings

from retrieval.encoders.tokenizer import token_count_of
from retrieval.engine.types import CountTokens, TokenCounter
from retrieval.errors import EncoderError
from retrieval.models import LanguageModel

logger = logging.getLogger(__name__)

TOKENIZER_FILE: Final = "tokenizer.json"
_NAME: Final = re.compile(r"\w[\w.-]*")  #: A folder name without path separators.
_CACHED: Final = 8


def counter_of(model: LanguageModel) -> TokenCounter | None:
    """Return the token counter of a language model; None without a readable tokenizer."""
    if not model.tokenizer:
        return None
    try:
        return TokenCounter(model.slug, _count(model.tokenizer))
    except (EncoderError, OSError):
        logger.warning("language_model.tokenizer_unreadable model=%s tokenizer=%s", model.slug, model.tokenizer)
        return None


def tokenizer_problem(name: str) -> str:
    """Return the problem of a tokenizer; empty without one."""
    if not _NAME.fullmatch(name):
        return "This is not a folder name."
    try:
        _count(name)
    except FileNotFoundError:
        return f"The model folder {name} on this machine has no {TOKENIZER_FILE}."
    except (EncoderError, OSError):
        return f"The {TOKENIZER_FILE} of {name} cannot be read."
    return ""


def tokenizers() -> Iterable[str]:
    """Yield the names of the model folders on this machine with a tokenizer."""
    for path in sorted(settings.CORECUBE_MODELS_DIR.glob(f"*/{TOKENIZER_FILE}")):
        yield path.parent.name


def _count(name: str) -> CountTokens:
    path = settings.CORECUBE_MODELS_DIR / name / TOKENIZER_FILE
    return _loaded(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=_CACHED)
def _loaded(path: Path, changed: int) -> CountTokens:  # noqa: ARG001 -- a replaced file is loaded again
    return token_count_of(path)
