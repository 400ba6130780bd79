"""Cosine similarity on a scale that is comparable between embedding models.

Models differ in the cosine of unrelated texts: 0 for one model, 0.4 for another. Floors, grades and cliffs are numbers
on a scale on which unrelated texts have 0.
"""

import logging
from dataclasses import dataclass, field
from threading import Lock, Thread
from time import monotonic
from typing import Final

import numpy as np

from corecube.data import read_toml
from retrieval.encoders.protocol import Encoder
from retrieval.engine.types import NOISE, Hit
from retrieval.errors import EncoderError

logger = logging.getLogger(__name__)

_MAX_NOISE: Final = 0.95  #: Limit for models that give all texts nearly the same vector.
_TRY_SECONDS: Final = 60.0
_SUBJECTS: Final = read_toml("retrieval.encoders", "cosine_subjects.toml")


@dataclass(frozen=True, slots=True)
class CosineScale:
    """The scale of a model's cosines."""

    noise: float = 0.0  #: Mean cosine of unrelated texts, from 0 to below 1.
    is_measured: bool = False  #: Whether the noise was measured with the model; else cosines are used unscaled.

    def nearness(self, cosine: float) -> float:
        """Return a scaled cosine: 0 for the cosine of unrelated texts and below, 1 for the same text."""
        return _nearness(cosine, self.noise)

    def nearness_of(self, hit: Hit) -> float | None:
        """Return a hit's scaled cosine by the model that found it; None without a cosine."""
        cosine = hit.signals.get("cosine")
        return None if cosine is None else _nearness(cosine, hit.signals.get(NOISE, self.noise))

    def __str__(self) -> str:
        """Return the scale's description for the trace."""
        if not self.is_measured:
            return "unscaled cosines"
        return f"cosine {self.noise:.2f} counts as 0"


UNSCALED: Final = CosineScale()


def _nearness(cosine: float, noise: float) -> float:
    return max(0.0, (cosine - noise) / (1 - noise))


def measured_scale(encoder: Encoder) -> CosineScale:
    """Measure a model's scale: the mean cosine of texts of different subjects; raise EncoderError."""
    subjects = _SUBJECTS["subject"]
    queries = np.stack([encoder.encode_query(it["question"]) for it in subjects])
    passages = encoder.encode_documents([it["passage"] for it in subjects])
    cosines = queries @ passages.T
    unrelated = cosines[~np.eye(len(subjects), dtype=bool)]
    return CosineScale(min(max(0.0, float(unrelated.mean())), _MAX_NOISE), is_measured=True)


@dataclass
class CosineScales:
    """The scales of a process's models, each measured once. Thread-safe."""

    _known: dict[tuple[str, str], CosineScale] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)
    _tries_from: float = 0.0

    def known(self, encoder: Encoder) -> CosineScale:
        """Return the measured scale of a model, or UNSCALED."""
        return self._known.get((encoder.name, encoder.weights), UNSCALED)

    def measured(self, encoder: Encoder) -> CosineScale:
        """Return the scale of a model, and measure it with sixteen vectors the first time; raise EncoderError."""
        with self._lock:
            found = self._known.get((encoder.name, encoder.weights))
            if found is None:
                found = self._known[encoder.name, encoder.weights] = measured_scale(encoder)
            return found

    def measure_in_background(self, encoder: Encoder) -> None:
        """Measure an unmeasured model in a separate thread; a failed measurement is retried after a minute."""
        if (encoder.name, encoder.weights) in self._known or monotonic() < self._tries_from:
            return
        self._tries_from = monotonic() + _TRY_SECONDS
        Thread(target=self._try, args=(encoder,), name="cosine-scale", daemon=True).start()

    def _try(self, encoder: Encoder) -> None:
        try:
            self.measured(encoder)
        except EncoderError as error:
            logger.info("cosine_scale.measurement_failed model=%s error=%s", encoder.name, type(error).__name__)
