"""Vectors as PostgreSQL reads them in a statement."""

from functools import lru_cache
from typing import Final

import numpy as np

from retrieval.engine.types import Vector

#: Significant digits that tell one half float from every other.
_DIGITS: Final = "%.5g"
#: A search sends the vector of its question three times.
_KEPT: Final = 64


def vector_text(vector: Vector) -> str:
    """Return a vector as the text of a halfvec: each component as the nearest half float, in few digits."""
    return _text(vector.astype(np.float16).tobytes())


@lru_cache(maxsize=_KEPT)
def _text(halves: bytes) -> str:
    return f"[{','.join(_DIGITS % it for it in np.frombuffer(halves, np.float16).tolist())}]"
